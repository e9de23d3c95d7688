/** The protective lines of copies: conversions, staging, and copies between two devices. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const copyMutations: readonly Mutation[] = [
  ...law("copy/snapshotOf", [
    ["    copy?.[Symbol.dispose]();\n", "", "Memory for a copy that the device cannot make is never freed."],
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
  ...law("copy/readPinned", [
    ["    await stream.completed();\n    bytes", "    bytes", "What is read is what was there before."],
  ]),
  ...law("view/readElements", [
    [
      "    stream.synchronize();\n  } catch (error) {",
      "  } catch (error) {",
      "What is printed is what was there before.",
    ],
  ]),
  ...law("copy/reciprocal", [
    ["BigInt(end) * excess <= one", "true", "A kernel divides wrongly, and copies to other places."],
  ]),
  ...law("copy/indexKind", [
    ['end <= 2 ** 32 ? "r" : "d"', '"r"', "A kernel for more elements than 32 bits count copies some to other places."],
  ]),
  ...law("copy/load", [
    ['guard === "" ?', "true ?", "The assembler makes one read of several, and some of them are not done."],
  ]),
  ...law("copy/quotient", [
    ["2 ** log === divisor", "true", "A kernel divides wrongly, and copies to other places."],
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
  ...law("copy/packedKernel", [
    ["setp.ne.and.u32", "setp.eq.and.u32", "Neighbours in the same byte become 0 on the device."],
    ["    keepIf(inside);\n", "", "A kernel writes beyond the last byte of the destination."],
    ['    keepIf(ptx.make("p", `setp.eq.${type} $, ${rest}, 0`));\n', "", "A kernel fills gaps between elements."],
  ]),
  ...law("copy/readBits", [
    ["plus(ptx, bit, bits - 1)", "bit", "Elements that lie in two bytes lose bits."],
  ]),
  ...law("copy/partOf", [
    [" || step < widthOf(bits, axes.slice(1), toBit)", "", "Two threads write the same byte."],
  ]),
  ...law("copy/planPacked", [
    ["axis.to > reach", "axis.to > 0", "Elements of interleaved axes are not found."],
  ]),
  ...law("copy/joinToBytes", [
    [
      "  if (!fits || !Number.isInteger(draft.from) || !Number.isInteger(draft.to)) return false;\n",
      "  if (!fits) return false;\n",
      "Elements that begin inside a byte are copied as if they did not.",
    ],
  ]),
  ...law("copy/copyBits", [
    ["(to[written] ?? 0) & ~mask | ", "", "Neighbours in the same byte become 0."],
    ["skipped === 0 && before === 0 && ", "before === 0 && ", "Bits are copied from where their byte begins."],
  ]),
  ...law("copy/copyBetween", [
    ["      copyAlike(source, landed, sending);\n", "      copy(source, landed, sending);\n", "Sending never ends."],
    [
      "      sending.wait(receiving); // the memory is there\n",
      "",
      "A device sends to memory that is not allocated yet.",
    ],
    ["      receiving.wait(sending);\n", "", "Elements are spread before they have arrived."],
  ]),
  ...law("copy/tiledKernel", [
    ["further(firstRow, below)", "firstRow", "A kernel reads and writes rows that there are not."],
    ["further(firstColumn, right)", "firstColumn", "A kernel reads and writes columns that there are not."],
  ]),
  ...law("copy/turned", [
    ['[[permute(a, b, "5410")], [permute(a, b, "7632")]]', "[...words]", "Elements of two bytes stay in their rows."],
    ['[permute(c, d, "5140"), permute(c, d, "7362")]', "[c, d]", "Bytes stay in their rows."],
  ]),
  ...law("copy/oddFloat", [
    ["selp.u32 $, 1, 0, ${isLossy}", "selp.u32 $, 0, 0, ${isLossy}", "A kernel rounds to bfloat16 twice."],
  ]),
  ...law("copy/saturated", [
    ["selp.b64 $, ${long}, 0", "selp.b64 $, ${long}, 1", "NaN becomes another integer than on the host."],
    ["selp.b32 $, ${whole}, 0", "selp.b32 $, ${whole}, 1", "NaN becomes another integer than on the host."],
    ["min.${sign}32", "max.${sign}32", "A float that is too large wraps around in a kernel."],
  ]),
  ...law("copy/truth", [
    ['isFloat(number) ? "neu"', 'isFloat(number) ? "ne"', "NaN is false to a kernel."],
  ]),
  ...law("copy/longReader", [
    ["(low & 0x7ff) === 0 ? low", "true ? low", "The host rounds integers of 64 bits twice."],
    ["isSmall || ", "high < 2 ** 20 || ", "The host rounds negative integers of 64 bits twice."],
  ]),
  ...law("copy/nearestBfloat16", [
    ["bits - 1 : bits) | 1", "bits - 1 : bits)", "The host rounds to bfloat16 twice."],
  ]),
  ...law("copy/runMover", [
    ["start % From.BYTES_PER_ELEMENT !== 0 || ", "", "Elements at odd addresses cannot be converted."],
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
  ...law("copy/copyOnDevice", [
    ["  source.buffer.pinUntilPassed(stream);\n", "", "Memory is freed before a copy between views has read it."],
    [
      "  destination.buffer.pinUntilPassed(stream);\n",
      "",
      "Memory is freed before a copy between views has written it.",
    ],
    ["  if (home !== null) stream.wait(home);\n", "", "A copy reads what its source's home has yet to write."],
    ["  if (other !== null) stream.wait(other);\n", "", "A copy writes what its destination's home has yet to read."],
    ["  home?.wait(stream);\n", "", "The source changes before it was read."],
    ["  other?.wait(stream);\n", "", "The destination is read before it was written."],
  ]),
  ...law("copy/arranged", [
    [
      "if (captureOf(stream) !== null)",
      "if (stream.isClosed)",
      "A graph reads what the host has arranged once, and freed.",
    ],
  ]),
  ...law("copy/enqueueOn", [
    ["  helper.wait(stream);\n", "", "A copy begins on the other device before its turn."],
    ["  stream.wait(helper);\n", "", "What comes after a copy does not wait for the other device."],
  ]),
  ...law("copy/canReach", [
    ["(buffer.pool?.isReachedBy(device) ?? false)", "true", "A kernel uses memory without access."],
  ]),
  ...law("memory/toDevice", [
    [
      "    ring.wait(chunk); // the bus may still read what was in the slot\n",
      "",
      "Threads fill a slot that the bus still reads.",
    ],
    [
      "    ring.team.finish(); // the chunk is in its slot\n",
      "",
      "The bus takes a chunk that threads have not copied yet.",
    ],
  ]),
  ...law("memory/toHost", [
    ["      ring.wait(chunk); // the bus is done with it\n", "", "Threads empty a slot that the bus still fills."],
    [
      "    ring.wait(chunk); // an earlier copy's chunk may not have left the slot yet\n",
      "",
      "The bus fills a slot whose bytes are still on their way to the device.",
    ],
  ]),
  ...law("memory/StagingRing.constructor", [
    [
      "observerOf(device.driver)?.closedByUser(this.#memory); // it goes",
      "// it goes",
      "The ring is reported as lost.",
    ],
  ]),
  ...law("native/ThreadTeam.start", [
    ["    team.close();\n    throw", "    throw", "Threads of a team that is not complete wait for ever."],
  ]),
  ...law("native/withoutSignals", [
    ["pthread_sigmask(SIG_BLOCK, all, before)", "pthread_sigmask(SIG_BLOCK, 0n, before)", "Threads get signals."],
    ["pthread_sigmask(SIG_SETMASK, before, 0n)", "pthread_sigmask(SIG_SETMASK, 0n, 0n)", "JavaScript gets no signals."],
  ]),
  ...law("native/ThreadTeam.begin", [
    ["underWay === rounds || ", "", "A round overwrites what another still counts by."],
    ["calls.length > most", "false", "Calls overwrite others that nobody has taken."],
  ]),
  ...law("copy/outOfReach", [
    [
      "  if (canReachDevices(device, source) && canReachDevices(device, destination)) return null;\n",
      "  return null;\n",
      "A copy on a stream of another device is refused by the driver.",
    ],
  ]),
  ...law("device/checkReached", [
    [
      "code !== CUresult.CUDA_ERROR_INVALID_VALUE",
      "code !== CUresult.CUDA_SUCCESS",
      "Nobody says what is out of reach.",
    ],
    ["owner.ordinal === device.ordinal", "false", "Memory of the stream's own device is said to be out of reach."],
  ]),
  ...law("arrow/ArrowArray.get", [
    ["    else this.#prepare();\n", "", "Elements are read before they are written."],
  ]),
  ...law("arrow/ArrowArray.prepare", [
    ["      void view.buffer.ptr; // throws if it is closed\n", "", "A closed array gives the engine's words."],
  ]),
  ...law("cdata/hostBytes", [
    ['  hostWaitsToRead(array, "array.get()");\n', "", "Offsets and nulls are read before they are written."],
  ]),
  ...law("cdata/ArrowDeviceArray.take", [
    [", deviceArray: array.address }", " }", "Memory of a device is taken for the host's."],
  ]),
  ...law("dlpack/checkAddress", [
    ["  if (!isAddress(address)) {\n", "  if (false) {\n", "An address that no memory has is read."],
  ]),
  ...law("cdata/Walk.pointer", [
    ["    if (!isAddress(address)) {\n", "    if (false) {\n", "An address that no memory has is read."],
  ]),
  ...law("memory/MemoryChannel.markEnd", [
    [
      "      waitForEnd(stream);\n      return null;\n",
      "      throw 0;\n",
      "The owner never hears that its memory is free.",
    ],
  ]),
  ...law("memory/MemoryChannel.listen", [
    ["      this.#failure = error;\n", "", "What cannot be understood looks like the end of what was sent."],
  ]),
  ...law("memory/MemoryChannel.receive", [
    [
      "      if (this.#failure !== undefined) throw this.#failure;\n",
      "",
      "What cannot be understood looks like the end of what was sent.",
    ],
  ]),
  ...law("memory/planAccess", [
    ["  if (accesses.some(isTaken)) return null;\n", "", "Access to a second pool is taken that nobody needs."],
    [" || isCapturing(first.owner.driver)", "", "What a capture could refuse is asked for while it goes on."],
    [
      "access.buffer.pool !== null && canBeGranted(access)",
      "canBeGranted(access)",
      "Kernels go without access that they could have.",
    ],
  ]),
  ...law("memory/canBeGranted", [
    [" || isWithheld(access)", "", "A device gets the access that the pool's user has taken from it."],
    ["!has(refused, access) && ", "", "The driver is asked for every copy what it has refused."],
    ["pool.isClosed || isWithheld", "isWithheld", "A copy from a closed pool's memory throws."],
  ]),
  ...law("memory/take", [
    ["note(isEnabled ? enabled : refused, access)", "note(refused, access)", "Access is taken for every copy."],
  ]),
  ...law("memory/takeAccess", [
    [
      "  if (bytes < worthSaying || accesses.some(isTaken)) return;\n",
      "",
      "It is said of a fast copy that it is slow.",
    ],
  ]),
  ...law("memory/PeerAccessSet.become", [
    [
      "    for (const ordinal of decided) withheld.add(ordinal);\n",
      "",
      "What the user has said of a pool does not stand.",
    ],
    [
      "    for (const ordinal of wanted) withheld.delete(ordinal);\n",
      "",
      "What was taken back once is never given again.",
    ],
  ]),
  ...law("memory/warnAboutCost", [
    ["  if (word.isCostReported) return;\n", "", "The console is told of every copy."],
  ]),
  ...law("memory/copyBytes", [
    [
      "if (peers !== null) takeAccess(accessesBetween(source, peers.from, destination, peers.to), bytes);\n",
      "",
      "Buffers go by way of the host, at a tenth of the rate.",
    ],
  ]),
  ...law("copy/copy", [
    [
      "  if (ways.length > 0) takeAccess(ways, sizeOf(destination.layout));\n",
      "",
      "Views go by way of the host, at a tenth of the rate.",
    ],
  ]),
  ...law("copy/accessOptions", [
    ["? ways.reverse() : ways", "? ways : ways", "A kernel reaches over for what lies far apart."],
  ]),
  ...law("memory/isRingWorthIt", [
    ["return rings.has(device) || ", "return ", "What a ring is there for goes without it."],
    [
      "(unstaged.get(device) ?? 0) + bytes >= worthStarting",
      "bytes >= worthStarting",
      "Many copies of a few MiB never get a ring.",
    ],
    ["(unstaged.get(device) ?? 0) + bytes >= worthStarting", "true", "One copy of 4 MiB pays for a ring."],
  ]),
  ...law("copy/copyOnHost", [
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
  ]),
  ...law("copy/toHost", [
    [
      "  stream.synchronize();\n  noteElementAccess(destination",
      "  noteElementAccess(destination",
      "The host arranges what is not there yet.",
    ],
  ]),
];
