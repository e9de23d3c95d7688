/** The protective lines of the room `native`: machine code, and the threads that run it. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const nativeMutations: readonly Mutation[] = [
  ...law("native/newArrayBuffer", [
    ["libc().paging.madvise(first, length, MADV.HUGEPAGE);", "", "Large new memory is slow to write."],
    [" - first) / page * page", " - first) / page / 2n * page", "Half of a large array is slow to write."],
  ]),
  ...law("native/mapExecutable", [
    ["roundUp(code.length, 16)", "code.length", "Functions are not aligned."],
  ]),
  ...law("native/portOfMainThread", [
    ["  if (!port.isWorker) return port;\n", "  return port;\n", "A Worker lends with callbacks that end with it."],
  ]),
  ...law("native/x8664Thunk", [
    [
      "[0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n",
      "[0xf0, 0xff, 0x00, 0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]),\n    ...(clear === undefined ? [0xf0, 0xff, 0x00] : []),\n",
      "A struct is written after its end was told, when it may be freed.",
    ],
    [
      "    ...[0xf0, 0xff, 0x00], // lock",
      "    ...[0xff, 0x00], // lock",
      "Two threads that release at once are counted as one.",
    ],
    [
      "    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n",
      "    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n",
      "A consumer writes to a struct that is freed.",
    ],
    ["[0x48, 0xc7, 0x47, clear, 0", "[0xc7, 0x47, clear, 0", "Half of a pointer says that an array is there."],
    ["...[0xf0, 0xff, 0x00], // lock", "...[0xff, 0x00], // lock", "A release is lost."],
  ]),
  ...law("native/aarch64Thunk", [
    ["0x8803fc22", "0x88037c22", "On arm64 the count is seen before the struct is cleared."],
  ]),
  ...law("native/ThreadTeam.start", [
    ["    team.close();\n    throw", "    throw", "Threads of a team that is not complete wait for ever."],
  ]),
  ...law("native/ThreadTeam.begin", [
    ["inFlight === rounds || ", "inFlight > rounds || ", "A round is begun in the memory of one that is in flight."],
    ["inFlight === rounds || ", "", "A round overwrites what another still counts by."],
    ["calls.length > most", "false", "Calls overwrite others that nobody has taken."],
  ]),
  ...law("native/withoutSignals", [
    ["pthread_sigmask(SIG_BLOCK, all, before)", "pthread_sigmask(SIG_BLOCK, 0n, before)", "Threads get signals."],
    ["pthread_sigmask(SIG_SETMASK, before, 0n)", "pthread_sigmask(SIG_SETMASK, 0n, 0n)", "JavaScript gets no signals."],
  ]),
];
