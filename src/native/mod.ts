/**
 * Machine code of our own, for threads on which no JavaScript can run.
 *
 * The room knows `bindings/` and `ffi/`: the structs whose callbacks it implements, and no arrays. `releaseThunks` are
 * the callbacks of exported structs: a consumer calls them on any thread, at any time, and they count; JavaScript reads
 * the count when it next has reason to. `streamThunks` are the functions of an exported Arrow stream, which take
 * structs that JavaScript has written beforehand. `completionCallbacks` are what UCX calls when an operation is over:
 * they write down the result, and put its number into a ring. A `ThreadTeam` is threads that make C calls from a
 * ring, such as `nonTemporalCopy`, a memcpy past the caches. Such code lies in a page that is executable and never
 * unmapped, so that code that has its address may call it as long as the process lives. Where the system refuses
 * executable memory there are JavaScript callbacks instead, memcpy, and no threads. `watchReadable` waits for a
 * descriptor on a thread, while the event loop sleeps.
 *
 * `prepareMove` and `runMove` move elements between two strided layouts on the JavaScript thread, by code that a small
 * assembler makes for both processors from one program. `assembleHere` and `runCode` do the same for programs of other
 * rooms, for calls that would otherwise be a dozen.
 *
 * The other way round, `callRelease` calls the callbacks that foreign structs carry.
 *
 * @module
 */
export { StreamState, streamThunks } from "./arrow_stream_thunk.ts";
export { assembleHere, type Operation, type Register } from "./assembler.ts";
export { callRelease, callReturnsZero } from "./call_pointer.ts";
export type { NativeCall } from "./call_ring.ts";
export {
  completion,
  completion_ring,
  type CompletionCallbacks,
  completionCallbacks,
  type CompletionKind,
} from "./completion_callbacks.ts";
export { mostPageCalls, newArrayBuffer, pageCalls, unwrittenArrayBuffer } from "./huge_pages.ts";
export { mapExecutable } from "./machine_code.ts";
export type { MoveAxis, StridedMove } from "./move_programs.ts";
export { nonTemporalCopy } from "./non_temporal_copy.ts";
export { type ReadableWatch, watchReadable } from "./readable_watch.ts";
export { releaseThunks } from "./release_thunk.ts";
export { runCode } from "./run_code.ts";
export { canMoveNatively, placeMove, type PreparedMove, prepareMove, runMove } from "./strided_mover.ts";
export { canStartThreads, ThreadTeam } from "./thread_team.ts";
export { type NativeLoop, nativeLoop, prepareLoop, type VectorLoopCode } from "./vector_loop.ts";
