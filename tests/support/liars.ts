/** Arrays that tell lies about their memory. */

/** What they say of every extent. */
export const lie = 1 << 20;
/** Lies as properties. */
export const lies = { length: { value: lie }, byteLength: { value: lie }, byteOffset: { value: lie } };

/** An array of 8 bytes, beginning at byte 8 of 16, that tells a lie. */
export const liars: Record<string, () => Uint8Array<ArrayBuffer>> = {
  "a subclass": () => {
    class Liar extends Uint8Array<ArrayBuffer> {
      override get length() {
        return lie;
      }
      override get byteLength() {
        return lie;
      }
      override get byteOffset() {
        return lie;
      }
      override get buffer() {
        return new ArrayBuffer(lie);
      }
    }
    return new Liar(new ArrayBuffer(16), 8);
  },
  "properties": () => Object.defineProperties(new Uint8Array(new ArrayBuffer(16), 8), lies),
};
