/** The protective lines of copies: conversions, staging, and copies between two devices. */
import { inFile, type Mutation } from "./mutation.ts";

const conversion = "tests/copy/conversion_test.ts";
const packed = ["tests/copy/packed_copy_test.ts"];
const peers = "tests/copy/peer_copy_test.ts";
const staging = "tests/memory/staging_test.ts";

/** What can be broken there. */
export const copyMutations: readonly Mutation[] = [
  ...inFile("src/copy/read_back.ts", ["tests/copy/read_back_test.ts", "tests/view/strided_memory_view_test.ts"], [
    ["    copy?.[Symbol.dispose]();\n", "", "Memory for a copy that the device cannot make is never freed."],
    ["  using copy = snapshot;\n", "  const copy = snapshot;\n", "Memory for a copy is never freed."],
    ["  await stream.completed();\n  //", "  //", "What is read is what was there before."],
    ["    await stream.completed();\n    bytes", "    bytes", "What is read is what was there before."],
  ]),
  ...inFile("src/view/print.ts", ["tests/view/print_test.ts"], [
    [
      "    stream.synchronize();\n  } catch (error) {",
      "  } catch (error) {",
      "What is printed is what was there before.",
    ],
  ]),
  ...inFile("src/copy/ptx_fragments.ts", ["tests/copy/ptx_fragments_test.ts"], [
    ["BigInt(end) * excess <= one", "true", "A kernel divides wrongly, and copies to other places."],
  ]),
  ...inFile("src/copy/ptx_fragments.ts", ["tests/copy/large_copy_test.ts"], [
    ['end <= 2 ** 32 ? "r" : "d"', '"r"', "A kernel for more elements than 32 bits count copies some to other places."],
  ]),
  ...inFile("src/copy/ptx_fragments.ts", ["tests/copy/kernel_registers_test.ts"], [
    ['guard === "" ?', "true ?", "The assembler makes one read of several, and some of them are not done."],
  ]),
  ...inFile("src/copy/ptx_fragments.ts", ["tests/copy/device_copy_test.ts"], [
    ["2 ** log === divisor", "true", "A kernel divides wrongly, and copies to other places."],
  ]),
  ...inFile("src/copy/copy_plan.ts", ["tests/copy/device_copy_test.ts"], [
    ["alignment % 4 === 0 && ", "", "A kernel reads four bytes from an address where it cannot."],
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
  ...inFile("src/copy/packed_kernel.ts", packed, [
    ["setp.ne.and.u32", "setp.eq.and.u32", "Neighbours in the same byte become 0 on the device."],
    ["    keepIf(inside);\n", "", "A kernel writes beyond the last byte of the destination."],
    ['    keepIf(ptx.make("p", `setp.eq.${type} $, ${rest}, 0`));\n', "", "A kernel fills gaps between elements."],
    ["plus(ptx, bit, bits - 1)", "bit", "Elements that lie in two bytes lose bits."],
  ]),
  ...inFile("src/copy/packed_plan.ts", packed, [
    [" || step < widthOf(bits, axes.slice(1), toBit)", "", "Two threads write the same byte."],
    ["axis.to > reach", "axis.to > 0", "Elements of interleaved axes are not found."],
  ]),
  ...inFile("src/copy/coalesced_copy.ts", packed, [
    [
      "  if (!fits || !Number.isInteger(draft.from) || !Number.isInteger(draft.to)) return false;\n",
      "  if (!fits) return false;\n",
      "Elements that begin inside a byte are copied as if they did not.",
    ],
  ]),
  ...inFile("src/copy/host_copy.ts", packed, [
    ["(to[written] ?? 0) & ~mask | ", "", "Neighbours in the same byte become 0."],
    ["skipped === 0 && before === 0 && ", "before === 0 && ", "Bits are copied from where their byte begins."],
  ]),
  ...inFile("src/copy/device_copy.ts", packed, [
    ["      copyAlike(source, landed, sending);\n", "      copy(source, landed, sending);\n", "Sending never ends."],
  ]),
  ...inFile("src/copy/tiled_kernel.ts", ["tests/copy/device_copy_test.ts"], [
    ["further(firstRow, below)", "firstRow", "A kernel reads and writes rows that there are not."],
    ["further(firstColumn, right)", "firstColumn", "A kernel reads and writes columns that there are not."],
    ['[[permute(a, b, "5410")], [permute(a, b, "7632")]]', "[...words]", "Elements of two bytes stay in their rows."],
    ['[permute(c, d, "5140"), permute(c, d, "7362")]', "[c, d]", "Bytes stay in their rows."],
  ]),
  ...inFile("src/copy/ptx_conversion.ts", [conversion], [
    ["selp.u32 $, 1, 0, ${isLossy}", "selp.u32 $, 0, 0, ${isLossy}", "A kernel rounds to bfloat16 twice."],
    ["selp.b64 $, ${long}, 0", "selp.b64 $, ${long}, 1", "NaN becomes another integer than on the host."],
    ["selp.b32 $, ${whole}, 0", "selp.b32 $, ${whole}, 1", "NaN becomes another integer than on the host."],
    ["min.${sign}32", "max.${sign}32", "A float that is too large wraps around in a kernel."],
    ['isFloat(number) ? "neu"', 'isFloat(number) ? "ne"', "NaN is false to a kernel."],
  ]),
  ...inFile("src/copy/host_conversion.ts", [conversion], [
    ["(low & 0x7ff) === 0 ? low", "true ? low", "The host rounds integers of 64 bits twice."],
    ["bits - 1 : bits) | 1", "bits - 1 : bits)", "The host rounds to bfloat16 twice."],
    ["isSmall || ", "high < 2 ** 20 || ", "The host rounds negative integers of 64 bits twice."],
    ["start % From.BYTES_PER_ELEMENT !== 0 || ", "", "Elements at odd addresses cannot be converted."],
  ]),
  ...inFile("src/copy/plan_cache.ts", [conversion, peers], [
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
    ["peers: peersOf(source, destination, stream) };", "peers: null };", "Two devices need access for any copy."],
  ]),
  ...inFile("src/copy/device_copy.ts", ["tests/order/pageable_in_use_test.ts", "tests/sim/behaviours_test.ts"], [
    ["  source.buffer.pinUntilPassed(stream);\n", "", "Memory is freed before a copy between views has read it."],
    [
      "  destination.buffer.pinUntilPassed(stream);\n",
      "",
      "Memory is freed before a copy between views has written it.",
    ],
    [
      "if (captureOf(stream) !== null)",
      "if (stream.isClosed)",
      "A graph reads what the host has arranged once, and freed.",
    ],
  ]),
  ...inFile("src/copy/copy_operand.ts", [peers], [
    ["  helper.wait(stream);\n", "", "A copy begins on the other device before its turn."],
    ["  stream.wait(helper);\n", "", "What comes after a copy does not wait for the other device."],
    ["(buffer.pool?.isReachedBy(device) ?? false)", "true", "A kernel uses memory without access."],
  ]),
  ...inFile("src/copy/device_copy.ts", [peers], [
    [
      "      sending.wait(receiving); // the memory is there\n",
      "",
      "A device sends to memory that is not allocated yet.",
    ],
    ["      receiving.wait(sending);\n", "", "Elements are spread before they have arrived."],
  ]),
  ...inFile("src/memory/staging.ts", [staging], [
    [
      "    ring.wait(chunk); // the bus may still read what was in the slot\n",
      "",
      "Threads fill a slot that the bus still reads.",
    ],
    [
      "      ring.wait(chunk); // the bus is done with it\n",
      "",
      "Threads empty a slot that the bus still fills.",
    ],
    [
      "    ring.team.finish(); // the chunk is in its slot\n",
      "",
      "The bus takes a chunk that threads have not copied yet.",
    ],
    [
      "    ring.wait(chunk); // an earlier copy's chunk may not have left the slot yet\n",
      "",
      "The bus fills a slot whose bytes are still on their way to the device.",
    ],
  ]),
  ...inFile("src/memory/staging_ring.ts", [staging], [[
    "observerOf(device.driver)?.closedByUser(this.#memory); // it goes",
    "// it goes",
    "The ring is reported as lost.",
  ]]),
  ...inFile("src/native/thread_team.ts", ["tests/native/thread_team_test.ts"], [
    ["    team.close();\n    throw", "    throw", "Threads of a team that is not complete wait for ever."],
    ["pthread_sigmask(SIG_BLOCK, all, before)", "pthread_sigmask(SIG_BLOCK, 0n, before)", "Threads get signals."],
    ["pthread_sigmask(SIG_SETMASK, before, 0n)", "pthread_sigmask(SIG_SETMASK, 0n, 0n)", "JavaScript gets no signals."],
    ["underWay === rounds || ", "", "A round overwrites what another still counts by."],
    ["calls.length > most", "false", "Calls overwrite others that nobody has taken."],
  ]),
  ...inFile("src/copy/copy_operand.ts", ["tests/copy/far_stream_test.ts"], [
    [
      "  if (canReachDevices(device, source) && canReachDevices(device, destination)) return null;\n",
      "  return null;\n",
      "A copy on a stream of another device is refused by the driver.",
    ],
  ]),
  ...inFile("src/device/explain_unreachable.ts", [
    "tests/memory/cuda_core_peer_access_test.ts",
    "tests/copy/far_stream_test.ts",
  ], [
    [
      "code !== CUresult.CUDA_ERROR_INVALID_VALUE",
      "code !== CUresult.CUDA_SUCCESS",
      "Nobody says what is out of reach.",
    ],
    ["owner.ordinal === device.ordinal", "false", "Memory of the stream's own device is said to be out of reach."],
  ]),
  ...inFile("src/arrow/array.ts", ["tests/arrow/host_order_test.ts"], [
    ["    else this.#prepare();\n", "", "Elements are read before they are written."],
    ["      void view.buffer.ptr; // throws if it is closed\n", "", "A closed array gives the engine's words."],
  ]),
  ...inFile("src/cdata/bits.ts", ["tests/arrow/host_order_test.ts"], [[
    '  hostWaitsToRead(array, "array.get()");\n',
    "",
    "Offsets and nulls are read before they are written.",
  ]]),
  ...inFile("src/cdata/device_array.ts", ["tests/arrow/host_order_test.ts"], [
    [", deviceArray: array.address }", " }", "Memory of a device is taken for the host's."],
  ]),
  ...inFile("src/dlpack/import.ts", ["tests/arrow/host_order_test.ts"], [
    ["  if (!isAddress(address)) {\n", "  if (false) {\n", "An address that no memory has is read."],
  ]),
  ...inFile("src/cdata/walk.ts", ["tests/arrow/host_order_test.ts"], [
    ["    if (!isAddress(address)) {\n", "    if (false) {\n", "An address that no memory has is read."],
  ]),
  ...inFile("src/memory/sharing/memory_channel.ts", ["tests/memory/sharing/memory_channel_test.ts"], [
    [
      "      waitForEnd(stream);\n      return null;\n",
      "      throw 0;\n",
      "The owner never hears that its memory is free.",
    ],
    ["      this.#failure = error;\n", "", "What cannot be understood looks like the end of what was sent."],
    [
      "      if (this.#failure !== undefined) throw this.#failure;\n",
      "",
      "What cannot be understood looks like the end of what was sent.",
    ],
  ]),
  ...inFile("src/memory/copy_access.ts", [peers], [
    ["  if (ways.some(isTaken)) return null;\n", "", "Access to a second pool is taken that nobody needs."],
    [" || isCapturing(first.owner.driver)", "", "What a capture could refuse is asked for while it goes on."],
    [" || isWithheld(access)", "", "A device gets the access that the pool's user has taken from it."],
    ["!has(refused, access) && ", "", "The driver is asked for every copy what it has refused."],
    ["note(isEnabled ? enabled : refused, access)", "note(refused, access)", "Access is taken for every copy."],
    ["  if (bytes < worthSaying || ways.some(isTaken)) return;\n", "", "It is said of a fast copy that it is slow."],
    [
      "way.buffer.pool !== null && canBeGranted(way)",
      "canBeGranted(way)",
      "Kernels go without access that they could have.",
    ],
    ["pool.isClosed || isWithheld", "isWithheld", "A copy from a closed pool's memory throws."],
  ]),
  ...inFile("src/memory/peer_access.ts", [peers, "tests/memory/peer_access_set_test.ts"], [
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
    ["  if (word.isCostReported) return;\n", "", "The console is told of every copy."],
  ]),
  ...inFile("src/memory/transfer.ts", [peers], [[
    "if (peers !== null) takeAccess(accessesBetween(source, peers.from, destination, peers.to), bytes);\n",
    "",
    "Buffers go by way of the host, at a tenth of the rate.",
  ]]),
  ...inFile("src/copy/device_copy.ts", [peers], [
    [
      "  if (ways.length > 0) takeAccess(ways, sizeOf(destination.layout));\n",
      "",
      "Views go by way of the host, at a tenth of the rate.",
    ],
  ]),
  ...inFile("src/copy/copy_operand.ts", [peers], [
    ["? ways.reverse() : ways", "? ways : ways", "A kernel reaches over for what lies far apart."],
  ]),
  ...inFile("src/memory/staging.ts", [staging], [
    ["return rings.has(device) || ", "return ", "What a ring is there for goes without it."],
    [
      "(unstaged.get(device) ?? 0) + bytes >= worthStarting",
      "bytes >= worthStarting",
      "Many copies of a few MiB never get a ring.",
    ],
    ["(unstaged.get(device) ?? 0) + bytes >= worthStarting", "true", "One copy of 4 MiB pays for a ring."],
  ]),
  ...inFile("src/copy/copy.ts", [
    "tests/copy/device_copy_test.ts",
    "tests/view/strided_memory_view_test.ts",
    "tests/copy/home_order_test.ts",
  ], [[
    "[stream, from.buffer.stream, to.buffer.stream]",
    "[stream, from.buffer.stream]",
    "The host writes what a stream has yet to read.",
  ]]),
  ...inFile("src/copy/copy.ts", [
    "tests/copy/device_copy_test.ts",
    "tests/view/strided_memory_view_test.ts",
    "tests/copy/home_order_test.ts",
  ], [[
    "[stream, from.buffer.stream, to.buffer.stream]",
    "[stream, to.buffer.stream]",
    "The host reads what a stream has yet to write.",
  ]]),
  ...inFile("src/copy/copy.ts", [
    "tests/copy/device_copy_test.ts",
    "tests/view/strided_memory_view_test.ts",
    "tests/copy/home_order_test.ts",
  ], [[
    "[stream, from.buffer.stream, to.buffer.stream]",
    "[from.buffer.stream, to.buffer.stream]",
    "The host copies before the stream is there.",
  ]]),
  ...inFile("src/copy/device_copy.ts", [
    "tests/copy/device_copy_test.ts",
    "tests/view/strided_memory_view_test.ts",
    "tests/copy/home_order_test.ts",
  ], [
    ["  if (home !== null) stream.wait(home);\n", "", "A copy reads what its source's home has yet to write."],
    ["  if (other !== null) stream.wait(other);\n", "", "A copy writes what its destination's home has yet to read."],
    ["  home?.wait(stream);\n", "", "The source changes before it was read."],
    ["  other?.wait(stream);\n", "", "The destination is read before it was written."],
    [
      "  stream.synchronize();\n  noteElementAccess(destination",
      "  noteElementAccess(destination",
      "The host arranges what is not there yet.",
    ],
  ]),
  ...inFile("src/copy/plan_cache.ts", ["tests/copy/home_order_test.ts"], [
    ["known.alignment !== alignment || ", "", "Words are read where they do not begin."],
    ["known.canLaunch !== canLaunch ||", "false ||", "A kernel is sent to ordinary memory of the host."],
  ]),
  ...inFile("src/copy/read_back.ts", ["tests/copy/read_back_test.ts"], [
    [
      "helperStream(stream.device), staging",
      "stream, staging",
      "Reading waits for what was enqueued after it was asked for.",
    ],
  ]),
];
