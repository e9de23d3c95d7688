/** The protective lines of native code: machine code, and the threads that run it. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const nativeMutations: readonly Mutation[] = [
  ...law("native/make", [
    [
      "} catch (cause) {\n",
      "} catch (cause) {\n    throw cause;\n",
      "The error for a size that is too large gives no explanation.",
    ],
  ]),
  ...law("native/advised", [
    ["libc().paging.madvise(first, length, MADV.HUGEPAGE);", "", "Large new memory is slow to write."],
    [" - first) / page * page", " - first) / page / 2n * page", "Half of a large array is slow to write."],
  ]),
  ...law("native/pageCalls", [
    ["(from + largePage - 1n)", "from", "A page is populated twice, or belongs to other memory."],
    ["left < largePage ? left : largePage", "largePage", "Pages past the end are populated."],
    ["BigInt(MADV.POPULATE_WRITE)", "BigInt(MADV.HUGEPAGE)", "No page is populated before it is written."],
  ]),
  ...law("native/mapExecutable", [
    ["roundUp(length, 16)", "length", "Functions are not aligned."],
    ["Math.ceil(used / pageBytes)", "1", "There is room for only one page of functions."],
  ]),
  ...law("native/portOfMainThread", [
    [
      "  if (!port.isWorker) return port;\n",
      "  return port;\n",
      "A Worker exports memory with callbacks that end with the Worker.",
    ],
  ]),
  ...law("native/x8664Thunk", [
    [
      "[0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n",
      "[0xf0, 0xff, 0x00, 0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]),\n    ...(clear === undefined ? [0xf0, 0xff, 0x00] : []),\n",
      "A struct is written after its release was signalled, when it may be freed.",
    ],
    [
      "    ...[0xf0, 0xff, 0x00], // lock",
      "    ...[0xff, 0x00], // lock",
      "Two threads that release at the same time are counted as one.",
    ],
    [
      "    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n",
      "    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n",
      "A consumer writes to a freed struct.",
    ],
    [
      "[0x48, 0xc7, 0x47, clear, 0",
      "[0xc7, 0x47, clear, 0",
      "The remaining half of a pointer says that an array is there.",
    ],
    ["...[0xf0, 0xff, 0x00], // lock", "...[0xff, 0x00], // lock", "A release is lost."],
  ]),
  ...law("native/aarch64Thunk", [
    ["0x8803fc22", "0x88037c22", "On arm64 the count becomes visible before the struct is cleared."],
  ]),
  ...law("native/ThreadTeam.start", [
    ["    team.close();\n    throw", "    throw", "Threads of an incomplete team wait for ever."],
  ]),
  ...law("native/ThreadTeam.begin", [
    ["inFlight === rounds || ", "inFlight > rounds || ", "A round begins in the memory of a round in flight."],
    ["inFlight === rounds || ", "", "A round overwrites the counters of another one."],
    ["calls.length > maxCalls", "false", "Calls overwrite others that no thread has taken."],
  ]),
  ...law("native/ThreadTeam.constructor", [
    ["2 * size.threads", "size.threads", "The last calls of a team are written over others."],
  ]),
  ...law("native/ThreadTeam.endings", [
    ["[...last, ...this.#threads", "[...this.#threads", "What the threads should do last is never done."],
    ["      ...this.#last.map((): NativeCall => [post, this.#permits]),\n", "", "The threads wait forever."],
  ]),
  ...law("native/withoutSignals", [
    [
      "    pthread_attr_setsigmask_np(attributesOrMask, all);\n",
      "",
      "Threads receive signals.",
    ],
    [
      "    pthread_attr_init(attributesOrMask);\n",
      "    pthread_attr_init(attributesOrMask);\n    pthread_sigmask(SIG_BLOCK, all, 0n);\n",
      "A terminated Worker and Bun's main thread wait for each other.",
    ],
    [
      "pthread_sigmask(SIG_BLOCK, all, attributesOrMask)",
      "pthread_sigmask(SIG_BLOCK, 0n, attributesOrMask)",
      "Threads receive signals where the C library is old.",
    ],
    [
      "pthread_sigmask(SIG_SETMASK, attributesOrMask, 0n)",
      "pthread_sigmask(SIG_SETMASK, 0n, 0n)",
      "JavaScript receives no signals where the C library is old.",
    ],
  ]),
  ...law("native/assemble", [
    [
      "(labels.get(label) ?? NaN) - (ends[i] ?? 0)",
      "(labels.get(label) ?? NaN) - (ends[i - 1] ?? 0)",
      "A loop continues at a wrong instruction.",
    ],
  ]),
  ...law("native/x8664Operation", [
    ["return offset < 128 ?", "return offset < 256 ?", "On x86-64 memory before the block is read and written."],
    ["0x40 | r[operation[1]] >> 3, 0xb8", "0x40, 0xb8", "On x86-64 a number is loaded into the wrong register."],
    [
      "register >> 3 << 2 | base >> 3, opcode, ...",
      "base >> 3, opcode, ...",
      "On x86-64 a step is loaded into the wrong register.",
    ],
    ["2: [0x66, 0x42, 0x89]", "2: [0x42, 0x89]", "On x86-64 bytes after every second element are written."],
    ["2: [0x0f, 0xb7]", "2: [0x8b]", "On x86-64 bytes past the last element are read."],
    ["2: [0x66, 0x89]", "2: [0x89]", "On x86-64 bytes after an element are written."],
    ["16: [0xf3, 0x0f, 0x7f] }", "16: [0x48, 0x89] }", "On x86-64 only half of an element is written."],
    [
      "[0x53, 0x41, 0x55, 0x41, 0x56]; // push",
      "[0x53, 0x41, 0x55]; // push",
      "On x86-64 a register of the caller is not restored.",
    ],
    [
      "2: [0x69, 0xc0, 1, 0, 1, 0,",
      "2: [0x69, 0xc0, 1, 0, 0, 0,",
      "On x86-64 every second element of a filled row is 0.",
    ],
    ["0x66, 0x0f, 0x6c, 0xc0], // movq", "0x90], // movq", "On x86-64 every second element of a filled row is 0."],
    ["[0x0f, 0x85, ...int32(distance)]", "[0x0f, 0x84, ...int32(distance)]", "On x86-64 loops end after one element."],
  ]),
  ...law("native/aarch64Operation", [
    [
      "const words = distance / 4 + 1;",
      "const words = distance / 4;",
      "On arm64 a loop continues at a wrong instruction.",
    ],
    ["(words & 0x7ffff) << 5]; // b.ne", "(words & 0x3ffff) << 5]; // b.ne", "On arm64 no loop jumps back."],
    ["0xf1000400 |", "0xd1000400 |", "On arm64 no loop ends at the right element."],
    [
      "return [0xf94013f5, 0xa94153f3, 0xa8c37bfd];",
      "return [0xa94153f3, 0xa8c37bfd];",
      "On arm64 a register of the caller is not restored.",
    ],
  ]),
  ...law("native/aarch64Loads", [
    ["2: 0x79400009", "2: 0xb9400009", "On arm64 bytes past the last element are read."],
    ["2: 0x79000009", "2: 0xb9000009", "On arm64 bytes after an element are written."],
    ["2: 0x78206809", "2: 0xb8206809", "On arm64 bytes after every second element are written."],
    ["16: 0x3d800000", "16: 0xfd000000", "On arm64 only half of an element is written."],
    ["4: 0x4d40c800", "4: 0x0d40c800", "On arm64 half of a filled row is 0."],
  ]),
  ...law("native/prepareMove", [
    ["isGathered(move) ? together : unrolled", "unrolled", "Bytes past the end of a row are written."],
    [
      "move.isFar === true ? nonTemporalCopy() : here.memcpy",
      "here.memcpy",
      "The destination of a large copy is fetched first.",
    ],
    ["2 * row.to, 2 * row.from", "2 * row.from, 2 * row.to", "The third of four pieces is at a wrong address."],
    ["to: to - toBack, from: from - fromBack", "to, from", "A row begins at the end of the one before."],
    [
      "words.set([extent, extent, to, from]",
      "words.set([extent, extent - 1, to, from]",
      "On its first pass an axis is cut short.",
    ],
    [".toReversed()", "", "Outer axes are walked like inner ones."],
    ["row.extent - several * atOnce", "0", "The rest of a row is not moved."],
  ]),
  ...law("native/x8664NonTemporalCopy", [
    [
      "0x3f], // and ecx, 63: bytes",
      "0x07], // and ecx, 63: bytes",
      "Lines are written at addresses that no line has: a fault.",
    ],
    ["    ...[0x48, 0x0f, 0x47, 0xca], // cmova rcx, rdx\n", "", "A short run is written beyond its end."],
    ["    ...[0x48, 0x29, 0xca], // sub rdx, rcx\n", "", "A run is written beyond its end."],
    ["    ...[0x74, 0x36], // jz rest\n", "", "A run without a whole line is treated as 2^64 lines."],
    ["0x4f, 0x10], // movntdq", "0x4f, 0x20], // movntdq", "A quarter of each line is not written."],
    ["0x56, 0x20], // movdqu", "0x56, 0x10], // movdqu", "A quarter of each line is written twice."],
    ["0xc6, 0x40], // add rsi", "0xc6, 0x20], // add rsi", "Each line repeats half of the one before."],
    ["    ...[0x83, 0xe1, 0x3f], // and ecx, 63\n", "", "Bytes after the last line are followed by others."],
  ]),
  ...law("native/runMove", [
    ["  addresses[1] = to / 2 ** 32;\n", "", "The destination has a wrong address."],
    ["  addresses[3] = from / 2 ** 32;\n", "", "The source has a wrong address."],
  ]),
  ...law("native/gatherProgram", [
    [
      '["insertAt", 2 * i + 1, "second", "fromStep"]',
      '["insert", 2 * i + 1, "second"]',
      "Every second byte repeats the one before.",
    ],
    [" && row.to === 1 &&", " &&", "Bytes with gaps between them are written side by side."],
    ['["point", "third", "third", together]', '["point", "third", "third", 1]', "Bytes are written over each other."],
  ]),
  ...law("native/inRegisters", [
    [
      "    if (left[register] === 0) free.unshift(register);\n",
      "    free.unshift(register);\n",
      "A vector that is still needed is overwritten.",
    ],
    [
      "        if (left[register] !== 0) return null; // in two locals, one of which may outlive the other\n",
      "",
      "A vector held by two locals is overwritten when one of them ends.",
    ],
    ["Object.hasOwn(computations, computation)", "true", "Code that cannot be encoded is assembled."],
    ["VECTOR_REGISTERS - registers.size", "VECTOR_REGISTERS", "Vectors are put into registers that do not exist."],
    ['"constants", 16 * place]', '"constants", 0]', "All constants equal the first one."],
    ["place === undefined || place < kept", "true", "Code with too many constants for registers is not compiled."],
    [
      '"upper half") taken(stack.pop() ?? NaN);',
      '"upper half") stack.pop();',
      "Registers are lost, and fewer loops can be compiled.",
    ],
    ["set !== undefined) uses", "set !== undefined && local > 20) uses", "A vector is overwritten before it is read."],
  ]),
  ...law("native/x8664Computations", [
    [
      "    if (into !== other || into === one) return",
      "    if (into !== other || true) return",
      "On x86-64 the second operand is overwritten if the result goes to its register.",
    ],
    [
      "    ...sse([0, 0xc2], spare, spare, 0), // cmpeqps: all ones, or 0 for NaN\n",
      "",
      "On x86-64 NaN, and any value that is too large, becomes the least integer.",
    ],
    [
      "    ...shifted(0x72, 4, spare, 31), // psrad\n",
      "",
      "On x86-64 a value that is too large becomes a wrong integer.",
    ],
    ["    ...sse(xor, into, spare),\n  ];", "  ];", "On x86-64 a test for inequality is inverted."],
    ["evens(0x72, 4, 16,", "evens(0x72, 2, 16,", "On x86-64 integers saturate instead of losing their upper bits."],
    [
      "    ...shifted(0x72, 2, into, 1),\n    ...sse([0, 0x5b]",
      "    ...sse([0, 0x5b]",
      "On x86-64 large positive integers become negative floats.",
    ],
    [
      "    ...shifted(0x72, 2, into, 1),\n    ...sse([0xf3, 0xe6]",
      "    ...sse([0xf3, 0xe6]",
      "On x86-64 large positive integers become negative doubles.",
    ],
    [
      "    ...sse([0, 0x5f], into, second), // maxps: 0 instead of NaN and negative numbers\n",
      "",
      "On x86-64 NaN and negative floats become positive integers.",
    ],
    [
      "    ...sse([0x66, 0x38, 0x3d], second, spare), // pmaxsd: 0 if the number is less than 2^31\n",
      "",
      "On x86-64 floats become negative unsigned integers.",
    ],
    [
      "    ...sse(xor, second, spare), // too much, the least integer, becomes the largest\n",
      "",
      "On x86-64 too large floats become 0 instead of the largest unsigned integer.",
    ],
    ["    ...sse(and, spare, second),\n", "", "On x86-64 NaN becomes the largest integer instead of 0."],
    [
      "    ...sse([0x66, 0x5d], into, spare), // minpd returns its second operand if one is NaN\n",
      "",
      "On x86-64 too large doubles become the least integer.",
    ],
    [
      "    ...sse([0x66, 0x5f], into, spare), // maxpd: 0 instead of NaN and negative numbers\n",
      "",
      "On x86-64 NaN and negative doubles become positive integers.",
    ],
    [
      "    ...sse([0x66, 0x3a, 0x09], into, into, 11), // roundpd, towards 0\n",
      "",
      "On x86-64 doubles are rounded up to unsigned integers.",
    ],
    [
      "    ...sse([0xf3, 0x7e], second, second), // movq: 0 in the upper half\n",
      "",
      "On x86-64 the unused upper half of unsigned integers is not 0.",
    ],
    ["[...sse([0x66, 0x70], into, one, 0xee), ", "[...copied(into, one), ", "On x86-64 elements are converted twice."],
    ["...sse([0x66, 0x38, 0x17], spare, spare)", "", "On x86-64 there is no test whether all lanes are set."],
    [
      "const modes = 0x80 | (register & 7) << 3 | sides[side];",
      "const modes = 0x80 | (register & 7) << 3 | sides.input;",
      "On x86-64 the source is written.",
    ],
  ]),
  ...law("native/aarch64Computations", [
    ["register < 8 ? register : register + 8", "register", "On arm64 registers of the caller are not preserved."],
    ["    ...copied(spare, last),\n", "", "On arm64 lanes are selected by the mask of the last selection."],
    ["with3(opcode | 0x40000000, spare", "with3(opcode, spare", "On arm64 half of the elements are lost."],
    ["    with3(0x6eb0a800, spare, spare, 0), // umaxv\n", "", "On arm64 one lane is tested instead of all."],
    ["sign === 1 ? bits + count : 2 * bits - count", "bits + count", "On arm64 lanes are shifted too far."],
    [
      "with3(0x6e205800, into, into, 0)",
      "with3(0x6e205800, into, one, 0)",
      "On arm64 a test for inequality is not inverted.",
    ],
    ["offset / 16 << 10", "offset / 8 << 10", "On arm64 wrong elements are read and written."],
  ]),
  ...law("native/runnerOf", [
    ["    turns[0] = count;\n", "", "Only one iteration is made."],
  ]),
  ...law("native/vectorLoopProgram", [
    ['    ["point", "first", "first", constantsAt],\n', "", "Addresses of a job are taken for its constants."],
    [
      '["point", "third", "third", loop.outputBytes]',
      '["point", "third", "third", loop.inputBytes]',
      "Results are written with gaps between them.",
    ],
    ['return [["unlessZero", "otherwise"]];', "return [];", "Large doubles become small integers of 64 bits."],
    ['["get", "axis", "first", turnsAt]', '["set", "axis", 1]', "Only one iteration of a row is made."],
    ['    ["add", "second", "fromStep"],\n', "", "A row is read from the end of the one before."],
    ['    ["add", "third", "toStep"],\n', "", "A row is written at the end of the one before."],
    ['    ["unlessZero", "row"],\n', "", "Only one row is converted."],
  ]),
  ...law("native/moveProgram", [
    [
      '["loadAt", unit, "second", "fromStep"]',
      '["load", unit, "second"]',
      "Every second piece repeats the one before.",
    ],
    [
      '["storeAt", unit, "third", "toStep"]',
      '["storeAt", unit, "third", "fromStep"]',
      "Every second piece is written at the offset that the source has.",
    ],
    [
      '["get", "kept", "first", 72],\n',
      "",
      "The steps of two pieces are read from a register that the caller has left.",
    ],
    [
      '["put", "rows", "axis", 8],',
      '["label", "again"],',
      "The next plane ends too early, and so does the next copy.",
    ],
    [
      '["addFrom", from, "axis", 24]',
      '["addFrom", from, "axis", 16]',
      "The source is walked with the destination's steps.",
    ],
    ['["ifZero", "left", "singles"],\n', "", "A row of three elements is treated as 2^64 groups of four."],
    ['["repeat", unit, "second"]', '["load", unit, "second"]', "A row is filled with one element and garbage."],
    ['["copy", "second", "keptFrom"],\n', "", "The next run is read from where memcpy has ended."],
  ]),
];
