/**
 * Where the memory of JavaScript's arrays lies, by the engine's own accessors: a subclass, or a property of one array,
 * may say something else, and native code would read and write beyond the memory.
 *
 * Each accessor has a function of its own: V8 inlines a call of one that never changes.
 *
 * @module
 */

/** The engine's function that reads a property. */
function accessor(prototype: object, name: string): () => unknown {
  const get = Object.getOwnPropertyDescriptor(prototype, name)?.get;
  if (get === undefined) throw new TypeError(`This engine has no accessor ${name}`);
  return get;
}

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as object;
const sizeOfBuffer = accessor(ArrayBuffer.prototype, "byteLength");
const lengthOfTyped = accessor(typedArray, "byteLength");
const offsetOfTyped = accessor(typedArray, "byteOffset");
const bufferOfTyped = accessor(typedArray, "buffer");
const lengthOfDataView = accessor(DataView.prototype, "byteLength");
const offsetOfDataView = accessor(DataView.prototype, "byteOffset");
const bufferOfDataView = accessor(DataView.prototype, "buffer");

// law ffi/ownExtent: ffi/own_extent
/** Bytes of an ArrayBuffer. */
export function ownSize(buffer: ArrayBuffer): number {
  return sizeOfBuffer.call(buffer) as number;
}

/** Bytes of a typed array or a DataView. */
export function ownLength(view: ArrayBufferView): number {
  return (view instanceof DataView ? lengthOfDataView.call(view) : lengthOfTyped.call(view)) as number;
}

/** Where a typed array or a DataView begins in its ArrayBuffer. */
export function ownOffset(view: ArrayBufferView): number {
  return (view instanceof DataView ? offsetOfDataView.call(view) : offsetOfTyped.call(view)) as number;
}

/** The ArrayBuffer of a typed array or a DataView. */
export function ownBuffer(view: ArrayBufferView): ArrayBufferLike {
  return (view instanceof DataView ? bufferOfDataView.call(view) : bufferOfTyped.call(view)) as ArrayBufferLike;
}
