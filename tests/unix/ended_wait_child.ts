/** Cancels a wait for bytes that never arrive, and exits on its own: nothing keeps the process alive. */
import { AF, SOCK } from "../../bindings/libc.ts";
import { untilReady } from "../../src/unix/poll.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { libc } from "../../src/ffi/libc.ts";

using arena = new NativeArena();
const { address, bytes } = arena.bytes(8);
libc().sockets.socketpair(AF.UNIX, SOCK.STREAM, 0, address);
const [reading = -1] = new Int32Array(bytes.buffer, bytes.byteOffset, 1);
const stop = new AbortController();
const waiting = untilReady(reading, "readable", stop.signal);
setTimeout(() => stop.abort(), 20);
await waiting.catch(() => {});
