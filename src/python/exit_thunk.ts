/**
 * What the C library calls when the process exits, as machine code: no thread may need Python's lock then, or
 * JavaScript.
 *
 * @module
 */
import { instructions } from "../native/mod.ts";

// law python/exitCode: python/thunks
/**
 * The code of `void at_exit(int status, struct { int64_t calls; void (*_exit)(int); } *process)`, for `on_exit`: ends
 * the process at once while calls are made.
 */
export const exitCode: { readonly [arch in "x86_64" | "aarch64"]: () => Uint8Array<ArrayBuffer> } = {
  x86_64: () =>
    new Uint8Array([
      ...[0x48, 0x83, 0x3e, 0x00], // cmp qword [rsi], 0
      ...[0x75, 0x01], // jne calls
      0xc3, // ret
      ...[0xff, 0x66, 0x08], // calls: jmp [rsi + 8]: _exit(status)
    ]),
  aarch64: () =>
    instructions([
      0xf9400022, // ldr x2, [x1]
      0xb4000062, // cbz x2, over
      0xf9400422, // ldr x2, [x1, #8]
      0xd61f0040, // br x2: _exit(status)
      0xd65f03c0, // over: ret
    ]),
};
