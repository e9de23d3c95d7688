/**
 * A libucp that does nothing on its own: operations end when the test ends them. For orders of events that the real
 * library shows only occasionally.
 *
 * @module
 */
import { ucp, ucs } from "../../bindings/ucp.ts";
import {
  ucp_ep_params_t,
  UCP_REQUEST_PARAM_FIELD,
  ucp_request_param_t,
  ucp_tag_recv_info_t,
} from "../../bindings/ucp_types.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { struct } from "../../src/ffi/struct.ts";
import type { UcpFunctions } from "../../src/ucx/library.ts";
import { WorkerResources } from "../../src/ucx/worker_resources.ts";

/** Functions that return at once, not worth scripting. */
const quiet = new Set([
  "ucp_worker_progress",
  "ucp_tag_probe_nb",
  "ucp_worker_create",
  "ucp_worker_arm",
  "ucp_worker_get_efd",
  "ucp_worker_set_am_recv_handler",
]);

/** UCS_ERR_BUSY: there may be events, so no worker sleeps. */
const busy = -15;

/** A scripted libucp. */
export class ScriptedUcp {
  /** Its functions. */
  readonly functions: UcpFunctions;
  /** The calls made by the code under test; requests by their number, closes with their flags. */
  readonly log: string[] = [];
  /** Handles that ucp_ep_create returns, first to last; then new ones. */
  readonly handles: bigint[] = [];
  /** Values that the next functions that begin an operation return instead of a request. */
  readonly answers: bigint[] = [];
  /** How many messages ucp_tag_probe_nb has yet to return; their handles are their numbers from the last to 1. */
  unexpected = 0;
  /** Called once, before the next function that begins an operation returns. */
  onBegin: (() => void) | null = null;
  /** Called inside ucp_worker_progress. */
  onProgress: (() => void) | null = null;
  readonly #requests = new Map<
    bigint,
    {
      readonly isReceive: boolean;
      readonly cb: bigint;
      readonly userData: bigint;
      readonly address: bigint;
      /** The request's own memory, which begins with its status; null if UCX allocates it. */
      readonly memory: DataView | null;
    }
  >();
  #next = 1n;
  #errorHandler = 0n;

  constructor() {
    const groups = Object.entries({ ...ucp, ...ucs }).map(([group, functions]) => {
      const members = Object.entries(functions).map(([name, { returns }]) => {
        const call = (...args: never[]): number | bigint | undefined => {
          const answer = this.#call(name, args);
          if (returns === "void") return undefined;
          return returns === "i64" || returns === "ptr" || returns === "u64" ? BigInt(answer) : Number(answer);
        };
        return [name, call] as const;
      });
      return [group, Object.fromEntries(members)] as const;
    });
    // One function per symbol of the tables, as the type says.
    this.functions = Object.fromEntries(groups) as unknown as UcpFunctions;
  }

  /** The memory of a message that was begun. */
  memoryOf(request: number): bigint {
    return this.#requests.get(BigInt(request))?.address ?? 0n;
  }

  /** Completes the request with this number: the first one begun is 1. @param length of a received message */
  finish(request: number, status = 0, length = 0): void {
    const begun = this.#requests.get(BigInt(request));
    if (begun === undefined) throw new RangeError(`There is no request ${request}`);
    const { isReceive, cb, userData, memory } = begun;
    memory?.setInt8(0, status);
    if (isReceive) {
      using arena = new NativeArena();
      const info = arena.struct(ucp_tag_recv_info_t);
      info.length = length;
      const callback = { args: ["ptr", "i64", "ptr", "ptr"], returns: "void" } as const;
      ffiPort().functionAt(cb, callback)(BigInt(request), BigInt(status), info.$address, userData);
      return;
    }
    const callback = { args: ["ptr", "i64", "ptr"], returns: "void" } as const;
    ffiPort().functionAt(cb, callback)(BigInt(request), BigInt(status), userData);
  }

