/**
 * Functions that every kernel may call and no module defines: what the driver provides for `printf` and `assert`.
 *
 * @module
 */
import { formatC } from "./format.ts";
import type { ExecutionState } from "./execution_state.ts";

/** Where a kernel's text goes. */
export type PrintTarget = "stdout" | "stderr";

/** A function of the driver. */
export interface SystemCall {
  /** Sizes of the parameters, in bytes. */
  readonly params: readonly number[];
  /** Sizes of the results, in bytes: none or one. */
  readonly results: readonly number[];
  /** Does it for the running thread. @returns the result, or null if the thread has ended */
  run(state: ExecutionState, args: readonly bigint[], line: number): number | null;
}

/** After a failed assertion the other threads execute so many more instructions, together. */
const afterFailure = 200_000;

/** A string of bytes, a character each. */
function readText(state: ExecutionState, address: bigint, line: number, most = Infinity): string {
  let text = "";
  for (let at = address; text.length < most; at++) {
    const byte = Number(read(state, at, 1, line));
    if (byte === 0) break;
    text += String.fromCharCode(byte);
  }
  return text;
}

function read(state: ExecutionState, address: bigint, bytes: 1 | 4 | 8, line: number): bigint {
  state.generic(Number(BigInt.asIntN(32, address)), Number(BigInt.asIntN(32, address >> 32n)), bytes, "read", line);
  const { view, offset } = state;
  if (bytes === 8) return view.getBigUint64(offset, true);
  return BigInt(bytes === 4 ? view.getUint32(offset, true) : view.getUint8(offset));
}

// law ptx/vprintf: sim/output, ptx/faults
/** `int vprintf(const char *format, void *arguments)`: each argument lies at a multiple of its size. */
const vprintf: SystemCall = {
  params: [8, 8],
  results: [4],
  run(state, [format = 0n, list = 0n], line) {
    if (format === 0n) return -1;
    let at = list;
    const next = (bytes: 4 | 8): bigint => {
      const size = BigInt(bytes);
      at = (at + size - 1n) / size * size;
      const value = read(state, at, bytes, line);
      at += size;
      return value;
    };
    const { text, taken } = formatC(readText(state, format, line), {
      int: () => next(4),
      long: () => next(8),
      text: (address, most) => readText(state, address, line, most),
    });
    state.printText(text, "stdout");
    return taken;
  },
};

// law ptx/assertfail: sim/output, ptx/faults
/**
 * `void __assertfail(const char *message, const char *file, unsigned line, const char *function, size_t charSize)`. The
 * thread ends. Which other threads still continue, and may fail too, CUDA leaves open: here those that do not wait do.
 */
const assertfail: SystemCall = {
  params: [8, 8, 4, 8, 8],
  results: [],
  run(state, [message = 0n, file = 0n, number = 0n, name = 0n], line) {
    const text = (address: bigint) => readText(state, address, line);
    const { block, coordinates } = state.thread;
    const failed = `Assertion \`${text(message)}\` failed`;
    const where = `block: [${block.coordinates}], thread: [${coordinates}]`;
    state.printText(`${text(file)}:${number}: ${text(name)}: ${where} ${failed}.\n`, "stderr");
    state.fail("assertion", line, `${failed} in ${text(file)}:${number}`, afterFailure);
    block.exit(state.thread);
    return null;
  },
};

/** By the name that PTX calls them by. */
export const systemCalls: ReadonlyMap<string, SystemCall> = new Map([["vprintf", vprintf], [
  "__assertfail",
  assertfail,
]]);
