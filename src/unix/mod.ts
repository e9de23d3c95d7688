/**
 * Other processes on this machine: sockets, the files that travel over them, and waiting without blocking.
 *
 * The room knows `bindings/`, `ffi/` and how options are checked. A `UnixListener` or `UnixSocket.connect` makes a
 * connection that preserves message boundaries and carries file descriptors (`message.ts`), which neither runtime's own
 * sockets can. Every descriptor that is received or created is a `FileDescriptor`, which has one owner and is closed
 * once. Calls do not block: an operation that cannot complete at once waits in `poll.ts`, which polls all descriptors
 * together at turns of the event loop. `createWakeup` goes the other way: native code on any thread wakes the event
 * loop, by closing a socket. `findSocketNews` tells whether the event loop has socket events to handle. `DescriptorSet`
 * makes several descriptors one, `openProcess` makes the end of a process one, `stopTimers` stops those of another
 * library's set, `keepFromChildren` keeps its descriptors from processes that are started, a `ListeningSocket` is
 * another library's, and `runOn` keeps this process on one processor.
 *
 * @module
 */
export { abortable } from "./abortable.ts";
export { runOn } from "./affinity.ts";
export { checkDescriptorsLeft } from "./descriptors_left.ts";
export { DescriptorSet } from "./descriptor_set.ts";
export { FileDescriptor } from "./file_descriptor.ts";
export { keepFromChildren, rememberInherited } from "./inheritance.ts";
export { ListeningSocket, nextDescriptor } from "./listening_socket.ts";
export { untilReady } from "./poll.ts";
export { type StoppedTimers, stopTimers } from "./set_timers.ts";
export { UnixListener, type UnixListenOptions } from "./listener.ts";
export { openProcess } from "./process_descriptor.ts";
export {
  checkMessage,
  type UnixConnectOptions,
  type UnixMessage,
  type UnixPeer,
  type UnixReceiveOptions,
  UnixSocket,
  type WaitOptions,
} from "./socket.ts";
export { findSocketNews } from "./socket_news.ts";
export { createWakeup } from "./wakeup.ts";
