/** The protective lines of copies: plans, conversions, the host and kernels. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const copyMutations: readonly Mutation[] = [
  ...law("copy/wayToShape", [
    ["start >= 0 && ", "", "An error advises what cannot be done."],
  ]),
  ...law("copy/joinToBytes", [
    [
      "  if (!fits || !Number.isInteger(draft.from) || !Number.isInteger(draft.to)) return false;\n",
      "  if (!fits) return false;\n",
      "Elements that begin inside a byte are copied as if they began at a byte.",
    ],
  ]),
  ...law("copy/readElements", [
    [
      "    await readBack(array, bytes, layout, stream, null);\n",
      "    copyHost(new OnHost(array), { bytes, offset: 0, layout });\n",
      "The typed array that is returned is not written yet.",
    ],
    [
      "  if (stream !== null) {\n",
      "  if (stream !== null && !stream.isDone) {\n",
      "Page-locked memory is read before work of the default stream that the home stream's next work waits for.",
    ],
    ["given ?? stream ?? device", "stream ?? device", "A device's memory is read before the work of the given stream."],
    ["    await given.completed();\n", "", "The host reads before the work of the given stream."],
  ]),
  ...law("copy/copyOnHost", [
    ["hostWaitsFor(order)", "order?.synchronize()", "The host copies what a default stream has not written yet."],
    [
      "[stream, from.buffer.stream, to.buffer.stream]",
      "[stream, from.buffer.stream]",
      "The host writes what a stream has yet to read.",
    ],
    [
      "[stream, from.buffer.stream, to.buffer.stream]",
      "[stream, to.buffer.stream]",
      "The host reads what a stream has yet to write.",
    ],
    [
      "[stream, from.buffer.stream, to.buffer.stream]",
      "[from.buffer.stream, to.buffer.stream]",
      "The host copies before the stream has reached the copy.",
    ],
    [
      "  for (const order of new Set([stream, from.buffer.stream, to.buffer.stream])) hostWaitsFor(order);\n",
      "",
      "The host copies page-locked memory before a stream has written it.",
    ],
  ]),
  ...law("copy/withLastingCopies", [
    [
      "{ ...copyToHost(array), readonly: true }",
      "copyToHost(array)",
      "Python's writes to a copy are silently lost.",
    ],
  ]),
  ...law("copy/copyToHost", [
    ["  hostWaitsForCopy(order); // a consumer", "  // a consumer", "The host reads a copy before it is made."],
  ]),
  ...law("copy/copyToDevice", [
    [
      "  if (device === null) hostWaitsForCopy(home); // host memory may change as soon as this returns\n",
      "",
      "A copy contains writes that the host made after the copy was requested.",
    ],
    [
      "    using _memory = staged.buffer;",
      "    void staged.buffer;",
      "Staging memory between two devices is never freed.",
    ],
    [
      "  if (device === null) hostWaitsForCopy(home);",
      "",
      "Writes by the host after the export change the copy.",
    ],
  ]),
  ...law("copy/accessOptions", [
    ["? ways.reverse() : ways", "? ways : ways", "A kernel accesses scattered elements of the other device."],
  ]),
  ...law("copy/outOfReach", [
    [
      "  if (canReachDevices(device, source) && canReachDevices(device, destination)) return null;\n",
      "  return null;\n",
      "A copy on a stream of another device is refused by the driver.",
    ],
  ]),
  ...law("copy/enqueueOn", [
    ["  orderStreams(stream, helper);\n", "", "A copy begins on the other device before its turn."],
    ["  orderStreams(helper, stream);\n", "", "Work after a copy does not wait for the other device."],
  ]),
  ...law("copy/tiled", [
    ["alignment % 4 === 0 && ", "", "A kernel reads four bytes from an unaligned address."],
  ]),
  ...law("copy/lanesOf", [
    [
      "if (axis === inner) return extent % lanes === 0 && ",
      "if (axis === inner) return ",
      "A kernel reads more rows than the array has.",
    ],
    [
      "if (axis === along) return extent % lanes === 0 && ",
      "if (axis === along) return ",
      "A kernel reads beyond the ends of rows.",
    ],
    [
      "return to % lanes === 0 && from % lanes === 0;",
      "return true;",
      "A kernel reads four bytes from an unaligned address.",
    ],
  ]),
  ...law("copy/copyOnDevice", [
    ["  source.buffer.pinUntilPassed(stream);\n", "", "Memory is freed before a copy between views has read it."],
    [
      "  destination.buffer.pinUntilPassed(stream);\n",
      "",
      "Memory is freed before a copy between views has written it.",
    ],
    ["  orderStreams(home, stream);\n", "", "A copy reads what its source's home has yet to write."],
    ["  orderStreams(other, stream);\n", "", "A copy writes what its destination's home has yet to read."],
    ["  orderStreams(stream, home);\n", "", "The source changes before it is read."],
    ["  orderStreams(stream, other);\n", "", "The destination is read before it is written."],
  ]),
  ...law("copy/copy", [
    [
      "  if (ways.length > 0) takeAccess(ways, byteCount(destination));\n",
      "",
      "Views are copied through the host, at a tenth of the rate.",
    ],
  ]),
  ...law("copy/copyArranged", [
    [
      "if (captureOf(stream) !== null)",
      "if (stream.isClosed)",
      "A graph reads data that the host has arranged only once, and freed.",
    ],
  ]),
  ...law("copy/copyBetween", [
    ["      copyAlike(source, landed, sending);\n", "      copy(source, landed, sending);\n", "Sending never ends."],
    [
      "      orderStreams(receiving, sending); // the memory is allocated by then\n",
      "",
      "A device sends to memory that is not allocated yet.",
    ],
    ["      orderStreams(sending, receiving);\n", "", "Elements are scattered before they have arrived."],
  ]),
  ...law("copy/toDevice", [
    [
      '  noteElementAccess(source, false, "view.copyFrom()");\n',
      "",
      "The host arranges data that is not there yet, and the checker does not notice.",
    ],
  ]),
  ...law("copy/toHost", [
    [
      '  noteElementAccess(destination, true, "view.copyFrom()");\n',
      "",
      "The host writes memory that is still being read, and the checker does not notice.",
    ],
    [
      "  hostWaitsForCopy(stream);\n  noteElementAccess(destination",
      "  noteElementAccess(destination",
      "The host arranges data that is not there yet.",
    ],
  ]),
  ...law("copy/planConversion", [
    [
      "isFree ? boxOf(ordered, most) : filled(",
      "true ? boxOf(ordered, most) : filled(",
      "Where elements of a destination overlap, the last one does not win.",
    ],
    ['startOf(longer, forwards, "to"),', "0,", "A reversed array is written from its other end."],
    ['startOf(longer, forwards, "from"),', "0,", "A reversed array is read from its other end."],
  ]),
  ...law("copy/isRun", [
    ["    step *= extent;\n", "", "Rows with gaps between them are mistaken for one run."],
  ]),
  ...law("copy/convertRun", [
    [
      "  checkSpan({ start: from, end: from + count * stage.fromBytes }, { bytes: read, offset: 0 });\n",
      "",
      "An array that was transferred to another thread is converted from leftovers of an earlier conversion.",
    ],
  ]),
  ...law("copy/readyFor", [
    ["  const { id } = stage;\n", "  const id = 0;\n", "Elements are converted to the type of an earlier conversion."],
  ]),
  ...law("copy/convertBoxes", [
    ["  checkSpan(plan.from, from, first.from);\n", "", "Machine code reads outside the memory."],
    ["  checkSpan(plan.to, to, first.to);\n", "", "Machine code writes outside the memory."],
    ["first.from + plan.fromOffset", "plan.fromOffset", "A slice is read from the start of the whole array."],
    ["first.to + plan.toOffset", "plan.toOffset", "A slice is written at the start of the whole array."],
    ["if (hasRest) convertRow", "if (false) convertRow", "The last elements of a row are not converted."],
    ["    if (hasRest) walk(", "    if (false) walk(", "The last rows are not converted."],
  ]),
  ...law("copy/readyRows", [
    ["!isFree || ", "", "Elements are written out of order where they overlap."],
    ["inner.from !== stage.fromBytes || ", "", "A row is read as if its elements were contiguous."],
    [" || inner.to !== stage.toBytes", "", "A row is written as if its elements were contiguous."],
    [" || inner.extent < stage.turn", "", "Bytes outside of short rows are converted, too."],
  ]),
  ...law("copy/convertRows", [
    ["source === 0 || ", "", "Machine code reads memory that may have moved."],
    [" || destination === 0", "", "Machine code writes memory that may have moved."],
    ["if (turns * turn === length) return true;", "return true;", "The last elements of a row are not converted."],
    ["destination + first.to + last * toBytes", "destination + first.to", "A row begins with its last elements."],
  ]),
  ...law("copy/convertRow", [
    [" && source.start !== 0", "", "Machine code reads memory that may have moved."],
    [" && destination.start !== 0", "", "Machine code writes memory that may have moved."],
  ]),
  ...law("copy/convertRuns", [
    ["source.start === 0 || ", "", "Machine code reads memory that may have moved."],
    ["destination.start === 0 || ", "", "Machine code writes memory that may have moved."],
    ["count < stage.turn || ", "", "Bytes outside a box of few elements are converted, too."],
    ["isToRun ? to : results", "to", "A box is written as one run where its elements have gaps."],
    ["isFromRun ? from : memory.start", "from", "A box is read as one run where its elements have gaps."],
    [" + i * steps.to;", ";", "All boxes are written to the place of the first one."],
  ]),
  ...law("copy/boxFor", [
    ["extent % length : length", "length : length", "Elements past the last one are converted, too."],
  ]),
  ...law("copy/conversionLoop", [
    ["Math.min(from.bits, to.bits)", "to.bits", "Elements are lost where one vector is converted to half a vector."],
  ]),
  ...law("copy/valuesOf", [
    ['apply("i8x16.min_u", vector, loop.constant(8, 1n))', "vector", "True becomes a number other than 1."],
  ]),
  ...law("copy/truths", [
    ['shifted(16, "shl", vector, 1)', "vector", "A negative zero of 16 bits counts as true."],
    [
      'apply(from.bits === 32 ? "f32x4.ne" : "f64x2.ne", vector, zero)',
      "differs(from.bits, vector, zero)",
      "A negative zero counts as true.",
    ],
    [
      ".map((mask) => differs(64, mask, zero));",
      ";",
      "The truth of a complex number depends only on its real part.",
    ],
  ]),
  ...law("copy/floatsOf", [
    ['? "u" : "s";', '? "s" : "s";', "Large unsigned integers become negative floats."],
    [
      "demoted(roundableDoubles(loop, vectors, from))",
      "demoted(vectors.map((vector) => longToDouble(loop, vector, from)))",
      "The host rounds integers of 64 bits twice.",
    ],
  ]),
  ...law("copy/longToDouble", [
    [
      "[0x4530_0000_8000_0000n, 0x4530_0000_8010_0000n]",
      "[0x4530_0000_0000_0000n, 0x4530_0000_0010_0000n]",
      "Negative integers of 64 bits become large floats.",
    ],
  ]),
  ...law("copy/withoutTies", [
    ['apply("v128.or", kept, carried)', "kept", "The host rounds integers of 64 bits to even twice."],
    ['apply("v128.bitselect", kept, marked, isSmall)', "marked", "Small integers of 64 bits lose their lowest bits."],
    [
      "loop.constant(lane, 2n ** BigInt(room - 1))",
      "loop.constant(lane, 0n)",
      "Small negative integers of 64 bits lose their lowest bits.",
    ],
    ['"i32x4", 24]', '"i32x4", 31]', "The host rounds integers of 32 bits twice."],
  ]),
  ...law("copy/wholes", [
    ['to.bits === 16 ? last : "s"', '"s"', "Large floats become half of the largest integer of 16 bits."],
    [
      'const last = to.kind === "int" ? "s" : "u";',
      'const last = "s";',
      "Large floats become half of the largest integer.",
    ],
    [
      'to.bits === 32 ? "u" : "s"',
      'to.bits === 32 ? "s" : "s"',
      "Large floats become half of the largest integer of 32 bits.",
    ],
  ]),
  ...law("copy/longWholes", [
    ['apply("v128.and", given, apply("f64x2.eq", given, given))', "given", "NaN becomes the least integer of 64 bits."],
    ["2n ** 63n - 1n", "2n ** 63n - 2n", "A value that is too large does not become the largest integer."],
    ["-(2 ** 63)", "-(2 ** 62)", "Integers of 64 bits saturate at 63 bits."],
    ["2 ** 52 + 2 ** 51", "2 ** 52", "Negative floats become wrong integers of 64 bits."],
  ]),
  ...law("copy/isSmallWhole", [
    ["loop.double(2 ** 51)", "loop.double(2 ** 53)", "Doubles become integers that lack some of their bits."],
    ['apply("f64x2.abs", kept)', "double", "Large negative doubles become wrong integers."],
    [
      'apply("v128.and", isSmall, apply("f64x2.ge", kept, loop.double(0)))',
      "isSmall",
      "Small negative doubles become large unsigned integers.",
    ],
  ]),
  ...law("copy/smallWhole", [
    ['apply("f64x2.trunc", double)', "double", "Small doubles are rounded to integers, not truncated."],
  ]),
  ...law("copy/odd", [
    [
      'apply("v128.or", nearer, apply("v128.and", isLossy, loop.constant(32, 1n)))',
      "nearer",
      "The host rounds to small floats twice.",
    ],
    [
      'apply("i32x4.add", evens(floats, 8).flat(), isTooLarge)',
      "evens(floats, 8).flat()",
      "The host rounds away from zero before the actual rounding.",
    ],
  ]),
  ...law("copy/fromHalf", [
    ["0x007f_ffffn", "-1n", "Subnormal float16s become wrong numbers."],
    ["0x0f7f_ffffn", "0x0fff_ffffn", "An infinite float16 becomes 65536."],
  ]),
  ...law("copy/toHalf", [
    ['apply("i32x4.add", rebased, tie)', "rebased", "Ties round to odd float16s."],
    [
      'apply("i32x4.min_s", rounded, loop.constant(32, 0x7c00n))',
      "rounded",
      "A value that is too large for a float16 becomes NaN.",
    ],
    ["0x387f_ffffn", "0x37ff_ffffn", "Subnormal float16s are truncated, not rounded."],
    ['apply("v128.or", number, quiet)', "number", "NaN becomes an infinite float16."],
  ]),
  ...law("copy/toBfloat", [
    [
      'apply("i32x4.add", apply("i32x4.add", float, loop.constant(32, 0x7fffn)), tie)',
      'apply("i32x4.add", float, loop.constant(32, 0x7fffn))',
      "Ties round to odd bfloat16s.",
    ],
    [
      'loop.constant(32, 0x7fc0n), shifted(32, "shr_u", rounded, 16), isNaN',
      'shifted(32, "shr_u", rounded, 16), shifted(32, "shr_u", rounded, 16), isNaN',
      "Some NaNs become bfloat16s that are numbers.",
    ],
  ]),
  ...law("copy/copyBits", [
    ["(to[written] ?? 0) & ~mask | ", "", "Neighbours in the same byte become 0."],
    ["skipped === 0 && before === 0 && ", "before === 0 && ", "Bits are copied from the start of their byte."],
  ]),
  ...law("copy/packedKernel", [
    ["setp.ne.and.u32", "setp.eq.and.u32", "Neighbours in the same byte become 0 on the device."],
    ["    keepIf(inside);\n", "", "A kernel writes beyond the last byte of the destination."],
    ['    keepIf(ptx.make("p", `setp.eq.${type} $, ${rest}, 0`));\n', "", "A kernel fills gaps between elements."],
  ]),
  ...law("copy/readBits", [
    ["plus(ptx, bit, bits - 1)", "bit", "Elements that span two bytes lose bits."],
  ]),
  ...law("copy/planPacked", [
    ["axis.to > reach", "axis.to > 0", "Elements of interleaved axes are not found."],
  ]),
  ...law("copy/partOf", [
    [" || step < widthOf(bits, axes.slice(1), toBit)", "", "Two threads write the same byte."],
  ]),
  ...law("copy/Spares.take", [
    ["?.pop();", "?.at(-1);", "Two copies use the same memory at a time."],
    ["    this.#bytes -= size;\n", "", "Less and less memory is kept for reuse."],
  ]),
  ...law("copy/Spares.release", [
    [
      "if (this.#isClosed || this.#bytes",
      "if (this.#bytes",
      "Memory that is returned after its device was closed is never freed.",
    ],
    [" || this.#bytes + size > maxKept", "", "More and more memory is kept for reuse."],
  ]),
  ...law("copy/Spares.allocate", [
    [
      "    observerOf(this.#pinned.device.driver)?.closedByUser(buffer.ptr);",
      "    // observerOf;",
      "The checker mistakes spare memory for a leak.",
    ],
  ]),
  ...law("copy/Spares.close", [
    ["for (const buffer of kept) buffer.close();", ";", "Spare memory outlives its device."],
  ]),
  ...law("copy/spares", [
    [", (own) => own.close());", ", () => {});", "Spare memory outlives its device."],
  ]),
  ...law("copy/withPinned", [
    ["    closeAfter(buffer, stream);\n", "", "Memory is never freed if its use has failed."],
  ]),
  ...law("copy/closeAfter", [
    [
      "  } catch {\n    buffer.close();\n",
      "  } catch {\n",
      "Memory is never freed if the stream was closed meanwhile.",
    ],
  ]),
  ...law("copy/copyPitched", [
    [
      "  if (source.isHost && !destination.isHost) makeOrderExplicit(stream, box.width * box.height * box.depth);\n",
      "",
      "Rows are copied from memory that a default stream has yet to write.",
    ],
  ]),
  ...law("copy/DecisionCache", [
    [
      "    if (!Number.isSafeInteger(kind)) return decide(source, destination, alignment, canLaunch, conversion);\n",
      "",
      "Huge elements are copied in words that their addresses are not aligned to.",
    ],
    [
      'plan?.kind !== "packed" || plan.parts.length <= maxParts',
      "plan !== undefined",
      "Plans of thousands of kernels stay in memory.",
    ],
    [
      "conversion === null ? itemsize * 8 : -idOf(conversion)",
      "itemsize * 8",
      "Elements are converted to another type.",
    ],
    [
      "conversion === null ? itemsize * 8 : -idOf(conversion)",
      "conversion === null ? 8 : -idOf(conversion)",
      "Elements of another size are copied.",
    ],
    ["itemsize * 8 : ", "itemsize : ", "Packed elements are copied by a plan for another alignment."],
    ["(from & 15n) << 4n | to & 15n", "to & 15n", "Words are read from unaligned addresses."],
    ["(from & 15n) << 4n | to & 15n", "(from & 15n) << 4n", "Words are written to unaligned addresses."],
    ["(from & 15n) << 4n | to & 15n", "from & 15n | to & 15n", "Words are read or written at unaligned addresses."],
    ["(canLaunch ? 1 : 0)", "0", "A kernel is launched on ordinary host memory."],
  ]),
  ...law("copy/devicePlanFor", [
    [
      "  if (!isReady) return null;\n",
      "",
      "A kernel reads memory that it cannot reach, or elements that are not aligned.",
    ],
    [
      "decisions.of(stream.device)",
      "decisions.of(source.buffer.device ?? stream.device)",
      "A device uses another's kernels.",
    ],
  ]),
  ...law("copy/asRun", [
    [
      "peers: peersOf(source, destination, stream) };",
      "peers: null };",
      "Every copy between two devices needs access.",
    ],
  ]),
  ...law("copy/truth", [
    ['isFloat(number) ? "neu"', 'isFloat(number) ? "ne"', "A kernel treats NaN as false."],
  ]),
  ...law("copy/saturated", [
    ["selp.b64 $, ${long}, 0", "selp.b64 $, ${long}, 1", "NaN becomes a different integer than on the host."],
    ["selp.b32 $, ${whole}, 0", "selp.b32 $, ${whole}, 1", "NaN becomes a different integer than on the host."],
    ["min.${sign}32", "max.${sign}32", "A float that is too large wraps around in a kernel."],
  ]),
  ...law("copy/oddFloat", [
    ["selp.u32 $, 1, 0, ${isLossy}", "selp.u32 $, 0, 0, ${isLossy}", "A kernel rounds to bfloat16 twice."],
  ]),
  ...law("copy/load", [
    ['guard === "" ?', "true ?", "The assembler merges several guarded reads into one, and some of them are not done."],
  ]),
  ...law("copy/indexKind", [
    [
      'end <= 2 ** 32 ? "r" : "d"',
      '"r"',
      "A kernel for more elements than 32 bits can count copies some to wrong places.",
    ],
  ]),
  ...law("copy/quotient", [
    ["2 ** log === divisor", "true", "A kernel divides wrongly, and copies to wrong places."],
  ]),
  ...law("copy/reciprocal", [
    ["BigInt(end) * excess <= one", "true", "A kernel divides wrongly, and copies to wrong places."],
  ]),
  ...law("copy/readBack", [
    ["  using copy = snapshot;\n", "  const copy = snapshot;\n", "Memory for a copy is never freed."],
    ["  await stream.completed();\n  //", "  //", "The old contents are read."],
    [
      "helperStream(stream.device), staging",
      "stream, staging",
      "Reading waits for work that was enqueued after the request.",
    ],
  ]),
  ...law("copy/snapshotOf", [
    ["    copy?.[Symbol.dispose]();\n", "", "Memory for a copy that the device cannot make is never freed."],
  ]),
  ...law("copy/readPinned", [
    ["    await stream.completed();\n    bytes", "    bytes", "The old contents are read."],
  ]),
  ...law("copy/tiledKernel", [
    ["further(firstRow, below)", "firstRow", "A kernel reads and writes rows that do not exist."],
    ["further(firstColumn, right)", "firstColumn", "A kernel reads and writes columns that do not exist."],
  ]),
  ...law("copy/turned", [
    ['[[permute(a, b, "5410")], [permute(a, b, "7632")]]', "[...words]", "Elements of two bytes are not transposed."],
    ['[permute(c, d, "5140"), permute(c, d, "7362")]', "[c, d]", "Bytes are not transposed."],
  ]),
  ...law("copy/copyHost", [
    [
      "  if (itemsize < 1) return null;\n",
      "",
      "Packed elements are moved as if each had bytes of its own.",
    ],
    [
      "to: destination.sliceOffsetInBytes, from: source.sliceOffsetInBytes",
      "to: 0, from: source.sliceOffsetInBytes",
      "A part of an array is written at the start of the whole.",
    ],
    [
      "to: destination.sliceOffsetInBytes, from: source.sliceOffsetInBytes",
      "to: destination.sliceOffsetInBytes, from: 0",
      "A part of an array is read from the start of the whole.",
    ],
  ]),
  ...law("copy/PlanCache", [
    [" && isFor(last, source, destination, kind)", "", "An array is copied with the layouts of the last copy."],
    [
      " || found !== newer && !isFor(found, source, destination, kind)",
      "",
      "An array is copied with the layouts of another copy of the same set.",
    ],
    ["  if (cached.kind !== kind) return false;\n", "", "Elements of another size or type are copied."],
    ["  if (shape.length !== knownShape.length) return false;\n", "", "A copy of fewer axes is made as one of more."],
    ["    if (shape[axis] !== knownShape[axis]) return false;\n", "", "Elements outside an array are copied."],
    ["to[axis] !== knownTo[axis] || ", "", "An array is written with the strides of another one."],
    [" || from[axis] !== knownFrom[axis]", "", "An array is read with the strides of another one."],
    [
      "cached.source === source && cached.destination === destination",
      "cached.destination === destination",
      "An array is read with the layout of one that was copied to the same destination.",
    ],
    [
      "cached.source === source && cached.destination === destination",
      "cached.source === source",
      "An array is written with the layout of one that the same source was copied to.",
    ],
    ["    this.#cached[place + 1] = this.#cached[place];\n", "", "Two copies in turn are planned each time."],
  ]),
  ...law("copy/planHostCopy", [
    [
      "const isFree = elementsAreApart(longer, itemsize);",
      "const isFree = true;",
      "Where elements overlap, a different one wins than before.",
    ],
    ["    if (Math.abs(to) < taken) return false;\n", "", "Where elements overlap, a different one wins than before."],
    ["Math.abs(to) < taken", "Math.abs(to) < itemsize", "Overlapping rows are written in a different order."],
    [
      "const longer = axes.filter(({ extent }) => extent > 1);",
      "const longer = axes;",
      "An axis of one element makes a destination's elements seem to overlap, and makes runs short.",
    ],
    [
      "longer.map(turnedForwards) : longer",
      "longer : longer",
      "An array that is reversed on both sides is moved element by element.",
    ],
    [
      "to: -axis.to, from: -axis.from",
      "to: -axis.to, from: axis.from",
      "A reversed destination gets its elements in the wrong order.",
    ],
    ["if (after[i] !== axis) start +=", "if (false) start +=", "A reversed destination is written outside its memory."],
    [
      "forwards.toSorted((one, other) => other.to - one.to)",
      "forwards",
      "A copy between two arrays in F order goes element by element.",
    ],
    ["outer.to === axis.extent * axis.to && outer.from", "outer.from", "Gaps of the destination are overwritten."],
    [" && outer.from === axis.extent * axis.from", "", "Gaps of the source are copied."],
    [
      "inner !== undefined && inner.to === itemsize;",
      "inner !== undefined;",
      "Elements with gaps between them are written as one run.",
    ],
    ["isDense && inner.from === itemsize", "isDense", "Elements with gaps between them are read as one run."],
    [
      "if (last < 0) start += last;\n",
      "if (last < 0) start += 0;\n",
      "Memory before an array is written if a layout is wrong.",
    ],
    ["const filled = isFree && isDense", "const filled = isDense", "Overlapping rows are filled in a different order."],
    [
      "toOffset: toOffset + part.to + piece.toOffset",
      "toOffset: toOffset + part.to",
      "The end of a filled row is not filled.",
    ],
  ]),
  ...law("copy/hostTiles", [
    [
      "partner === undefined || run >= lineBytes",
      "true || run >= lineBytes",
      "A transpose fetches each line again and again.",
    ],
    [
      "inner === undefined || partner === undefined || run >= lineBytes",
      "inner === undefined || partner === undefined",
      "Long rows are moved in tiles.",
    ],
    [
      "Math.max(partnerLeast, Math.floor(",
      "Math.min(partnerLeast, Math.floor(",
      "Interleaved planes are moved in tiny tiles.",
    ],
    ["...outer, ...p.tiles, ...i.tiles,", "...outer, ...i.tiles,", "Only the first tile along an axis is moved."],
    [
      "isLong ? [p.within, i.within] : [i.within, p.within]",
      "[p.within, i.within]",
      "Thousands of rows of three elements are moved one by one.",
    ],
    ["extent < 1.5 * side ? extent : side", "extent", "A tile is as large as the array."],
    ["  if (left > 0) {", "  if (left > 1e9) {", "The remainder beside the tiles is not moved."],
    [
      "const [toStart, fromStart] = [whole * side * to, whole * side * from];",
      "const [toStart, fromStart] = [side * to, side * from];",
      "The remainder beside the tiles is moved from a wrong place.",
    ],
    [
      "to: side * to, from: side * from }",
      "to: side * to, from: side * to }",
      "Tiles are read at the offsets where they are written.",
    ],
  ]),
  ...law("copy/piecesOf", [
    [
      "units.find((unit) => unit <= run) ?? 1",
      "units.find((unit) => unit >= run) ?? 16",
      "More bytes are written than the elements have.",
    ],
    ["if (Number.isInteger(step))", "if (true)", "Pieces begin between two bytes."],
    [
      "extent: steps + 1, to: step, from: step",
      "extent: steps, to: step, from: step",
      "The end of a run is not moved.",
    ],
    [
      "isAlone ? longestAlone : isFar ? longestFar : longestByUnits",
      "isFar ? longestFar : longestByUnits",
      "A long run is moved 16 bytes at a time, although memcpy is faster.",
    ],
    ["...isFar ? { isFar } : {}", "", "The destination of a large copy is fetched before it is overwritten."],
    [" || !isFree) return asOne", ") return asOne", "Overlapping rows are written in a different order."],
    [
      "toOffset: length, fromOffset: length",
      "toOffset: length, fromOffset: 0",
      "The end of a row is read from its beginning.",
    ],
    ["extent: Math.floor(run / bytes)", "extent: Math.ceil(run / bytes)", "Bytes past the end of a row are written."],
    ["1.5 * fewestSteps : fewestSteps", "run : run", "Planning takes as long as the copy."],
  ]),
  ...law("copy/fillingOf", [
    ["element === undefined || run < 16", "element === undefined", "A short row is filled beyond its end."],
    ["Math.floor(run / 16)", "Math.ceil(run / 16)", "A row is filled beyond its end."],
    ["toOffset: run - 16", "toOffset: run - 8", "A row is filled beyond its end."],
    ["[body] : [body, end]", "[body] : [body]", "The end of a row is not filled."],
  ]),
  ...law("copy/moveByLoops", [
    [
      "row.to === bytes && row.from === bytes",
      "row.to === bytes",
      "Elements with gaps between them are copied as one run.",
    ],
    [
      "row.to === bytes && row.from === bytes",
      "row.from === bytes",
      "Gaps between elements are overwritten.",
    ],
    [
      "let all = bytes | toStart | fromStart;",
      "let all = bytes | toStart;",
      "Words are read from unaligned addresses.",
    ],
    [
      "for (const { to, from } of axes) all |= to | from;",
      "for (const { to } of axes) all |= to;",
      "Words are read from unaligned addresses.",
    ],
    [
      "{ extent: words, to: width, from: width }",
      "{ extent: words, to: width, from: 0 }",
      "An element's first word is also written in place of the others.",
    ],
    ["row32 !== null && width === 4 || words === 1", "words <= 4", "Half of an element is not moved."],
    [
      "element !== undefined) return moveByLoops(withoutFilling(move, element), to, from, near)",
      "false) return",
      "Elements beside the repeated one are read.",
    ],
    [
      "const before = (width - byteOffset % width) % width;",
      "const before = byteOffset % width;",
      "Arrays that begin at odd bytes cannot be moved.",
    ],
  ]),
  ...law("copy/words32", [
    [
      "at = (at + toStep) | 0;\n    from",
      "at = (at + fromStep) | 0;\n    from",
      "Words are written at the source's steps.",
    ],
    ["(fromAt + fromStep) | 0", "(fromAt + toStep) | 0", "Words are read at the destination's steps."],
    ["i !== n", "i < n - 1", "The last word of a row is not moved."],
  ]),
  ...law("copy/twoWords", [
    ["    to[at + 1] = from[fromAt + 1] ?? 0;\n", "", "Half of an element is not moved."],
    ["(at + toStep) | 0;\n    from", "(at + 2) | 0;\n    from", "Elements are written without the gaps between them."],
    ["(fromAt + fromStep) | 0", "(fromAt + 2) | 0", "Gaps between elements are read as elements."],
  ]),
  ...law("copy/fourWords", [
    ["    to[at + 1] = from[fromAt + 1] ?? 0;\n", "", "A quarter of an element is not moved."],
    ["    to[at + 2] = from[fromAt + 2] ?? 0;\n", "", "A quarter of an element is not moved."],
    ["    to[at + 3] = from[fromAt + 3] ?? 0;\n", "", "A quarter of an element is not moved."],
    ["(fromAt + fromStep) | 0", "(fromAt + toStep) | 0", "Elements are read at the destination's steps."],
  ]),
  ...law("copy/words16", [
    [
      "at = (at + toStep) | 0;\n    from",
      "at = (at + fromStep) | 0;\n    from",
      "Words are written at the source's steps.",
    ],
    ["(fromAt + fromStep) | 0", "(fromAt + toStep) | 0", "Words are read at the destination's steps."],
  ]),
  ...law("copy/words8", [
    [
      "at = (at + toStep) | 0;\n    from",
      "at = (at + fromStep) | 0;\n    from",
      "Bytes are written at the source's steps.",
    ],
    ["(fromAt + fromStep) | 0", "(fromAt + toStep) | 0", "Bytes are read at the destination's steps."],
  ]),
  ...law("copy/wordsFarApart", [
    [
      "to[t + i * toStep] = from[f + i * fromStep] ?? 0",
      "to[t + i * toStep] = from[(f | 0) + i * toStep] ?? 0",
      "In long arrays without machine code steps of the source are those of the destination.",
    ],
  ]),
  ...law("copy/copyAtOnce", [
    [
      "    return false; // the two overlap\n",
      "",
      "Elements that a copy has overwritten are copied again.",
    ],
    ["fromFirst + plan.from.end > toFirst + plan.to.start", "false", "A copy overwrites what it has yet to read."],
    ["plan.to.start", "0", "Elements before the first one of a reversed array seem not to overlap."],
    ["plan.from.start", "0", "Elements before the first one of a reversed array seem not to overlap."],
    ["toStart + to.offset", "toStart", "A view that begins inside its buffer is written at the buffer's start."],
    ["fromStart + from.offset", "fromStart", "Bytes before a view that begins inside its buffer are read."],
    [" + to.layout.sliceOffsetInBytes", "", "A slice is written at the start of the whole array."],
    [" + from.layout.sliceOffsetInBytes", "", "A slice is read from the start of the whole array."],
  ]),
  ...law("copy/threadsFor", [
    [" || !isFree ?", " ?", "Where elements of a destination overlap, threads decide which one wins."],
    [" / minBytesPerThread)", " / 2 ** 20)", "Copies of 2 MiB wait for threads to start and end."],
    [" / minBytesPerThread)", " / 2 ** 26)", "Copies of 16 MiB use one processor."],
    [
      "Math.min(Math.floor(run * runs / minBytesPerThread), maxThreads)",
      "Math.floor(run * runs / minBytesPerThread)",
      "Copies start more threads than memory can keep busy.",
    ],
    ["Math.min(cpus ?? navigator.hardwareConcurrency, worth)", "worth", "More threads copy than there are processors."],
  ]),
  ...law("copy/readyPlan", [
    ["threads = threadsFor(plan)", "threads = 1", "Large copies use one processor."],
    ["threads < 2) return", "true) return", "Large copies use one processor."],
    [
      "splitMoves(plan.moves, threads, least)",
      "splitMoves(plan.moves, threads)",
      "Moves are split at another size than asked for.",
    ],
  ]),
  ...law("copy/threadsOf", [
    ["bytes < worthThreads ? 1 : ", "", "Conversions of 32 MiB cost half as much processor time again."],
    ["fromBytes + toBytes)", "fromBytes)", "Conversions are split among threads later than they are worth it."],
  ]),
  ...law("copy/ConversionStage", [
    [
      "MAX_BYTES / Math.max(this.fromBytes, this.toBytes)",
      "MAX_BYTES / this.fromBytes",
      "Results of small elements leave the nearest cache.",
    ],
    [
      "this.most * this.fromBytes + 64;",
      "this.most * this.toBytes;",
      "Results overwrite elements that are not converted yet.",
    ],
    ["from.isComplex && to.isComplex ? TURN / 2 : TURN", "TURN", "Half of the complex numbers are not converted."],
    [
      "count * (this.fromBytes + this.toBytes) >= FAR_BYTES",
      "count * this.fromBytes >= FAR_BYTES",
      "The nearest cache is filled while far memory streams through it.",
    ],
    [
      "    if (!this.isFar(count)) return this.most;\n",
      "",
      "Arrays in a cache are converted in more boxes than they need.",
    ],
    [
      "Math.min(this.most, Math.floor(MAX_FAR_BYTES / bytes / LINE) * LINE)",
      "Math.floor(MAX_FAR_BYTES / bytes)",
      "Boxes of far memory end inside cache lines.",
    ],
    [
      "bytes.subarray(at, at + count * this.fromBytes), 0)",
      "bytes.subarray(at), 0)",
      "Elements behind a box overwrite the results, or do not fit.",
    ],
    ["Math.ceil(count / this.turn)", "Math.floor(count / this.turn)", "The last elements are not converted."],
    [
      "this.outputAt + count * this.toBytes)",
      "this.outputAt + this.most * this.toBytes)",
      "Bytes behind a short run are overwritten.",
    ],
  ]),
  ...law("copy/splitMoves", [
    ["bytesOf(move) < least ? [move] : partsOf", "partsOf", "A few bytes are split among threads."],
    ["toOffset: toOffset + start * outer.to", "toOffset", "All threads write the same part."],
    ["fromOffset: fromOffset + start * outer.from", "fromOffset", "All threads read the same part."],
    ["fromOffset: fromOffset + start,", "fromOffset,", "All threads read the start of a run."],
    [".filter(({ length }) => length > 0)", "", "A thread gets a move without pieces, which counts as endless."],
    [
      "axes.find(({ extent }) => extent >= minStepsPerPart * count) ?? longest",
      "axes[0] ?? longest",
      "One thread does most of the work.",
    ],
  ]),
  ...law("copy/isOneRun", [
    [
      "  return destination.isContiguousAny;",
      "  return true;",
      "Elements with gaps are converted as if there were none.",
    ],
    [
      "shape[axis] !== 1 && from[axis] !== to[axis]",
      "false",
      "A transposed array is converted in the order of its memory.",
    ],
    ["shape[axis] !== 1 && ", "", "An axis of one element makes the conversion of a run slow."],
  ]),
  ...law("copy/convertInPlace", [
    [
      "  checkSpan({ start: from, end: from + volume * stage.fromBytes }, source);\n",
      "",
      "A conversion reads past the end of the memory.",
    ],
    [
      "  checkSpan({ start: to, end: to + volume * stage.toBytes }, destination);\n",
      "",
      "A conversion writes past the end of the memory.",
    ],
    ["  if (fromStart === 0 || toStart === 0) return false;\n", "", "Memory without an address is written at NULL."],
    ["  if (volume < stage.turn) return false;\n", "", "Bytes past a few elements are converted, too."],
    ["toStart + to, fromStart + from", "toStart, fromStart + from", "Results are written before their offset."],
    ["toStart + to, fromStart + from", "toStart + to, fromStart", "Elements before the first one are converted."],
  ]),
  ...law("copy/convertAt", [
    ["const last = count - turn;", "const last = whole * turn;", "Bytes past the last element are converted, too."],
    ["  if (whole * turn < count) loop", "  if (false) loop", "The last elements are not converted."],
    ["start * turn * fromBytes", "start * fromBytes", "Threads convert the same elements."],
    ["start * turn * toBytes", "start * toBytes", "Threads write the same elements."],
  ]),
  ...law("copy/convertOnly", [
    ["source === 0 || ", "", "Machine code reads memory that may have moved."],
    ["destination === 0 || ", "", "Machine code writes memory that may have moved."],
    ["source + first.from", "source", "A slice is read from the start of the whole array."],
    ["destination + first.to", "destination", "A slice is written at the start of the whole array."],
    [" + plan.fromOffset", "", "An array that is reversed in the destination is read from its other end."],
    [" + plan.toOffset", "", "A reversed array is written from its other end."],
  ]),
  ...law("copy/runShares", [
    ["    if (error instanceof FfiError) return false;\n", "", "A copy fails because a thread cannot be started."],
    ["    runMoves(ours, toStart, fromStart);\n", "", "This thread's part is not copied."],
    [
      "    team.close(); // waits until all moves are done\n",
      "",
      "A copy returns before it is done, and its threads are left running.",
    ],
  ]),
  ...law("copy/carryOut", [
    ["  checkSpan(plan.to, to, first.to);\n", "", "Bytes outside the memory are written."],
    ["  checkSpan(plan.from, from, first.from);\n", "", "Bytes outside the memory are read."],
    [
      "if (toStart === 0 || fromStart === 0) return loopOver(plan.moves, to, from, first);\n",
      "",
      "Memory without an address is written at NULL.",
    ],
  ]),
  ...law("copy/hostPlaces", [
    ["offset + start < 0 || ", "", "Bytes before the memory are read."],
    [" || offset + end > length", "", "Bytes past the end of the memory are read."],
    [
      "first + byteOffset + offset",
      "first + offset",
      "An array that begins inside its buffer is moved from the buffer's start.",
    ],
  ]),
  ...law("copy/fillElements", [
    ["  orderStreams(home, stream);\n", "", "A fill runs before the earlier work of the home stream."],
    ["  orderStreams(stream, home);\n", "", "Later work of the home stream runs before the fill."],
    [
      "    if (element.some((byte, at) => byte !== element[at % width])) continue;\n",
      "",
      "Only a part of the value is repeated.",
    ],
    ["!layout.isContiguousAny || ", "", "A fill overwrites the gaps between the elements."],
  ]),
];
