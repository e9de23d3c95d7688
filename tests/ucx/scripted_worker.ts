/**
 * A worker of a scripted libucp, and addresses that it accepts.
 *
 * @module
 */
import { withTrailer, withVersion } from "../../src/ucx/address.ts";
import { ownIdentity } from "../../src/ucx/process_identity.ts";
import { UcxWorker } from "../../src/ucx/worker.ts";
import { ScriptedUcp } from "./scripted_ucp.ts";

/** What a worker is made of; the owner is asked to forget it when it is closed. */
export type WorkerParts = ConstructorParameters<typeof UcxWorker>[0];

/** The parts of a worker, except for those given. The context closes no workers. */
export function workerParts({ functions: ucp }: ScriptedUcp, parts: Partial<WorkerParts> = {}): WorkerParts {
  return {
    ucp,
    version: "1.22.0",
    context: 1n,
    cuda: null,
    hasRemoteMemory: true,
    requestBytes: 8,
    family: 4,
    owner: { add: () => {}, forget: () => {} },
    root: {},
    ...parts,
  };
}

/** The address of a worker of this process, with a version of UCX. */
export function addressOf(version = "1.22.0"): Uint8Array {
  return withTrailer(withVersion(new Uint8Array([1, 2, 3]), version), ownIdentity());
}

/** An opened worker; it must be aborted: a scripted worker always may have events. */
export interface ScriptedWorker {
  readonly ucp: ScriptedUcp;
  readonly worker: UcxWorker;
  /** An address that it accepts. */
  readonly address: Uint8Array;
  /** How often its context was asked to forget it. */
  readonly forgotten: () => number;
}

/** Opens a worker. */
export function openScriptedWorker(): ScriptedWorker {
  const ucp = new ScriptedUcp();
  let count = 0;
  const worker = new UcxWorker(workerParts(ucp, { owner: { add: () => {}, forget: () => void count++ } }));
  return { ucp, worker, address: addressOf(), forgotten: () => count };
}
