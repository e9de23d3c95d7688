/**
 * What the host has waited for when a copy returns.
 *
 * @module
 */
import type { Touch } from "../capture.ts";
import type { ContextClock } from "../vector_clocks.ts";
import type { CheckerState } from "../checker_state.ts";
import type { PendingCall } from "../pending_call.ts";

/** Where the two ends of a copy are, as far as the function's name or a struct says. */
export interface Ends {
  readonly to?: "device" | "host";
  readonly from?: "device" | "host";
}

/** Where bytes are. `unknown`: not allocated here, so pageable host memory or another library's memory. */
type Place = "device" | "pinned" | "pageable" | "unknown";

// law checker/acceptCopy: checker/checker, checker/schedule, checker/copies, checker/lifetime
/**
 * Notes a copy that the driver has accepted, and what the host has waited for after it.
 *
 * As documented ("API synchronization behavior"): a copy that is not asynchronous has completed if it involves the
 * host, except that from pageable memory to a device only the source has been read; one between devices has not. An
 * asynchronous copy has completed if both ends are on the host. Where the documentation says "might", nothing is
 * concluded.
 */
export function acceptCopy(checker: CheckerState, pending: PendingCall, ends: Ends, synchronous: boolean): void {
  const { stream, call, touches } = pending;
  if (stream === null || pending.isNothing) return;
  checker.checkOverlap(stream, call, touches);
  if (stream.capture !== null) return pending.accepted();
  const [to, from] = [placeOf(checker, touches, true, ends.to), placeOf(checker, touches, false, ends.from)];
  if (synchronous && from === "pageable" && to === "device") {
    checker.mark(stream, "wait", call);
    checker.hostWaitsFor([stream], call); // for earlier work on the stream
    for (const { start, end, writes } of touches) if (writes === false) checker.touchByHost(call, start, end, false);
    checker.enqueue(stream, call, touches.filter(({ writes }) => writes === true));
  } else {
    pending.accepted();
    const isHosts = (place: Place) => place !== "device";
    if (synchronous ? isHosts(to) || isHosts(from) : isHosts(to) && isHosts(from)) checker.hostWaitsFor([stream], call);
  }
  if (touches.some(({ start }) => checker.memory.find(start)?.syncMemops)) checker.hostWaitsFor([stream], call);
}

function placeOf(checker: CheckerState, touches: readonly Touch[], writes: boolean, named: Ends["to"]): Place {
  const touch = touches.find((one) => one.writes === writes);
  const allocation = touch === undefined ? undefined : checker.memory.find(touch.start);
  if (allocation !== undefined) return allocation.isPinned ? "pinned" : "device";
  if (named === undefined) return "unknown";
  return named === "device" ? "device" : "pageable";
}

// law checker/acceptPeerCopy: checker/schedule
/**
 * Notes a peer copy that is not asynchronous: documented as serialised with all earlier and later work of the two
 * contexts.
 */
export function acceptPeerCopy(checker: CheckerState, pending: PendingCall, contexts: readonly bigint[]): void {
  const { stream } = pending;
  if (stream === null || pending.isNothing) return;
  checker.checkOverlap(stream, pending.call, pending.touches);
  const all = new Set<ContextClock>([stream.context, ...contexts.map((handle) => checker.context(handle))]);
  checker.order.advance(stream, null);
  for (const context of all) for (const other of context.streams) checker.order.wait(stream, other.clock);
  pending.accepted();
  for (const context of all) checker.order.waitInContext(context, stream.clock);
}
