/**
 * What a copy means for the host: whether it has waited when the call returns, and for what.
 *
 * @module
 */
import type { Touch } from "../capture.ts";
import type { ContextOrder } from "../vector_clocks.ts";
import type { Watch } from "../checker_state.ts";
import type { Work } from "../pending_call.ts";

/** Where the two ends of a copy are, as far as the function's name or a struct says it. */
export interface Ends {
  readonly to?: "device" | "host";
  readonly from?: "device" | "host";
}

/** Where bytes are. `unknown`: not allocated here, so pageable memory of the host or another library's. */
type Place = "device" | "pinned" | "pageable" | "unknown";

/**
 * Keeps a copy that the driver has accepted, and what the host knows after it.
 *
 * As documented ("API synchronization behavior"): a copy that is not asynchronous has ended if it concerns the host,
 * except that from pageable memory to a device only the source has been read; one within devices has not. An
 * asynchronous one has ended if both ends are the host's. Where the documentation says "might", nothing is concluded.
 */
export function finish(watch: Watch, work: Work, ends: Ends, synchronous: boolean): void {
  const { lane, call, touches } = work;
  if (lane === null || work.isNothing) return;
  watch.copies(lane, call, touches);
  if (lane.capture !== null) return work.done();
  const [to, from] = [placeOf(watch, touches, true, ends.to), placeOf(watch, touches, false, ends.from)];
  if (synchronous && from === "pageable" && to === "device") {
    watch.mark(lane, "wait", call);
    watch.hostWaitsFor([lane], call); // for what is before it in the stream
    for (const { start, end, writes } of touches) if (writes === false) watch.touchByHost(call, start, end, false);
    watch.enqueue(lane, call, touches.filter(({ writes }) => writes === true));
  } else {
    work.done();
    const isHosts = (place: Place) => place !== "device";
    if (synchronous ? isHosts(to) || isHosts(from) : isHosts(to) && isHosts(from)) watch.hostWaitsFor([lane], call);
  }
  if (touches.some(({ start }) => watch.memory.find(start)?.syncMemops)) watch.hostWaitsFor([lane], call);
}

function placeOf(watch: Watch, touches: readonly Touch[], writes: boolean, said: Ends["to"]): Place {
  const touch = touches.find((one) => one.writes === writes);
  const known = touch === undefined ? undefined : watch.memory.find(touch.start);
  if (known !== undefined) return known.isPinned ? "pinned" : "device";
  if (said === undefined) return "unknown";
  return said === "device" ? "device" : "pageable";
}

/**
 * A peer copy that is not asynchronous: documented as serialised with all work of the contexts that take part, before
 * and after.
 */
export function peerWork(watch: Watch, work: Work, contexts: readonly bigint[]): void {
  const { lane } = work;
  if (lane === null || work.isNothing) return;
  watch.copies(lane, work.call, work.touches);
  const all = new Set<ContextOrder>([lane.context, ...contexts.map((handle) => watch.context(handle))]);
  watch.order.advance(lane, null);
  for (const context of all) for (const other of context.lanes) watch.order.wait(lane, other.clock);
  work.done();
  for (const context of all) watch.order.waitInContext(context, lane.clock);
}
