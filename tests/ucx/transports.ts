/**
 * The transports that the UCX tests run over, each in its own processes, because UCX reads its environment once.
 *
 * @module
 */

/** One setting of UCX_TLS, and the transports that two workers then use. */
export interface Transport {
  /** The environment variable, or undefined if it is not set. */
  readonly tls: string | undefined;
  /** For test names. */
  readonly name: string;
  /** Matches all transports of an endpoint within one process. */
  readonly within: RegExp;
  /** Matches all transports between two processes. */
  readonly between: RegExp;
}

// Beside a real GPU a UCX that knows CUDA has a way between GPUs, too.
const sharedMemory = /^((sysv|posix|cma|xpmem|knem)\/memory|cuda_ipc\/cuda)$/;

/** With UCX_TLS unset UCX chooses: shared memory, or itself, on one machine. */
export const transports: readonly Transport[] = [
  {
    tls: undefined,
    name: "UCX_TLS unset",
    within: /^((self|sysv|posix|cma|xpmem|knem)\/memory\d*|cuda_(ipc|copy)\/cuda)$/,
    between: sharedMemory,
  },
  { tls: "tcp", name: "UCX_TLS=tcp", within: /^tcp\//, between: /^tcp\// },
  { tls: "sm", name: "UCX_TLS=sm", within: sharedMemory, between: sharedMemory },
];
