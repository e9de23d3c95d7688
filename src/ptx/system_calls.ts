/**
 * Functions that any kernel may call and no module defines: those the driver provides for `printf` and `assert`.
 *
 * @module
 */
import { formatC } from "./format.ts";
import type { ExecutionState } from "./execution_state.ts";

/** Where a kernel's text goes. */
export type PrintTarget = "stdout" | "stderr";

/** A function that the driver provides. */
export interface SystemCall {
  /** Sizes of the parameters, in bytes. */
  readonly params: readonly number[];
  /** Sizes of the results, in bytes: none or one. */
  readonly results: readonly number[];
  /** Runs the call for the running thread. @returns the result, or null if the thread has exited */
  run(state: ExecutionState, args: readonly bigint[], line: number): number | null;
}

/** Instructions that the other threads together may still execute after a failed assertion. */
const afterFailure = 200_000;

/** Reads a NUL-terminated string, one character per byte. */
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
 * thread exits. CUDA leaves open which other threads continue and may fail too: here, all that are not waiting.
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

/** System calls, by the name that PTX uses. */
export const systemCalls: ReadonlyMap<string, SystemCall> = new Map(
  Object.entries({ vprintf, __assertfail: assertfail }),
);
