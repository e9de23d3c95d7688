/**
 * The identity of a worker's process, so that its end is detected where UCX does not watch: over shared memory UCX
 * watches a peer only once the peer has answered. Sends to a peer that is killed before that would wait forever (seen
 * with UCX 1.13.1).
 *
 * @module
 */
import { readTextFile } from "../ffi/mod.ts";
import { type FileDescriptor, openProcess } from "../unix/mod.ts";

/** Size of an identity in bytes: the boot's id, the start time and the PID of the process. */
export const identityBytes = 16 + 8 + 4;

/** The state and the start time of a process: fields 3 and 22 of `/proc/PID/stat`, which proc_pid_stat(5) lists. */
interface Stat {
  readonly pid: number;
  readonly state: string;
  /** In clock ticks since boot, which distinguishes processes that had the same PID. */
  readonly start: bigint;
}

/** The identity of this process, once it has been read: two files, 0.4 ms in Deno. */
let own: Uint8Array<ArrayBuffer> | undefined;

/**
 * The identity of this process, unique on this machine and across machines. Zeros where there is no `/proc`, or no
 * descriptor to read it with.
 */
export function ownIdentity(): Uint8Array<ArrayBuffer> {
  if (own !== undefined) return own.slice();
  const bytes = new Uint8Array(new ArrayBuffer(identityBytes));
  const stat = readStat("self");
  const boot = readTextFile("/proc/sys/kernel/random/boot_id")?.trim().replaceAll("-", "");
  if (stat === null || boot?.length !== 32) return bytes;
  bytes.set(Uint8Array.fromHex(boot));
  const fields = new DataView(bytes.buffer, 16);
  fields.setBigUint64(0, stat.start);
  fields.setUint32(8, stat.pid);
  own = bytes;
  return own.slice();
}

/** Whether an identity is that of this process. */
export function isOwn(identity: Uint8Array): boolean {
  return ownIdentity().every((byte, at) => byte === identity[at]);
}

/** Another process on this machine that is visible from here. */
export class PeerProcess {
  readonly #pid: number;
  readonly #start: bigint;

  private constructor(pid: number, start: bigint) {
    this.#pid = pid;
    this.#start = start;
  }

  /** Unique to the process. */
  get key(): string {
    return `${this.#pid} ${this.#start}`;
  }

  // law ucx/PeerProcess.find: ucx/process_identity
  /**
   * The process with this identity: null for this one, and for one that is not visible, because it runs elsewhere, in
   * another namespace, hidden, or no longer.
   */
  static find(identity: Uint8Array): PeerProcess | null {
    const own = ownIdentity();
    const isSame = (from: number, to: number) => identity.subarray(from, to).every((byte, i) => byte === own[from + i]);
    if (!isSame(0, 16) || isSame(16, identityBytes)) return null;
    const fields = new DataView(identity.buffer, identity.byteOffset + 16);
    const process = new PeerProcess(fields.getUint32(8), fields.getBigUint64(0));
    return process.#runs() === true ? process : null;
  }

  // law ucx/PeerProcess.open: ucx/process_identity
  /** A descriptor that is readable once it has ended; null if it has, or the system has no such descriptors. */
  open(): FileDescriptor | null {
    const descriptor = openProcess(this.#pid);
    if (descriptor === null || !this.isGone()) return descriptor;
    descriptor.close(); // of another process, which has the PID now
    return null;
  }

  // law ucx/PeerProcess.isGone: ucx/process_identity
  /** Whether it has ended. A zombie counts as ended. */
  isGone(): boolean {
    // With no descriptor left to open a file, nothing is known about any process.
    return !(this.#runs() ?? readStat("self") === null);
  }

  // law ucx/PeerProcess.runs: ucx/process_identity
  /** Whether it runs; null if nothing can be read about the process with its PID. */
  #runs(): boolean | null {
    const stat = readStat(`${this.#pid}`);
    return stat === null ? null : stat.start === this.#start && !"ZXx".includes(stat.state);
  }
}

// law ucx/readStat: ucx/process_identity
function readStat(process: string): Stat | null {
  const text = readTextFile(`/proc/${process}/stat`);
  // The second field is the program's name in parentheses, which may itself contain parentheses and spaces.
  const [, pid, state, rest] = /^(\d+) \(.*\) (\S) (.*)/s.exec(text ?? "") ?? [];
  const start = rest?.split(" ")[18];
  return state === undefined || start === undefined ? null : { pid: Number(pid), state, start: BigInt(start) };
}
