/** On a GPU, too, nothing done while another library captures invalidates its capture. */
import { test } from "node:test";
import { Cuda } from "../../mod.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { besideCapture, runBesideCapture } from "./beside_captures.ts";

test(...needs(missingGpus(), "whatever is done while another library captures, its capture holds"), () => {
  using cuda = Cuda.open();
  check(fc.property(besideCapture, (program) => runBesideCapture(cuda, program)), 100);
});
