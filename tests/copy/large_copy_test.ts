/** Kernels for more elements than fit in memory here: what their first blocks do. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda } from "../../mod.ts";
import { planDeviceCopy } from "../../src/copy/device_plan.ts";
import type { CoalescedCopy } from "../../src/copy/coalesced_copy.ts";
import type { CopyKernel } from "../../src/copy/ptx_fragments.ts";
import { packedKernel } from "../../src/copy/packed_kernel.ts";
import { planPacked } from "../../src/copy/packed_plan.ts";
import { stridedKernel } from "../../src/copy/strided_kernel.ts";
import { tiledKernel } from "../../src/copy/tiled_kernel.ts";
import { pattern } from "../support/arrays.ts";
import { room } from "../support/buffers.ts";

/** Memory after two blocks of a kernel have run. */
function begun({ ptx, block }: CopyKernel): Uint8Array {
  using cuda = Cuda.simulate();
  const { device, allocate, read } = room(cuda);
  const [from, to] = [allocate("device", pattern(1 << 16, 1)), allocate("device", pattern(1 << 16, 2))];
  using program = device.loadPtx(ptx);
  using stream = device.createStream();
  program.kernel("copy").launch(stream, 2, block, [to, from]);
  stream.synchronize();
  const result = read(to);
  for (const buffer of [from, to]) buffer.close();
  return result;
}

function kernelOf(problem: CoalescedCopy): CopyKernel {
  const plan = planDeviceCopy(problem, true);
  if (plan?.kind === "tiled") return tiledKernel(plan.problem, plan.tile);
  if (plan?.kind === "strided") return stridedKernel(plan.problem);
  throw new Error(`${plan?.kind} is not a kernel`);
}

/** The same problem with a given extent of the first axis. */
function long(problem: Omit<CoalescedCopy, "words">, extent: number): CoalescedCopy {
  const [first, ...axes] = problem.axes;
  if (first === undefined) throw new Error("expected an axis");
  const words = axes.reduce((product, axis) => product * axis.extent, extent);
  return { ...problem, axes: [{ ...first, extent }, ...axes], words };
}

const plain = { fromOffset: 0, toOffset: 0, conversion: null, alignment: 16 };
const problems: { readonly [name: string]: Omit<CoalescedCopy, "words"> } = {
  "four bytes at a time": {
    ...plain,
    word: 1,
    fromWord: 1,
    axes: [{ extent: 0, to: 40, from: 1 }, { extent: 40, to: 1, from: 512 }],
  },
  "one by one": {
    ...plain,
    word: 1,
    fromWord: 1,
    axes: [{ extent: 0, to: 41, from: 1 }, { extent: 41, to: 1, from: 513 }],
  },
  "in the order of the destination": {
    ...plain,
    word: 2,
    fromWord: 2,
    axes: [{ extent: 0, to: 24, from: 30 }, { extent: 3, to: 8, from: 9 }, { extent: 7, to: 1, from: 1 }],
  },
};

for (const [name, problem] of Object.entries(problems)) {
  test(`a copy ${name} of more elements than 32 bits count begins like one of few`, () => {
    const few = begun(kernelOf(long(problem, 2048)));
    for (const extent of [2 ** 31, 2 ** 32, 2 ** 33]) {
      assertEquals(begun(kernelOf(long(problem, extent))), few, `${extent}`);
    }
  });
}

test("a copy of more packed elements than 32 bits count begins like one of few", () => {
  for (const steps of [{ to: 64, from: 30 }, { to: 9, from: 8 }]) { // rows in separate bytes, and rows that share them
    const kernel = (extent: number) => {
      const [part] = planPacked({
        bits: 3,
        axes: [{ extent, ...steps }, { extent: 7, to: 1, from: 1 }],
        from: 5,
        to: 2,
      });
      if (part === undefined) throw new Error("expected a kernel");
      return packedKernel(part.problem);
    };
    const few = begun(kernel(512));
    for (const extent of [2 ** 31, 2 ** 33]) assertEquals(begun(kernel(extent)), few, `${extent}`);
  }
});
