import { scratch } from "../../wasm/mod.ts";
import { kernelOf, PARAMETER_BYTES, setParameters, type Step } from "./kernel.ts";
import type { Bits } from "./words.ts";

/** Bytes of words decoded at a time: input and output stay in the nearest caches. */
const BLOCK_BYTES = 32_768;
const INPUT = PARAMETER_BYTES;
const OUTPUT = INPUT + BLOCK_BYTES;
const SCRATCH = OUTPUT + BLOCK_BYTES;

/** How words are packed. */
export interface Packing {
  /** The bit width of an unpacked word. */
  readonly bits: Bits;
  /** The bit width of a packed word, 0 to `bits`. */
  readonly width: number;
  /** Words to skip in the first block, less than 1024. */
  readonly offset: number;
  /** The steps then applied to each word. */
  readonly steps?: readonly Step[];
}

/** The size of `length` words packed in blocks of 1024, including the skipped words before them. */
export function packedBytes(length: number, { width, offset }: Packing): number {
  return 128 * width * Math.ceil((offset + length) / 1024);
}

// law vortex/numeric.unpackInto: vortex/numeric/unpack
/**
 * Unpacks words in the FastLanes format.
 *
 * @param out receives the words, as many as fit
 * @param packed {@linkcode packedBytes} of them
 */
export function unpackInto(out: Uint8Array, packed: Uint8Array, packing: Packing): void {
  const { bits, width, offset, steps = [] } = packing;
  if (out.length === 0) return;
  const run = kernelOf(bits, width, steps);
  const memory = scratch(SCRATCH);
  setParameters(memory, bits, steps);
  const [packedBlock, block] = [128 * width, 128 * bits];
  const skipped = offset * bits / 8;
  const total = skipped + out.length;
  for (let first = 0; first < total; first += BLOCK_BYTES) {
    const end = Math.min(first + BLOCK_BYTES, total);
    const [from, to] = [first / block, Math.ceil(end / block)];
    memory.set(packed.subarray(from * packedBlock, to * packedBlock), INPUT);
    run(INPUT, OUTPUT, to - from);
    const start = Math.max(first, skipped); // `skipped` is within the first part: a block is smaller
    out.set(memory.subarray(OUTPUT + start - first, OUTPUT + end - first), start - skipped);
  }
}

// law vortex/numeric.applySteps: vortex/numeric/steps
/** Applies steps to words. `out` has the size of `input`, and may be `input`. */
export function applySteps(out: Uint8Array, input: Uint8Array, bits: Bits, steps: readonly Step[]): void {
  if (out.length === 0) return;
  const run = kernelOf(bits, "plain", steps);
  const memory = scratch(SCRATCH);
  setParameters(memory, bits, steps);
  for (let first = 0; first < input.length; first += BLOCK_BYTES) {
    const block = input.subarray(first, first + BLOCK_BYTES);
    memory.set(block, INPUT);
    run(INPUT, OUTPUT, Math.ceil(block.length / 64));
    out.set(memory.subarray(OUTPUT, OUTPUT + block.length), first);
  }
}
