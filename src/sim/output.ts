/**
 * Text that the kernels of a context have printed and the host has not yet received.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/mod.ts";

/** Receives what kernels print: text of `printf` to stdout, of a failed `assert` to stderr. */
export type Print = (text: string, to: "stdout" | "stderr") => void;

/** Bytes that are kept: as many as CUDA buffers by default. */
const capacity = 2 ** 20;

/** Text in the order in which it was printed. Beyond a megabyte, the oldest text is lost. */
export class Output {
  #parts: { readonly text: Uint8Array; readonly to: "stdout" | "stderr" }[] = [];
  #first = 0;
  #bytes = 0;

  // law sim/Output.add: sim/output, ptx/faults
  /** Buffers text. */
  add(text: Uint8Array, to: "stdout" | "stderr"): void {
    this.#bytes += text.length;
    this.#parts.push({ text, to });
    while (this.#bytes > capacity) this.#bytes -= this.#parts[this.#first++]?.text.length ?? this.#bytes;
  }

  // law sim/Output.flush: sim/output, ptx/faults
  /** Passes on all buffered text. */
  flush(print: Print): void {
    const parts = this.#parts.slice(this.#first);
    this.#parts = [];
    this.#first = 0;
    this.#bytes = 0;
    for (let at = 0; at < parts.length;) {
      const to = parts[at]?.to ?? "stdout";
      const decoder = new TextDecoder();
      let text = "";
      for (; parts[at]?.to === to; at++) text += decoder.decode(parts[at]?.text, { stream: true });
      print(text + decoder.decode(), to);
    }
  }
}

/** Writes to the process's own stdout and stderr. */
export function printToProcess(text: string, to: "stdout" | "stderr"): void {
  nodeBuiltin("node:process")[to].write(text);
}
