/**
 * Our own machine code, for threads that cannot run JavaScript.
 *
 * The room knows `bindings/` and `ffi/`: the structs whose callbacks it implements, and no arrays. `releaseThunks` are
 * the callbacks of exported structs: a consumer calls them on any thread, at any time, and they count; JavaScript reads
 * the count when it next has reason to. `streamThunks` are the functions of an exported Arrow stream, which take
 * structs that JavaScript wrote beforehand. UCX calls `completionCallbacks` when an operation completes: they record
 * the result, and put the operation's number into a ring. A `ThreadTeam` runs threads that make C calls from a ring,
 * such as `nonTemporalCopy`, a memcpy past the caches. Such code is in an executable page that is never unmapped, so
 * any code with its address may call it as long as the process lives. Where the system refuses executable memory, there
 * are JavaScript callbacks and memcpy instead, and no threads. `watchReadable` waits for a descriptor on a thread while
 * the event loop sleeps.
 *
 * `prepareMove` and `runMove` move elements between two strided layouts on the JavaScript thread, with code that a
 * small assembler generates for both architectures from one program. `assembleHere` and `runCode` do the same for
 * programs of other rooms that replace a dozen calls with one.
 *
 * In the other direction, `callRelease` calls the callbacks in foreign structs.
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
export { maxPageCalls, newArrayBuffer, pageCalls, unwrittenArrayBuffer } from "./huge_pages.ts";
export { instructions, mapExecutable } from "./machine_code.ts";
export type { MoveAxis, StridedMove } from "./move_programs.ts";
export { nonTemporalCopy } from "./non_temporal_copy.ts";
export { type ReadableWatch, watchReadable } from "./readable_watch.ts";
export { releaseThunks } from "./release_thunk.ts";
export { runCode } from "./run_code.ts";
export { canMoveNatively, placeMove, type PreparedMove, prepareMove, runMove } from "./strided_mover.ts";
export { canStartThreads, ThreadTeam } from "./thread_team.ts";
export { type NativeLoop, nativeLoop, prepareLoop, type VectorLoopCode } from "./vector_loop.ts";
