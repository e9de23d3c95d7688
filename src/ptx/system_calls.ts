/**
 * Functions that every kernel may call and no module defines: what the driver brings along for `printf` and `assert`.
 *
 * @module
 */
import { formatC } from "./format.ts";
import type { Machine } from "./execution_state.ts";

/** Where a kernel's text goes. */
export type PrintTarget = "stdout" | "stderr";

/** A function of the driver. */
export interface SystemCall {
  /** Sizes of the parameters, in bytes. */
  readonly params: readonly number[];
  /** Sizes of the results, in bytes: none or one. */
  readonly results: readonly number[];
  /** Does it for the running thread. @returns the result, or null if the thread has ended */
  run(m: Machine, args: readonly bigint[], line: number): number | null;
}

/** After an assertion has failed the other threads come to as many instructions more, together. */
const afterFailure = 200_000;

/** A string of bytes, a character each. */
function readText(m: Machine, address: bigint, line: number, most = Infinity): string {
  let text = "";
  for (let at = address; text.length < most; at++) {
    const byte = Number(read(m, at, 1, line));
    if (byte === 0) break;
    text += String.fromCharCode(byte);
  }
  return text;
}

function read(m: Machine, address: bigint, bytes: 1 | 4 | 8, line: number): bigint {
  m.generic(Number(BigInt.asIntN(32, address)), Number(BigInt.asIntN(32, address >> 32n)), bytes, "read", line);
  const { view, offset } = m;
  if (bytes === 8) return view.getBigUint64(offset, true);
  return BigInt(bytes === 4 ? view.getUint32(offset, true) : view.getUint8(offset));
}

/** `int vprintf(const char *format, void *arguments)`: each argument lies at a multiple of its size. */
const vprintf: SystemCall = {
  params: [8, 8],
  results: [4],
  run(m, [format = 0n, list = 0n], line) {
    if (format === 0n) return -1;
    let at = list;
    const next = (bytes: 4 | 8): bigint => {
      const size = BigInt(bytes);
      at = (at + size - 1n) / size * size;
      const value = read(m, at, bytes, line);
      at += size;
      return value;
    };
    const { text, taken } = formatC(readText(m, format, line), {
      int: () => next(4),
      long: () => next(8),
      text: (address, most) => readText(m, address, line, most),
    });
    m.say(text, "stdout");
    return taken;
  },
};

/**
 * `void __assertfail(const char *message, const char *file, unsigned line, const char *function, size_t charSize)`. The
 * thread ends. Which others still get somewhere, and fail too, CUDA leaves open: here those do that are not held up.
 */
const assertfail: SystemCall = {
  params: [8, 8, 4, 8, 8],
  results: [],
  run(m, [message = 0n, file = 0n, number = 0n, name = 0n], line) {
    const text = (address: bigint) => readText(m, address, line);
    const { block, coordinates } = m.thread;
    const failed = `Assertion \`${text(message)}\` failed`;
    const where = `block: [${block.coordinates}], thread: [${coordinates}]`;
    m.say(`${text(file)}:${number}: ${text(name)}: ${where} ${failed}.\n`, "stderr");
    m.fail("assertion", line, `${failed} in ${text(file)}:${number}`, afterFailure);
    block.exit(m.thread);
    return null;
  },
};

/** By the name that PTX calls them by. */
export const systemCalls: ReadonlyMap<string, SystemCall> = new Map([["vprintf", vprintf], [
  "__assertfail",
  assertfail,
]]);
