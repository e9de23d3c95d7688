/** The protective lines of copies: plans, conversions, the host and kernels. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const copyMutations: readonly Mutation[] = [
  ...law("copy/joinToBytes", [
    [
      "  if (!fits || !Number.isInteger(draft.from) || !Number.isInteger(draft.to)) return false;\n",
      "  if (!fits) return false;\n",
      "Elements that begin inside a byte are copied as if they did not.",
    ],
  ]),
  ...law("copy/readElements", [
    [
      "    await readBack(array, bytes, layout, stream, null);\n",
      "    copyHost(new OnHost(array), { bytes, offset: 0, layout });\n",
      "What comes as a typed array is not written yet.",
    ],
    [
      "  } else if (stream !== null) {\n",
      "  } else if (stream !== null && !stream.isDone) {\n",
      "Page-locked memory is read before the default stream has written what comes before its home stream's next work.",
    ],
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
      "The host copies before the stream is there.",
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
      "What Python writes to a copy is lost without a word.",
    ],
  ]),
  ...law("copy/copyToHost", [
    ["  hostWaitsForCopy(order); // a consumer", "  // a consumer", "The host reads a copy before it is made."],
  ]),
  ...law("copy/copyToDevice", [
    [
      "  if (device === null) hostWaitsForCopy(home); // host memory may change as soon as this returns\n",
      "",
      "A copy has what the host has written after it was asked for.",
    ],
    [
      "    using _memory = staged.buffer;",
      "    void staged.buffer;",
      "Memory on the way between two devices stays for ever.",
    ],
    [
      "  if (device === null) hostWaitsForCopy(home);",
      "",
      "What changes on the host after the export changes the copy.",
    ],
  ]),
  ...law("copy/accessOptions", [
    ["? ways.reverse() : ways", "? ways : ways", "A kernel reaches over for what lies far apart."],
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
    ["  orderStreams(helper, stream);\n", "", "What comes after a copy does not wait for the other device."],
  ]),
  ...law("copy/tiled", [
    ["alignment % 4 === 0 && ", "", "A kernel reads four bytes from an address where it cannot."],
  ]),
  ...law("copy/lanesOf", [
    [
      "if (axis === inner) return extent % lanes === 0 && ",
      "if (axis === inner) return ",
      "A kernel reads more rows than there are.",
    ],
    [
      "if (axis === along) return extent % lanes === 0 && ",
      "if (axis === along) return ",
      "A kernel reads beyond the ends of rows.",
    ],
    [
      "return to % lanes === 0 && from % lanes === 0;",
      "return true;",
      "A kernel reads four bytes from an address where it cannot.",
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
    ["  orderStreams(stream, home);\n", "", "The source changes before it was read."],
    ["  orderStreams(stream, other);\n", "", "The destination is read before it was written."],
  ]),
  ...law("copy/copy", [
    [
      "  if (ways.length > 0) takeAccess(ways, sizeOf(destination.layout));\n",
      "",
      "Views go by way of the host, at a tenth of the rate.",
    ],
  ]),
  ...law("copy/arranged", [
    [
      "if (captureOf(stream) !== null)",
      "if (stream.isClosed)",
      "A graph reads what the host has arranged once, and freed.",
    ],
  ]),
  ...law("copy/copyBetween", [
    ["      copyAlike(source, landed, sending);\n", "      copy(source, landed, sending);\n", "Sending never ends."],
    [
      "      orderStreams(receiving, sending); // the memory is allocated by then\n",
      "",
      "A device sends to memory that is not allocated yet.",
    ],
    ["      orderStreams(sending, receiving);\n", "", "Elements are spread before they have arrived."],
  ]),
  ...law("copy/toDevice", [
    [
      '  noteElementAccess(source, false, "view.copyFrom()");\n',
      "",
      "The host arranges what is not there yet, and nobody hears.",
    ],
  ]),
  ...law("copy/toHost", [
    [
      '  noteElementAccess(destination, true, "view.copyFrom()");\n',
      "",
      "The host writes what is still read, and nobody hears.",
    ],
    [
      "  hostWaitsForCopy(stream);\n  noteElementAccess(destination",
      "  noteElementAccess(destination",
      "The host arranges what is not there yet.",
    ],
  ]),
  ...law("copy/planConversion", [
    [
      "isFree ? boxOf(ordered, most) : filled(",
      "true ? boxOf(ordered, most) : filled(",
      "Where elements of a destination meet, another one stays than the last.",
    ],
    ["first.to + startOf", "startOf", "What was cut out is written where the whole begins."],
    ['startOf(longer, forwards, "from"),', "0,", "An array that is turned over is read from its other end."],
  ]),
  ...law("copy/isRun", [
    ["    step *= extent;\n", "", "Rows with gaps between them are taken for one run."],
  ]),
  ...law("copy/convertRun", [
    [
      "  checkSpan({ start: from, end: from + count * stage.fromBytes }, { bytes: read, offset: 0 });\n",
      "",
      "What was transferred to another thread is converted from what was converted before.",
    ],
  ]),
  ...law("copy/readyFor", [
    ["known?.source === source && ", "", "An array is read as another one lay that was converted before."],
  ]),
  ...law("copy/convertBoxes", [
    ["  checkSpan(plan.from, from);\n", "", "Machine code reads what is not in the memory."],
    ["  checkSpan(plan.to, to);\n", "", "Machine code writes what is not in the memory."],
    ["if (hasRest) convertRow", "if (false) convertRow", "The last elements of a row are not converted."],
    ["    if (hasRest) walk(", "    if (false) walk(", "The last rows are not converted."],
  ]),
  ...law("copy/convertRow", [
    [" && source.start !== 0", "", "Machine code reads memory that may have moved."],
    [" && destination.start !== 0", "", "Machine code writes memory that may have moved."],
  ]),
  ...law("copy/boxFor", [
    ["extent % length : length", "length : length", "Elements behind the last ones are converted, too."],
  ]),
  ...law("copy/conversionLoop", [
    ["Math.min(from.bits, to.bits)", "to.bits", "Elements are lost where one vector becomes half of one."],
  ]),
  ...law("copy/valuesOf", [
    ['apply("i8x16.min_u", vector, loop.constant(8, 1n))', "vector", "What is true becomes another number than 1."],
  ]),
  ...law("copy/truths", [
    ['shifted(16, "shl", vector, 1)', "vector", "A negative zero of 16 bits is true."],
    [
      'apply(from.bits === 32 ? "f32x4.ne" : "f64x2.ne", vector, zero)',
      "differs(from.bits, vector, zero)",
      "A negative zero is true.",
    ],
    ["masks.map((mask) => eitherPart(loop, mask, from.bits))", "masks", "A complex number is true for its real part."],
  ]),
  ...law("copy/floatsOf", [
    ['? "u" : "s";', '? "s" : "s";', "Large integers without a sign become negative floats."],
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
    ["2n ** 63n - 1n", "2n ** 63n - 2n", "What is too large becomes an integer that is not the largest."],
    ["-(2 ** 63)", "-(2 ** 62)", "Integers of 64 bits end where those of 63 do."],
    ["2 ** 52 + 2 ** 51", "2 ** 52", "Negative floats become other integers of 64 bits."],
  ]),
  ...law("copy/isSmallWhole", [
    ["loop.double(2 ** 51)", "loop.double(2 ** 53)", "Doubles become integers of which they do not have all bits."],
    ['apply("f64x2.abs", double)', "double", "Large negative doubles become other integers."],
    [
      'apply("v128.and", isSmall, apply("f64x2.ge", double, loop.double(0)))',
      "isSmall",
      "Small negative doubles become large integers without a sign.",
    ],
  ]),
  ...law("copy/smallWhole", [
    ['apply("f64x2.trunc", double)', "double", "Small doubles are rounded to integers."],
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
      "The host rounds away from zero before it rounds.",
    ],
  ]),
  ...law("copy/fromHalf", [
    ["0x007f_ffffn", "-1n", "Subnormal float16s become other numbers."],
    ["0x0f7f_ffffn", "0x0fff_ffffn", "An infinite float16 becomes 65536."],
  ]),
  ...law("copy/toHalf", [
    ['apply("i32x4.add", rebased, tie)', "rebased", "Ties become odd float16s."],
    [
      'apply("i32x4.min_s", rounded, loop.constant(32, 0x7c00n))',
      "rounded",
      "What is too large for a float16 is no number.",
    ],
    ["0x387f_ffffn", "0x37ff_ffffn", "Subnormal float16s are cut off, not rounded."],
    ['apply("v128.or", number, quiet)', "number", "NaN becomes an infinite float16."],
  ]),
  ...law("copy/toBfloat", [
    [
      'apply("i32x4.add", apply("i32x4.add", float, loop.constant(32, 0x7fffn)), tie)',
      'apply("i32x4.add", float, loop.constant(32, 0x7fffn))',
      "Ties become odd bfloat16s.",
    ],
    [
      'loop.constant(32, 0x7fc0n), shifted(32, "shr_u", rounded, 16), isNaN',
      'shifted(32, "shr_u", rounded, 16), shifted(32, "shr_u", rounded, 16), isNaN',
      "Some NaNs become bfloat16s that are numbers.",
    ],
  ]),
  ...law("copy/copyBits", [
    ["(to[written] ?? 0) & ~mask | ", "", "Neighbours in the same byte become 0."],
    ["skipped === 0 && before === 0 && ", "before === 0 && ", "Bits are copied from where their byte begins."],
  ]),
  ...law("copy/packedKernel", [
    ["setp.ne.and.u32", "setp.eq.and.u32", "Neighbours in the same byte become 0 on the device."],
    ["    keepIf(inside);\n", "", "A kernel writes beyond the last byte of the destination."],
    ['    keepIf(ptx.make("p", `setp.eq.${type} $, ${rest}, 0`));\n', "", "A kernel fills gaps between elements."],
  ]),
  ...law("copy/readBits", [
    ["plus(ptx, bit, bits - 1)", "bit", "Elements that lie in two bytes lose bits."],
  ]),
  ...law("copy/planPacked", [
    ["axis.to > reach", "axis.to > 0", "Elements of interleaved axes are not found."],
  ]),
  ...law("copy/partOf", [
    [" || step < widthOf(bits, axes.slice(1), toBit)", "", "Two threads write the same byte."],
  ]),
  ...law("copy/Spares.take", [
    ["?.pop();", "?.at(-1);", "Two use the same memory at a time."],
    ["    this.#bytes -= size;\n", "", "Less and less memory is kept."],
  ]),
  ...law("copy/Spares.release", [
    [
      "if (this.#isClosed || this.#bytes",
      "if (this.#bytes",
      "What is given back after its device is closed is never freed.",
    ],
    [" || this.#bytes + size > mostKept", "", "More and more memory is kept."],
    [
      "    observerOf(this.#pinned.device.driver)?.closedByUser(buffer.ptr);",
      "    // observerOf;",
      "The checker takes what is kept for a leak.",
    ],
  ]),
  ...law("copy/Spares.close", [
    ["for (const buffer of kept) buffer.close();", ";", "What is kept outlives its device."],
  ]),
  ...law("copy/spares", [
    [", (own) => own.close());", ", () => {});", "What is kept outlives its device."],
  ]),
  ...law("copy/withPinned", [
    ["    closeAfter(buffer, stream);\n", "", "Memory whose use has failed is never freed."],
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
      "Rows take what a default stream has yet to write.",
    ],
  ]),
  ...law("copy/planFor", [
    [
      "  if (!isReady) return null;\n",
      "",
      "A kernel reads memory that it cannot reach, or elements that are not aligned.",
    ],
    [
      "known.conversion?.from !== conversion?.from || ",
      "",
      "Elements are converted as those were that had the same layout before.",
    ],
    ["known.alignment !== alignment || ", "", "Words are read where they do not begin."],
    ["known.canLaunch !== canLaunch ||", "false ||", "A kernel is sent to ordinary memory of the host."],
  ]),
  ...law("copy/asRun", [
    ["peers: peersOf(source, destination, stream) };", "peers: null };", "Two devices need access for any copy."],
  ]),
  ...law("copy/truth", [
    ['isFloat(number) ? "neu"', 'isFloat(number) ? "ne"', "NaN is false to a kernel."],
  ]),
  ...law("copy/saturated", [
    ["selp.b64 $, ${long}, 0", "selp.b64 $, ${long}, 1", "NaN becomes another integer than on the host."],
    ["selp.b32 $, ${whole}, 0", "selp.b32 $, ${whole}, 1", "NaN becomes another integer than on the host."],
    ["min.${sign}32", "max.${sign}32", "A float that is too large wraps around in a kernel."],
  ]),
  ...law("copy/oddFloat", [
    ["selp.u32 $, 1, 0, ${isLossy}", "selp.u32 $, 0, 0, ${isLossy}", "A kernel rounds to bfloat16 twice."],
  ]),
  ...law("copy/load", [
    ['guard === "" ?', "true ?", "The assembler makes one read of several, and some of them are not done."],
  ]),
  ...law("copy/indexKind", [
    ['end <= 2 ** 32 ? "r" : "d"', '"r"', "A kernel for more elements than 32 bits count copies some to other places."],
  ]),
  ...law("copy/quotient", [
    ["2 ** log === divisor", "true", "A kernel divides wrongly, and copies to other places."],
  ]),
  ...law("copy/reciprocal", [
    ["BigInt(end) * excess <= one", "true", "A kernel divides wrongly, and copies to other places."],
  ]),
  ...law("copy/readBack", [
    ["  using copy = snapshot;\n", "  const copy = snapshot;\n", "Memory for a copy is never freed."],
    ["  await stream.completed();\n  //", "  //", "What is read is what was there before."],
    [
      "helperStream(stream.device), staging",
      "stream, staging",
      "Reading waits for what was enqueued after it was asked for.",
    ],
  ]),
  ...law("copy/snapshotOf", [
    ["    copy?.[Symbol.dispose]();\n", "", "Memory for a copy that the device cannot make is never freed."],
  ]),
  ...law("copy/readPinned", [
    ["    await stream.completed();\n    bytes", "    bytes", "What is read is what was there before."],
  ]),
  ...law("copy/tiledKernel", [
    ["further(firstRow, below)", "firstRow", "A kernel reads and writes rows that there are not."],
    ["further(firstColumn, right)", "firstColumn", "A kernel reads and writes columns that there are not."],
  ]),
  ...law("copy/turned", [
    ['[[permute(a, b, "5410")], [permute(a, b, "7632")]]', "[...words]", "Elements of two bytes stay in their rows."],
    ['[permute(c, d, "5140"), permute(c, d, "7362")]', "[c, d]", "Bytes stay in their rows."],
  ]),
  ...law("copy/copyHost", [
    [
      "  if (source.itemsize < 1) return null;\n",
      "",
      "Packed elements are moved as if each had bytes of its own.",
    ],
    [
      "known !== undefined && known.source === source",
      "known !== undefined",
      "A plan for another source moves the wrong bytes.",
    ],
    [
      "to: destination.sliceOffsetInBytes, from: source.sliceOffsetInBytes",
      "to: 0, from: source.sliceOffsetInBytes",
      "A part of an array is written at the start of the whole.",
    ],
  ]),
  ...law("copy/planHostCopy", [
    [
      "const isFree = elementsAreApart(longer, itemsize);",
      "const isFree = true;",
      "Of elements that meet another one stays than before.",
    ],
    ["    if (Math.abs(to) < taken) return false;\n", "", "Of elements that meet another one stays than before."],
    ["Math.abs(to) < taken", "Math.abs(to) < itemsize", "Rows that overlap are written in another order."],
    [
      "const longer = axes.filter(({ extent }) => extent > 1);",
      "const longer = axes;",
      "An axis of one element makes a destination look as if its elements met, and runs short.",
    ],
    [
      "longer.map(turnedForwards) : longer",
      "longer : longer",
      "What is turned over on both sides is moved element by element.",
    ],
    [
      "to: -axis.to, from: -axis.from",
      "to: -axis.to, from: axis.from",
      "A reversed destination gets its elements in the wrong order.",
    ],
    ["if (after[i] !== axis) start +=", "if (false) start +=", "A reversed destination is written beside its memory."],
    [
      "forwards.toSorted((one, other) => other.to - one.to)",
      "forwards",
      "A copy in F order on both sides goes element by element.",
    ],
    ["outer.to === axis.extent * axis.to && outer.from", "outer.from", "Gaps of the destination are written over."],
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
      "Memory before an array is written where a layout is wrong.",
    ],
    ["const filled = isFree && isDense", "const filled = isDense", "Rows that overlap are filled in another order."],
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
      "Rows of three elements are moved, thousands of them.",
    ],
    ["extent < 1.5 * side ? extent : side", "extent", "A tile is as large as the array."],
    ["  if (left > 0) {", "  if (left > 1e9) {", "What is left beside the tiles is not moved."],
    [
      "const [toStart, fromStart] = [whole * side * to, whole * side * from];",
      "const [toStart, fromStart] = [side * to, side * from];",
      "What is left beside the tiles is moved from a wrong place.",
    ],
    [
      "to: side * to, from: side * from }",
      "to: side * to, from: side * to }",
      "Tiles are read where they are written.",
    ],
  ]),
  ...law("copy/piecesOf", [
    [
      "units.find((unit) => unit <= run) ?? 1",
      "units.find((unit) => unit >= run) ?? 16",
      "More is written than the elements.",
    ],
    ["if (Number.isInteger(step))", "if (true)", "Pieces begin between two bytes."],
    ["extent: more + 1, to: step, from: step", "extent: more, to: step, from: step", "The end of a run is not moved."],
    [
      "isAlone ? longestAlone : isFar ? longestFar : longestByUnits",
      "isFar ? longestFar : longestByUnits",
      "A long run is moved by 16 bytes, where memcpy is faster.",
    ],
    ["...isFar ? { isFar } : {}", "", "A large copy is first fetched to be overwritten."],
    [" || !isFree) return asOne", ") return asOne", "Rows that overlap are written in another order."],
    ["toOffset: length, fromOffset: length", "toOffset: length, fromOffset: 0", "The end of a row is its beginning."],
    ["extent: Math.floor(run / bytes)", "extent: Math.ceil(run / bytes)", "What is behind a row is written."],
    ["1.5 * fewest : fewest", "run : run", "A plan takes as long as what it plans."],
  ]),
  ...law("copy/fillingOf", [
    ["element === undefined || run < 16", "element === undefined", "A short row is filled beyond its end."],
    ["Math.floor(run / 16)", "Math.ceil(run / 16)", "A row is filled beyond its end."],
    ["toOffset: run - 16", "toOffset: run - 8", "A row is filled beyond its end."],
    ["[body] : [body, end]", "[body] : [body]", "The end of a row is not filled."],
  ]),
  ...law("copy/moveByLoops", [
    [
      "let all = bytes | toStart | fromStart;",
      "let all = bytes | toStart;",
      "Words are read from where they do not lie.",
    ],
    [
      "for (const { to, from } of axes) all |= to | from;",
      "for (const { to } of axes) all |= to;",
      "Words are read from where they do not lie.",
    ],
    [
      "{ extent: words, to: width, from: width }",
      "{ extent: words, to: width, from: 0 }",
      "An element's first word is written in place of the others.",
    ],
    ["row32 !== null && width === 4 || words === 1", "words <= 4", "Half of an element is not moved."],
    [
      "element !== undefined) return moveByLoops(withoutFilling(move, element), to, from)",
      "false) return",
      "Beside the element that is repeated others are read.",
    ],
    ["    to[at + 3] = from[fromAt + 3] ?? 0;\n", "", "A quarter of an element is not moved."],
    [
      "const before = (width - byteOffset % width) % width;",
      "const before = byteOffset % width;",
      "Arrays that begin at odd bytes cannot be moved.",
    ],
  ]),
  ...law("copy/copyAtOnce", [
    [
      "  if (fromStart + fromSize > toStart && toStart + toSize > fromStart) return false;\n",
      "",
      "Elements that a copy has overwritten are copied again.",
    ],
    ["toStart + to.offset", "toStart", "A view that begins inside its buffer is written at the buffer's start."],
    ["fromStart + from.offset", "fromStart", "Of a view that begins inside its buffer what lies before it is read."],
  ]),
  ...law("copy/splitMoves", [
    ["bytesOf(move) < least ? [move] : partsOf", "partsOf", "A few bytes are split among threads."],
    ["toOffset: toOffset + start * outer.to", "toOffset", "All threads write the same part."],
    ["fromOffset: fromOffset + start * outer.from", "fromOffset", "All threads read the same part."],
    ["fromOffset: fromOffset + start,", "fromOffset,", "All threads read the start of a run."],
    [".filter(({ length }) => length > 0)", "", "A thread has no pieces, which counts as endlessly many."],
    [
      "axes.find(({ extent }) => extent >= enoughParts * count) ?? longest",
      "axes[0] ?? longest",
      "One thread does most.",
    ],
  ]),
  ...law("copy/convertInPlace", [
    [
      "  checkSpan({ start: from, end: from + volume * stage.fromBytes }, source);\n",
      "",
      "What is converted is read from behind the memory.",
    ],
    [
      "  checkSpan({ start: to, end: to + volume * stage.toBytes }, destination);\n",
      "",
      "What was converted is written behind the memory.",
    ],
    ["  if (fromStart === 0 || toStart === 0) return false;\n", "", "Memory that has no address is written at NULL."],
    ["known?.stage === stage ? known", "known !== undefined ? known", "A conversion of other types is made again."],
    ["toStart + to, fromStart + from", "toStart, fromStart + from", "Results are written before their place."],
    ["toStart + to, fromStart + from", "toStart + to, fromStart", "Elements before the first one are converted."],
  ]),
  ...law("copy/readyRun", [
    ["move(count - turn, 1)", "move(whole * turn, 1)", "What is behind the elements is converted, too."],
    ["[one, ...rest]", "[one]", "Where several threads convert, the last elements are not."],
    ["? [move(count - turn, 1)] : []", "? [] : []", "The last elements are not converted."],
    ["move(start * turn, length)", "move(start, length)", "Threads convert the same elements."],
  ]),
  ...law("copy/runShares", [
    ["    if (error instanceof FfiError) return false;\n", "", "A copy fails for want of a thread."],
    ["    runMoves(ours, toStart, fromStart);\n", "", "This thread's part is not copied."],
    [
      "    team.close(); // waits until all moves are done\n",
      "",
      "A copy returns before it is done, and threads are left.",
    ],
  ]),
  ...law("copy/carryOut", [
    ["  checkSpan(plan.to, to);\n", "", "What is not in the memory is written."],
    ["  checkSpan(plan.from, from);\n", "", "What is not in the memory is read."],
    [
      "if (toStart === 0 || fromStart === 0) return loopOver(plan.moves, to, from);\n",
      "",
      "Memory that has no address is written at NULL.",
    ],
  ]),
  ...law("copy/hostPlaces", [
    ["offset + start < 0 || ", "", "What is before the memory is read."],
    [" || offset + end > length", "", "What is behind the memory is read."],
    [
      "first + byteOffset + offset",
      "first + offset",
      "An array that begins inside its buffer is moved from the buffer's start.",
    ],
  ]),
  ...law("copy/fillElements", [
    ["  orderStreams(home, stream);\n", "", "A fill comes before what the home stream holds."],
    ["  orderStreams(stream, home);\n", "", "What the home stream gets next comes before the fill."],
    [
      "    if (element.some((byte, at) => byte !== element[at % width])) continue;\n",
      "",
      "Part of the value is repeated.",
    ],
    ["!layout.isContiguousAny || ", "", "A fill writes what is between the elements."],
  ]),
];
