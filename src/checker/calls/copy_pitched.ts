/**
 * Copies of rectangles and boxes, row by row, so that interleaved columns do not count as the same bytes.
 *
 * @module
 */
import { CU_MEMORYTYPE, CUDA_MEMCPY2D_v2, CUDA_MEMCPY3D_PEER, CUDA_MEMCPY3D_v2 } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/mod.ts";
import type { StreamClock } from "../vector_clocks.ts";
import type { CheckerState } from "../checker_state.ts";
import type { PendingCall, Rows } from "../pending_call.ts";
import type { CheckedCalls } from "../checked_driver.ts";
import { acceptCopy, acceptPeerCopy, type Ends } from "./host_synchronization.ts";

/** What both structs say about a copy. */
interface Box {
  readonly to: Rows;
  readonly from: Rows;
  readonly ends: Ends;
}

/** The calls of the group. */
export function copyPitchedCalls(
  checker: CheckerState,
  inner: DriverGroups["copyPitched"],
): CheckedCalls<"copyPitched"> {
  const pending = (call: string, stream: StreamClock | null, box: Box | null): PendingCall => {
    const made = checker.pendingCall(call, stream);
    return box === null ? made : made.rows(box.from, false).rows(box.to, true);
  };
  const copy = (
    call: string,
    stream: StreamClock | null,
    box: Box | null,
    perform: () => number,
    synchronous: boolean,
  ) => {
    const made = pending(call, stream, box);
    const code = perform();
    if (code === 0) acceptCopy(checker, made, box?.ends ?? {}, synchronous);
    return code;
  };
  const flat = (address: bigint) => rectangle(checker, address);
  return {
    cuMemcpy2D_v2: (at) => copy("cuMemcpy2D_v2", checker.legacy(), flat(at), () => inner.cuMemcpy2D_v2(at), true),
    cuMemcpy2DUnaligned_v2: (at) =>
      copy("cuMemcpy2DUnaligned_v2", checker.legacy(), flat(at), () => inner.cuMemcpy2DUnaligned_v2(at), true),
    cuMemcpy2DAsync_v2(at, stream) {
      const call = "cuMemcpy2DAsync_v2";
      return copy(call, checker.stream(stream, call), flat(at), () => inner.cuMemcpy2DAsync_v2(at, stream), false);
    },
    cuMemcpy3D_v2: (at) =>
      copy("cuMemcpy3D_v2", checker.legacy(), box(checker, at), () => inner.cuMemcpy3D_v2(at), true),
    cuMemcpy3DAsync_v2(at, stream) {
      const call = "cuMemcpy3DAsync_v2";
      return copy(
        call,
        checker.stream(stream, call),
        box(checker, at),
        () => inner.cuMemcpy3DAsync_v2(at, stream),
        false,
      );
    },
    cuMemcpy3DPeer(at) {
      const made = pending("cuMemcpy3DPeer", checker.legacy(), box(checker, at));
      const code = inner.cuMemcpy3DPeer(at);
      if (code !== 0) return code;
      const { srcContext, dstContext } = checker.reader.struct(CUDA_MEMCPY3D_PEER, at);
      acceptPeerCopy(checker, made, [srcContext, dstContext]);
      return code;
    },
    cuMemcpy3DPeerAsync(at, stream) {
      const call = "cuMemcpy3DPeerAsync";
      return copy(
        call,
        checker.stream(stream, call),
        box(checker, at),
        () => inner.cuMemcpy3DPeerAsync(at, stream),
        false,
      );
    },
  };
}

/** The ends of a copy, or null if one is not linear memory. */
function ends(
  to: { readonly type: number; readonly host: bigint; readonly device: bigint },
  from: { readonly type: number; readonly host: bigint; readonly device: bigint },
): { readonly to: bigint; readonly from: bigint; readonly ends: Ends } | null {
  const linear: readonly number[] = [CU_MEMORYTYPE.HOST, CU_MEMORYTYPE.DEVICE, CU_MEMORYTYPE.UNIFIED];
  if (!linear.includes(to.type) || !linear.includes(from.type)) return null;
  const address = (one: typeof to) => one.type === CU_MEMORYTYPE.HOST ? one.host : one.device;
  const place = (type: number): Ends["to"] =>
    type === CU_MEMORYTYPE.HOST ? "host" : type === CU_MEMORYTYPE.DEVICE ? "device" : undefined;
  const [toPlace, fromPlace] = [place(to.type), place(from.type)];
  return {
    to: address(to),
    from: address(from),
    ends: {
      ...toPlace === undefined ? {} : { to: toPlace },
      ...fromPlace === undefined ? {} : { from: fromPlace },
    },
  };
}

function rectangle(checker: CheckerState, at: bigint): Box | null {
  if (at === 0n) return null;
  const c = checker.reader.struct(CUDA_MEMCPY2D_v2, at);
  const found = ends(
    { type: c.dstMemoryType, host: c.dstHost, device: c.dstDevice },
    { type: c.srcMemoryType, host: c.srcHost, device: c.srcDevice },
  );
  if (found === null) return null;
  const { WidthInBytes: width, Height: height } = c;
  const rows = (address: bigint, x: number, y: number, pitch: number): Rows => {
    const step = pitch === 0 ? x + width : pitch;
    return { address: address + BigInt(y * step + x), width, pitch: step, height, slicePitch: step * height, depth: 1 };
  };
  return {
    to: rows(found.to, c.dstXInBytes, c.dstY, c.dstPitch),
    from: rows(found.from, c.srcXInBytes, c.srcY, c.srcPitch),
    ends: found.ends,
  };
}

/** A box. The struct of peer copies is the same but for fields that do not matter here. */
function box(checker: CheckerState, at: bigint): Box | null {
  if (at === 0n) return null;
  const c = checker.reader.struct(CUDA_MEMCPY3D_v2, at);
  const found = ends(
    { type: c.dstMemoryType, host: c.dstHost, device: c.dstDevice },
    { type: c.srcMemoryType, host: c.srcHost, device: c.srcDevice },
  );
  if (found === null) return null;
  const { WidthInBytes: width, Height: height, Depth: depth } = c;
  const rows = (address: bigint, x: number, y: number, z: number, pitch: number, sliceHeight: number): Rows => {
    const step = pitch === 0 ? x + width : pitch;
    const slicePitch = step * (sliceHeight === 0 ? y + height : sliceHeight);
    return { address: address + BigInt(z * slicePitch + y * step + x), width, pitch: step, height, slicePitch, depth };
  };
  return {
    to: rows(found.to, c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight),
    from: rows(found.from, c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch, c.srcHeight),
    ends: found.ends,
  };
}
