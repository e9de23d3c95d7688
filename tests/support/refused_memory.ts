/**
 * Refusing executable memory to this process, as systemd's MemoryDenyWriteExecute= does in either of two ways. A
 * process sets it for itself after the runtime has started: the runtime's own compilers would not survive it earlier.
 *
 * @module
 */
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";

const port = ffiPort();
const { prctl } = port.bind("libc.so.6", 0n, {
  // int prctl(int op, ...): every operation takes unsigned long
  prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
});

const PR_SET_SECCOMP = 22;
const SECCOMP_MODE_FILTER = 2n;
const PR_SET_NO_NEW_PRIVS = 38;
const PR_SET_MDWE = 65; // since Linux 6.3
const PR_MDWE_REFUSE_EXEC_GAIN = 1n;

/**
 * A filter for this thread: making a page executable by mprotect fails with EACCES, all else is unchanged. Pages that
 * stay writable may become executable: on processors without protection keys, where V8 makes its code pages so, it does
 * not survive a refusal.
 */
function seccomp(): boolean {
  using arena = new NativeArena();
  const mprotect = port.platform.arch === "x86_64" ? 10 : 226;
  const program: [code: number, whenTrue: number, whenFalse: number, k: number][] = [
    [0x20, 0, 0, 0], // load the system call number
    [0x15, 0, 3, mprotect], // if it is another call: allow
    [0x20, 0, 0, 32], // load its third argument
    [0x15, 0, 1, 5], // if it is not PROT_READ | PROT_EXEC: allow
    [0x06, 0, 0, 0x0005_000d], // SECCOMP_RET_ERRNO, EACCES
    [0x06, 0, 0, 0x7fff_0000], // SECCOMP_RET_ALLOW
  ];
  const { address, bytes } = arena.bytes(program.length * 8);
  const filter = new DataView(bytes.buffer, bytes.byteOffset);
  const littleEndian = true;
  for (const [i, [code, whenTrue, whenFalse, k]] of program.entries()) {
    filter.setUint16(8 * i, code, littleEndian);
    filter.setUint8(8 * i + 2, whenTrue);
    filter.setUint8(8 * i + 3, whenFalse);
    filter.setUint32(8 * i + 4, k, littleEndian);
  }
  const sock_fprog = arena.struct({ len: "u16", filter: "ptr" });
  sock_fprog.len = program.length;
  sock_fprog.filter = address;
  return prctl(PR_SET_NO_NEW_PRIVS, 1n, 0n, 0n, 0n) === 0 &&
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, sock_fprog.$address, 0n, 0n) === 0;
}

/** For the whole process: no page can become executable. */
function mdwe(): boolean {
  return prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0n, 0n, 0n) === 0;
}

/** Refuses executable memory from now on. @returns whether the kernel supports this way */
export function refuseExecutableMemory(how: "seccomp" | "mdwe"): boolean {
  return how === "seccomp" ? seccomp() : mdwe();
}
