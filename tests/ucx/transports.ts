/**
 * The transports that the tests of UCX run over. Each in processes of its own, because UCX reads its environment once.
 *
 * @module
 */

/** One setting of UCX_TLS, and what it makes two workers talk over. */
export interface Transport {
  /** The environment variable, or undefined if it is not set. */
  readonly tls: string | undefined;
  /** For test names. */
  readonly name: string;
  /** What the transports of an endpoint must all be, in one process. */
  readonly within: RegExp;
  /** And between two processes. */
  readonly between: RegExp;
}

const sharedMemory = /^(sysv|posix|cma|xpmem|knem)\/memory$/;

/** With UCX_TLS unset UCX chooses: shared memory, or itself, on one machine. */
export const transports: readonly Transport[] = [
  {
    tls: undefined,
    name: "UCX_TLS unset",
    within: /^(self|sysv|posix|cma|xpmem|knem)\/memory\d*$/,
    between: sharedMemory,
  },
  { tls: "tcp", name: "UCX_TLS=tcp", within: /^tcp\//, between: /^tcp\// },
  { tls: "sm", name: "UCX_TLS=sm", within: sharedMemory, between: sharedMemory },
];
