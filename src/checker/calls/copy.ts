/**
 * Copies of contiguous bytes, and when, as documented, the host has waited for them.
 *
 * @module
 */
import type { DriverGroups } from "../../driver/mod.ts";
import type { CheckerState } from "../checker_state.ts";
import type { StreamClock } from "../vector_clocks.ts";
import type { CheckedCalls } from "../checked_driver.ts";
import { acceptCopy, acceptPeerCopy, type Ends } from "./host_synchronization.ts";

/** The calls of the group. */
export function copyCalls(checker: CheckerState, inner: DriverGroups["copy"]): CheckedCalls<"copy"> {
  /** `ends` is what the function's name says about `to` and `from`. */
  const copy = (
    call: string,
    to: bigint,
    from: bigint,
    size: bigint,
    stream: StreamClock | null,
    perform: () => number,
    ends: Ends,
    isBlocking: boolean,
  ): number => {
    const pending = checker.pendingCall(call, stream).reads(from, size).writes(to, size);
    const code = perform();
    if (code === 0) acceptCopy(checker, pending, ends, isBlocking);
    return code;
  };
  /** Copies on the legacy default stream. */
  const now = (call: string, to: bigint, from: bigint, size: bigint, perform: () => number, ends: Ends = {}): number =>
    copy(call, to, from, size, checker.legacy(), perform, ends, true);
  const later = (
    call: string,
    to: bigint,
    from: bigint,
    size: bigint,
    stream: bigint,
    perform: () => number,
    ends: Ends = {},
  ): number => copy(call, to, from, size, checker.stream(stream, call), perform, ends, false);
  return {
    cuMemcpy: (to, from, size) => now("cuMemcpy", to, from, size, () => inner.cuMemcpy(to, from, size)),
    cuMemcpyHtoD_v2: (to, from, size) =>
      now("cuMemcpyHtoD_v2", to, from, size, () => inner.cuMemcpyHtoD_v2(to, from, size), upload),
    cuMemcpyDtoH_v2: (to, from, size) =>
      now("cuMemcpyDtoH_v2", to, from, size, () => inner.cuMemcpyDtoH_v2(to, from, size), download),
    cuMemcpyDtoD_v2: (to, from, size) =>
      now("cuMemcpyDtoD_v2", to, from, size, () => inner.cuMemcpyDtoD_v2(to, from, size), between),
    cuMemcpyPeer(to, toContext, from, fromContext, size) {
      const pending = checker.pendingCall("cuMemcpyPeer", checker.legacy()).reads(from, size).writes(to, size);
      const code = inner.cuMemcpyPeer(to, toContext, from, fromContext, size);
      if (code === 0) acceptPeerCopy(checker, pending, [toContext, fromContext]);
      return code;
    },
    cuMemcpyAsync: (to, from, size, stream) =>
      later("cuMemcpyAsync", to, from, size, stream, () => inner.cuMemcpyAsync(to, from, size, stream)),
    cuMemcpyHtoDAsync_v2: (to, from, size, stream) => {
      const perform = () => inner.cuMemcpyHtoDAsync_v2(to, from, size, stream);
      return later("cuMemcpyHtoDAsync_v2", to, from, size, stream, perform, upload);
    },
    cuMemcpyDtoHAsync_v2: (to, from, size, stream) => {
      const perform = () => inner.cuMemcpyDtoHAsync_v2(to, from, size, stream);
      return later("cuMemcpyDtoHAsync_v2", to, from, size, stream, perform, download);
    },
    cuMemcpyDtoDAsync_v2: (to, from, size, stream) => {
      const perform = () => inner.cuMemcpyDtoDAsync_v2(to, from, size, stream);
      return later("cuMemcpyDtoDAsync_v2", to, from, size, stream, perform, between);
    },
    cuMemcpyPeerAsync: (to, toContext, from, fromContext, size, stream) => {
      const perform = () => inner.cuMemcpyPeerAsync(to, toContext, from, fromContext, size, stream);
      return later("cuMemcpyPeerAsync", to, from, size, stream, perform, between);
    },
  };
}

const upload: Ends = { to: "device", from: "host" };
const download: Ends = { to: "host", from: "device" };
const between: Ends = { to: "device", from: "device" };
