/**
 * Contexts: primary and others, the stack of current ones, and operations on all work of a context.
 *
 * @module
 */
import { CU_CTX, CUresult } from "../../../bindings/cuda_types.ts";
import { type CallTable, checkFlags, refuse } from "../call.ts";
import type { Simulator } from "../simulator.ts";
import { writeInt, writeUint, writeWord } from "../out_parameters.ts";
import type { Context } from "../objects.ts";
import { recordTask, taskOf } from "./event.ts";

// law sim/contextCalls: sim/contexts
/** The calls of the group. */
export function contextCalls(simulator: Simulator): CallTable<"context"> {
  const { stack } = simulator;
  const primary = (device: number): Context => {
    const context = simulator.primaries[device];
    if (context === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_DEVICE);
    return context;
  };
  /** Refuses an operation on all streams of a context while one is being captured, and invalidates the capture. */
  const refuseCaptures = (context: Context): void => {
    for (const stream of context.streams) simulator.refuseCapturing(stream);
  };

  return {
    cuDevicePrimaryCtxRetain(out, device) {
      const context = primary(device);
      writeWord(out, context.handle);
      if (!context.alive) simulator.activate(context);
      context.device.retained++;
    },
    cuDevicePrimaryCtxRelease_v2(device) {
      const context = primary(device);
      if (context.device.retained === 0) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
      if (--context.device.retained === 0) simulator.destroy(context);
    },
    cuDevicePrimaryCtxGetState(device, flags, active) {
      const context = primary(device);
      writeUint(flags, context.flags);
      writeInt(active, Number(context.alive));
    },
    cuDevicePrimaryCtxSetFlags_v2(device, flags) {
      checkFlags(flags, CU_CTX);
      primary(device).flags = flags;
    },
    cuCtxCreate_v2(out, flags, device) {
      checkFlags(flags, CU_CTX);
      const context = simulator.newContext(simulator.device(device), false, flags);
      writeWord(out, context.handle);
      simulator.activate(context);
      stack.push(context);
    },
    cuCtxDestroy_v2(handle) {
      const context = simulator.context(handle);
      if (context.isPrimary) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
      simulator.destroy(context);
      if (stack.at(-1) === context) stack.pop();
    },
    cuCtxGetCurrent: (out) => writeWord(out, stack.at(-1)?.handle ?? 0n),
    cuCtxSetCurrent(handle) {
      const context = handle === 0n ? null : simulator.context(handle);
      stack.pop();
      if (context !== null) stack.push(context);
    },
    cuCtxPushCurrent_v2: (handle) => void stack.push(simulator.context(handle)),
    cuCtxPopCurrent_v2(out) {
      const context = stack.at(-1);
      if (context === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
      if (out !== 0n) writeWord(out, context.handle);
      stack.pop();
    },
    cuCtxGetDevice: (out) => writeInt(out, simulator.current().device.ordinal),
    cuCtxGetFlags: (out) => writeUint(out, simulator.current().flags),
    cuCtxGetId: (handle, out) => writeWord(out, (handle === 0n ? simulator.current() : simulator.context(handle)).id),
    cuCtxGetStreamPriorityRange(least, greatest) {
      simulator.current();
      if (least !== 0n) writeInt(least, 0);
      if (greatest !== 0n) writeInt(greatest, greatestPriority);
    },
    cuCtxSynchronize() {
      const context = simulator.current();
      simulator.refuseInCapture();
      refuseCaptures(context);
      simulator.hostWaits(context, ...simulator.tails(context));
      context.seen = simulator.scheduler.lastId + 1;
    },
    cuCtxRecordEvent(handle, eventHandle) {
      const context = simulator.usable(handle === 0n ? simulator.current() : simulator.context(handle));
      const event = simulator.event(eventHandle);
      if (event.context !== context) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
      refuseCaptures(context);
      const enqueue = (run: () => void) => simulator.queue(context, context.legacy.id, run, simulator.tails(context));
      recordTask(simulator, event, enqueue, true);
    },
    cuCtxWaitEvent(handle, eventHandle) {
      const context = simulator.usable(handle === 0n ? simulator.current() : simulator.context(handle));
      const event = simulator.event(eventHandle);
      refuseCaptures(context);
      if (event.captured !== null) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      if (event.record === null) return;
      context.barrier = simulator.queue(context, context.legacy.id, () => {}, [
        context.barrier,
        taskOf(simulator, event),
      ]);
    },
    cuCtxEnablePeerAccess(handle, flags) {
      const context = simulator.current();
      const peer = simulator.usable(simulator.context(handle));
      if (flags !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (context.peers.has(peer)) throw refuse(CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
      const [from, to] = [context.device.ordinal, peer.device.ordinal];
      if (from === to || !simulator.options.canAccessPeer(from, to)) {
        throw refuse(CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
      }
      context.peers.add(peer);
    },
    cuCtxDisablePeerAccess(handle) {
      const context = simulator.current();
      if (!context.peers.delete(simulator.context(handle))) throw refuse(CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    },
  };
}

/** The highest priority, which is the lowest number. The lowest priority is 0. */
export const greatestPriority = -5;
