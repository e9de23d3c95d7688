/**
 * The exchange API's function that reports the stream on which consumers work, as machine code: any thread may call it,
 * and it reads the stream handles that `current_work_streams.ts` writes.
 *
 * @module
 */

// law python/currentStreamCode: python/thunks
/**
 * The code of `int current_work_stream(DLDeviceType, int32_t device_id, void **out)`: on a CUDA device (type 2) work
 * goes to the stream whose handle is in the device's word, or to the legacy default stream, whose handle is 1, if the
 * device has none; other devices have no streams.
 *
 * @param words address of the handles, aligned to 8 bytes, so that each is read atomically
 * @param count how many devices have one, at most 127
 */
export const currentStreamCode: {
  readonly [arch in "x86_64" | "aarch64"]: (words: bigint, count: number) => Uint8Array<ArrayBuffer>;
} = {
  x86_64: (words, count) =>
    new Uint8Array([
      ...[0x31, 0xc0], // xor eax, eax
      ...[0x83, 0xff, 0x02], // cmp edi, 2
      ...[0x75, 0x17], // jne store
      ...[0xb0, 0x01], // mov al, 1
      ...[0x83, 0xfe, count], // cmp esi, count
      ...[0x73, 0x10], // jae store: unsigned, so negative ids go there too
      ...[0x48, 0xb9, ...new Uint8Array(BigUint64Array.of(words).buffer)], // movabs rcx, words
      ...[0x89, 0xf0], // mov eax, esi
      ...[0x48, 0x8b, 0x04, 0xc1], // mov rax, [rcx + 8 * rax]
      ...[0x48, 0x89, 0x02], // store: mov [rdx], rax
      ...[0x31, 0xc0], // xor eax, eax
      0xc3, // ret
    ]),
  aarch64: (words, count) => {
    const code = [
      0xd2800003, // mov x3, #0
      0x7100081f, // cmp w0, #2
      0x54000001 | 6 << 5, // b.ne store
      0xd2800023, // mov x3, #1
      0x7100003f | count << 10, // cmp w1, #count
      0x54000002 | 3 << 5, // b.hs store
      0x58000004 | 6 << 5, // ldr x4, words
      0xf8615883, // ldr x3, [x4, w1, uxtw #3]
      0xf9000043, // store: str x3, [x2]
      0x52800000, // mov w0, #0
      0xd65f03c0, // ret
      0xd503201f, // nop: aligns the literal to 8 bytes
    ];
    return new Uint8Array([
      ...new Uint8Array(Uint32Array.from(code).buffer),
      ...new Uint8Array(BigUint64Array.of(words).buffer),
    ]);
  },
};
