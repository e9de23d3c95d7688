/**
 * Copies between any two layouts on a real device: its driver compiles the kernels, its memory requires aligned words.
 */
import { test } from "node:test";
import { Cuda, DType, StridedLayout } from "../../mod.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { assertCopied, copies, turnedCopies } from "../support/copies.ts";
import { assertMoved, packedCopies, packedTypes } from "../support/packed_copies.ts";

test(...needs(missingGpus(), "on a device, a copy moves each element to its place and touches nothing else"), () => {
  using cuda = Cuda.open();
  check(fc.property(fc.oneof(copies, turnedCopies), (copy) => void assertCopied(cuda, copy)), 150);
});

test(
  ...needs(missingGpus(), "on a device, packed elements get to their places and nothing beside them changes"),
  () => {
    using cuda = Cuda.open();
    check(fc.property(packedCopies("device", "device", "pinned", "host"), (copy) => assertMoved(cuda, copy)), 300);
    // Where each thread has only one element, the assembler once took it for one that does not exist
    // (kernel_registers_test.ts).
    const [from, to] = ["device", "device"] as const;
    for (const dtype of packedTypes) {
      const layout = (...strides: number[]) => new StridedLayout([3, 2], strides, DType.from(dtype).itemsize);
      for (const strides of [[1, 0], [0, 1], [2, 1]]) {
        const source = { layout: layout(...strides), offset: 0, size: 8 };
        assertMoved(cuda, {
          dtype,
          source,
          destination: { layout: layout(2, 3), offset: 0, size: 8 },
          from,
          to,
          seed: 1,
        });
      }
    }
  },
);
