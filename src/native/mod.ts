/**
 * Machine code of our own, for threads on which no JavaScript can run.
 *
 * The room knows `bindings/` and `ffi/`: the structs whose callbacks it implements, and no arrays. `releaseThunks` are
 * the callbacks of exported structs: a consumer calls them on any thread, at any time, and they count; JavaScript reads
 * the count when it next has reason to. `streamThunks` are the functions of an exported Arrow stream, which take
 * structs that JavaScript has written beforehand. A `ThreadTeam` is threads that make C calls from a ring, such as
 * `nonTemporalCopy`, a memcpy past the caches. Such code lies in a page that is executable and never unmapped, so that
 * whoever has its address may call it as long as the process lives. Where the system refuses executable memory there
 * are JavaScript callbacks instead, memcpy, and no threads.
 *
 * The other way round, `callRelease` calls the callbacks that foreign structs carry.
 *
 * @module
 */
export { StreamState, streamThunks } from "./arrow_stream_thunk.ts";
export { callRelease, callReturnsZero } from "./call_pointer.ts";
export type { NativeCall } from "./call_ring.ts";
export { newArrayBuffer } from "./huge_pages.ts";
export { mapExecutable } from "./machine_code.ts";
export { nonTemporalCopy } from "./non_temporal_copy.ts";
export { releaseThunks } from "./release_thunk.ts";
export { canStartThreads, ThreadTeam } from "./thread_team.ts";
