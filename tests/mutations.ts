/**
 * The lines that protect somebody, each with what replaces it and the tests that must fail then. Data for
 * `tools/mutate.ts`; `mutations_test.ts` checks that every entry still applies.
 *
 * A mutant that cannot be told from the original by any test is not listed: such a line is deleted, not protected.
 *
 * @module
 */
import { arrowMutations } from "./mutations/arrow.ts";
import { arrowCheckMutations } from "./mutations/arrow_checks.ts";
import { captureMutations } from "./mutations/captures.ts";
import { checkerMutations } from "./mutations/checker.ts";
import { copyMutations } from "./mutations/copies.ts";
import { cudaMutations } from "./mutations/cuda.ts";
import { exchangeMutations } from "./mutations/exchange.ts";
import { ffiMutations } from "./mutations/ffi.ts";
import { graphMutations } from "./mutations/graphs.ts";
import { layoutMutations } from "./mutations/layout.ts";
import { memoryMutations } from "./mutations/memory.ts";
import type { Mutation } from "./mutations/mutation.ts";
import { pythonMutations } from "./mutations/python.ts";
import { pythonGuestMutations } from "./mutations/python_guest.ts";
import { resourceMutations } from "./mutations/resources.ts";
import { sharingMutations } from "./mutations/sharing.ts";
import { simMutations } from "./mutations/sim.ts";
import { simGraphMutations } from "./mutations/sim_graphs.ts";
import { simOutputMutations } from "./mutations/sim_output.ts";
import { ucxMutations } from "./mutations/ucx.ts";

/** All of them, room by room. */
export const mutations: readonly Mutation[] = [
  ...cudaMutations,
  ...graphMutations,
  ...captureMutations,
  ...memoryMutations,
  ...copyMutations,
  ...resourceMutations,
  ...sharingMutations,
  ...exchangeMutations,
  ...arrowMutations,
  ...arrowCheckMutations,
  ...pythonMutations,
  ...pythonGuestMutations,
  ...ffiMutations,
  ...layoutMutations,
  ...checkerMutations,
  ...simMutations,
  ...simOutputMutations,
  ...simGraphMutations,
  ...ucxMutations,
];
