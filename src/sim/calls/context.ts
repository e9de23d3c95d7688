/**
 * Contexts: the primary ones and others, the stack of current ones, and what is done to all work of one.
 *
 * @module
 */
import { CU_CTX, CUresult } from "../../../bindings/cuda_types.ts";
import type { Behaviour } from "../call_table.ts";
import type { Machine } from "../simulator_state.ts";
import { writeInt, writeUint, writeWord } from "../out_parameters.ts";
import type { Context } from "../objects.ts";
import { refuse } from "../call_error.ts";
import { recordTask, taskOf } from "./event.ts";

const allFlags = Object.values(CU_CTX).reduce<number>((all, flag) => all | flag, 0);

/** The calls of the group. */
export function contextCalls(machine: Machine): Behaviour<"context"> {
  const { stack } = machine;
  const primary = (device: number): Context => {
    const context = machine.primaries[machine.device(device).ordinal];
    if (context === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_DEVICE);
    return context;
  };
  const checkFlags = (flags: number) => {
    if ((flags & ~allFlags) !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  };
  /** A context by its handle, where NULL means none. A destroyed one is one that never was. */
  const given = (handle: bigint): Context => machine.context(handle);

  /** What concerns all streams of a context cannot be done while one is being captured, and ends the capture. */
  const refuseCaptures = (context: Context): void => {
    for (const stream of context.streams) machine.refuseCapturing(stream);
  };

  return {
    cuDevicePrimaryCtxRetain(out, device) {
      const context = primary(device);
      writeWord(out, context.handle);
      if (!context.alive) machine.revive(context);
      context.device.retained++;
    },
    cuDevicePrimaryCtxRelease_v2(device) {
      const context = primary(device);
      if (context.device.retained === 0) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
      if (--context.device.retained === 0) machine.destroy(context);
    },
    cuDevicePrimaryCtxGetState(device, flags, active) {
      const context = primary(device);
      writeUint(flags, context.flags);
      writeInt(active, Number(context.alive));
    },
    cuDevicePrimaryCtxSetFlags_v2(device, flags) {
      checkFlags(flags);
      primary(device).flags = flags;
    },
    cuCtxCreate_v2(out, flags, device) {
      checkFlags(flags);
      const context = machine.newContext(machine.device(device), false, flags);
      writeWord(out, context.handle);
      machine.revive(context);
      stack.push(context);
    },
    cuCtxDestroy_v2(handle) {
      const context = given(handle);
      if (context.isPrimary) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
      machine.destroy(context);
      if (stack.at(-1) === context) stack.pop();
    },
    cuCtxGetCurrent: (out) => writeWord(out, stack.at(-1)?.handle ?? 0n),
    cuCtxSetCurrent(handle) {
      const context = handle === 0n ? null : given(handle);
      stack.pop();
      if (context !== null) stack.push(context);
    },
    cuCtxPushCurrent_v2: (handle) => void stack.push(given(handle)),
    cuCtxPopCurrent_v2(out) {
      const context = stack.at(-1);
      if (context === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
      if (out !== 0n) writeWord(out, context.handle);
      stack.pop();
    },
    cuCtxGetDevice: (out) => writeInt(out, machine.current().device.ordinal),
    cuCtxGetFlags: (out) => writeUint(out, machine.current().flags),
    cuCtxGetId: (handle, out) => writeWord(out, (handle === 0n ? machine.current() : given(handle)).id),
    cuCtxGetStreamPriorityRange(least, greatest) {
      machine.current();
      if (least !== 0n) writeInt(least, 0);
      if (greatest !== 0n) writeInt(greatest, greatestPriority);
    },
    cuCtxSynchronize() {
      const context = machine.current();
      machine.refuseInCapture();
      refuseCaptures(context);
      machine.wait(context, ...machine.tails(context));
    },
    cuCtxRecordEvent(handle, eventHandle) {
      const context = machine.usable(handle === 0n ? machine.current() : given(handle));
      const event = machine.event(eventHandle);
      if (event.context !== context) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
      refuseCaptures(context);
      recordTask(machine, event, (run) => machine.queue(context, context.legacy.lane, run, machine.tails(context)));
    },
    cuCtxWaitEvent(handle, eventHandle) {
      const context = machine.usable(handle === 0n ? machine.current() : given(handle));
      const event = machine.event(eventHandle);
      refuseCaptures(context);
      if (event.captured !== null) throw refuse(CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      if (event.record === null) return;
      context.gate = machine.queue(context, context.legacy.lane, () => {}, [context.gate, taskOf(machine, event)]);
    },
    cuCtxEnablePeerAccess(handle, flags) {
      const context = machine.current();
      const peer = machine.usable(given(handle));
      if (flags !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (context.peers.has(peer)) throw refuse(CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
      const [from, to] = [context.device.ordinal, peer.device.ordinal];
      if (from === to || !machine.options.canAccessPeer(from, to)) {
        throw refuse(CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
      }
      context.peers.add(peer);
    },
    cuCtxDisablePeerAccess(handle) {
      const context = machine.current();
      if (!context.peers.delete(given(handle))) throw refuse(CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    },
  };
}

/** The priority of what goes first. The least is 0. */
export const greatestPriority = -5;