  /** Reports the failure of an endpoint, as UCX does from within ucp_worker_progress. */
  fail(endpoint: bigint, status: number): void {
    const handler = { args: ["ptr", "ptr", "i8"], returns: "void" } as const;
    ffiPort().functionAt(this.#errorHandler, handler)(0n, endpoint, status);
  }

  #call(name: string, args: readonly (number | bigint)[]): number | bigint {
    const [first = 0n, second = 0n, third = 0n] = args;
    if (!quiet.has(name)) this.log.push(name);
    switch (name) {
      case "ucp_worker_progress":
        this.onProgress?.();
        return 0;
      case "ucp_tag_probe_nb":
        return this.unexpected === 0 ? 0 : this.unexpected--;
      case "ucp_tag_send_nbx":
        return this.#begin(args[4], false, second);
      case "ucp_tag_recv_nbx":
        return this.#begin(args[5], true, second);
      case "ucp_tag_msg_recv_nbx":
        return this.#begin(args[4], true, second);
      case "ucp_stream_recv_nbx":
        return this.#receiveArrived(BigInt(args[4] ?? 0n), BigInt(third));
      case "ucp_am_recv_data_nbx":
        return this.#begin(args[4], false, third);
      case "ucp_ep_flush_nbx":
      case "ucp_worker_flush_nbx":
        return this.#begin(second);
      case "ucp_ep_close_nbx": {
        const { op_attr_mask, flags } = struct(ucp_request_param_t).at(BigInt(second));
        this.log.pop();
        const given = (op_attr_mask & UCP_REQUEST_PARAM_FIELD.flags) === 0 ? "none" : flags;
        this.log.push(`ucp_ep_close_nbx ${first} flags ${given}`);
        return this.#begin(second);
      }
      case "ucp_worker_create":
        write(third, 1n);
        return 0;
      case "ucp_ep_create":
        this.#errorHandler = struct(ucp_ep_params_t).at(BigInt(second)).err_handler.cb;
        write(third, this.handles.shift() ?? 0x900n + this.#next);
        return 0;
      case "ucp_worker_arm":
        return busy;
      default:
        return 0;
    }
  }

  /** Receives bytes that have arrived. As UCX's builds without assertions do, it does not set the request's status. */
  #receiveArrived(parameters: bigint, length: bigint): bigint {
    const { cb, user_data, request } = struct(ucp_request_param_t).at(parameters);
    const status = requestMemory(request).getInt8(0);
    const callback = { args: ["ptr", "i64", "u64", "ptr"], returns: "void" } as const;
    ffiPort().functionAt(cb, callback)(request, BigInt(status), length, user_data);
    return request;
  }

  #begin(parameters: number | bigint = 0n, isReceive = false, memory: number | bigint = 0n): bigint {
    const answer = this.answers.shift();
    if (answer !== undefined) return answer;
    const given = struct(ucp_request_param_t).at(BigInt(parameters));
    this.#requests.set(this.#next, {
      isReceive,
      cb: given.cb,
      userData: given.user_data,
      address: typeof memory === "bigint" ? memory : 0n,
      memory: (given.op_attr_mask & UCP_REQUEST_PARAM_FIELD.request) === 0 ? null : requestMemory(given.request),
    });
    const { onBegin } = this;
    this.onBegin = null;
    const request = this.#next++;
    onBegin?.();
    return request;
  }
}

/** Bytes of a request. */
const requestBytes = 8;

/** The memory of a request. UCX's handle is the end of it. */
function requestMemory(request: bigint): DataView {
  return new DataView(ffiPort().memory(request - BigInt(requestBytes), requestBytes));
}

/** Writes a handle to a function's output address. */
function write(address: number | bigint, handle: bigint): void {
  new DataView(ffiPort().memory(BigInt(address), 8)).setBigUint64(0, handle, true);
}

/** The resources of a worker of a scripted libucp, without an owner. */
export function scriptedResources({ functions: ucp }: ScriptedUcp, version = "1.22.0"): WorkerResources {
  const owner = { forget: () => {} };
  return new WorkerResources({ ucp, version, requestBytes, madeAt: "", owner }, 1n);
}
