/** Copies between any two layouts on a real device: its driver compiles the kernels, and its memory wants aligned words. */
import { test } from "node:test";
import { Cuda } from "../../mod.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { assertCopied, copies, turnedCopies } from "../view/copies.ts";
import { assertMoved, packedCopies } from "../view/packed_copies.ts";

test(...needs(missingGpus(), "on a device, a copy moves each element to its place and touches nothing else"), () => {
  using cuda = Cuda.open();
  check(fc.property(fc.oneof(copies, turnedCopies), (copy) => void assertCopied(cuda, copy)), 150);
});

test(
  ...needs(missingGpus(), "on a device, packed elements get to their places and nothing beside them changes"),
  () => {
    using cuda = Cuda.open();
    check(fc.property(packedCopies("device", "device", "pinned", "host"), (copy) => assertMoved(cuda, copy)), 100);
  },
);
