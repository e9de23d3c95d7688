/**
 * Kernels written as PTX, for code that the compiler rarely emits.
 *
 * @module
 */
import { loadPtx } from "../../../src/ptx/mod.ts";
import { FlatMemory, launch, type Shape } from "./harness.ts";

/**
 * A kernel `k` with one pointer, in %o, the thread's number in %t, the address of its own word in %m, and registers.
 */
export function kernelText(body: string): string {
  return `.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f32 %f<8>; .reg .b32 %t; .reg .b64 %o, %m;
ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %m, %t, 4, %o;
${body}
ret;
}`;
}

/** Runs such a kernel on words with these initial values. @returns the words afterwards */
export function runText(body: string, words: readonly number[], shape: Shape = {}): number[] {
  const memory = new FlatMemory();
  const array = new Int32Array(words);
  launch(loadPtx(kernelText(body)), "k", memory, [memory.add(array)], { maxInstructions: 1e6, ...shape });
  return [...array];
}
