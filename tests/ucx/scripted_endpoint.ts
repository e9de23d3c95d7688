/**
 * An endpoint and a receiver of a scripted libucp.
 *
 * @module
 */
import { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { takeWorkerLimits } from "../../src/ucx/active_messages/message_limits.ts";
import type { OperationPool } from "../../src/ucx/operation.ts";
import type { PoolStaging } from "../../src/ucx/pool_staging.ts";
import { Progress } from "../../src/ucx/progress.ts";
import { causewayProtocol } from "../../src/ucx/protocol.ts";
import { Receiver } from "../../src/ucx/receiver.ts";
import { scriptedResources, ScriptedUcp } from "./scripted_ucp.ts";

/** An opened endpoint; its progress must be stopped: a scripted worker always may have events. */
export interface Scripted {
  readonly ucp: ScriptedUcp;
  /** Its handle is 7. */
  readonly endpoint: UcxEndpoint;
  /** Another endpoint with the same handle: UCX gives later ones those of endpoints that are gone. */
  readonly openNext: () => UcxEndpoint;
  readonly receiver: Receiver;
  /** Handles of endpoints that were forgotten. */
  readonly forgotten: bigint[];
  readonly progress: Progress;
  readonly operations: OperationPool;
}

/** What the endpoint is. */
export interface ScriptedOptions {
  readonly handlesErrors?: boolean;
  readonly isByHost?: boolean;
  readonly isConnecting?: boolean;
  readonly cuda?: PoolStaging | null;
}

/** Opens an endpoint. */
export function openScripted(
  { handlesErrors = false, isByHost = false, isConnecting = false, cuda = null }: ScriptedOptions = {},
): Scripted {
  const ucp = new ScriptedUcp();
  const resources = scriptedResources(ucp);
  const { operations, keys } = resources;
  const progress = new Progress(resources, "adaptive", null);
  const receiver = new Receiver(resources, progress, cuda);
  const forgotten: bigint[] = [];
  const forget = (handle: bigint) => forgotten.push(handle);
  const home = {
    resources,
    ucp: ucp.functions,
    progress,
    operations,
    receiver,
    address: () => new Uint8Array(8),
    longestHeader: () => 8,
    cuda,
    cutShort: () => {},
    limits: takeWorkerLimits({}),
    isByHost,
    isPaired: false,
    hasRemoteMemory: true,
    handlesErrors,
    isConnecting,
    keys,
    protocol: causewayProtocol,
    forget,
  };
  const openNext = () => new UcxEndpoint(home, 7n);
  return { ucp, endpoint: openNext(), openNext, receiver, forgotten, progress, operations };
}
