/**
 * Moves in host memory by loops over typed arrays, for systems that refuse executable memory.
 *
 * Only integer arrays are used: JavaScriptCore changes the bits of a NaN that goes through a `Float32Array`, and is
 * slow with a `BigUint64Array`. Each array class has its own loop, because engines specialise a loop for the classes
 * that it has seen.
 *
 * @module
 */
import type { MoveAxis, StridedMove } from "../native/mod.ts";

/** A position where bytes are read or written. */
export interface Place {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly at: number;
}

/** From this many bytes on `set` copies a run faster, although it needs a view first. */
const longRun = 1024;

/** Below this many words the indices are 32-bit integers, which engines compute fastest. */
const nearWords = 2 ** 31;

/** Moves pieces along a row: takes the first positions and the steps in words, and the number of pieces. */
type MoveRow<A> = (to: A, t: number, toStep: number, from: A, f: number, fromStep: number, n: number) => void;

// law copy/moveByLoops: copy/host_move
/** Makes a move. @param near below how many words the indices are 32-bit integers */
export function moveByLoops(move: StridedMove, to: Place, from: Place, near: number = nearWords): void {
  const { bytes, element } = move;
  if (element !== undefined) return moveByLoops(withoutFilling(move, element), to, from, near);
  const row = move.axes.at(-1);
  if (row !== undefined && row.to === bytes && row.from === bytes) {
    return moveByLoops({ bytes: bytes * row.extent, axes: move.axes.slice(0, -1) }, to, from, near);
  }
  if (bytes >= longRun) {
    const run = (t: number, f: number) => to.bytes.set(from.bytes.subarray(f, f + bytes), t);
    return eachPiece(move.axes, 0, to.at, from.at, run);
  }
  const [toStart, fromStart] = [to.bytes.byteOffset + to.at, from.bytes.byteOffset + from.at];
  const width = widthOf(move, toStart, fromStart);
  const words = bytes / width;
  const isNear = Math.max(to.bytes.length, from.bytes.length) / width < near;
  const row32 = isNear && words === 4 ? fourWords : isNear && words === 2 ? twoWords : null;
  // If no loop handles a piece, each of its words is a piece.
  const axes = row32 !== null && width === 4 || words === 1
    ? move.axes
    : [...move.axes, { extent: words, to: width, from: width }];
  const [t, f] = [placeOf(to, width), placeOf(from, width)];
  if (width === 4) {
    const row = row32 ?? (isNear ? words32 : wordsFarApart);
    walk(row, new Int32Array(...t.span), t.at, new Int32Array(...f.span), f.at, axes, width);
  } else if (width === 2) {
    const row = isNear ? words16 : wordsFarApart;
    walk(row, new Int16Array(...t.span), t.at, new Int16Array(...f.span), f.at, axes, width);
  } else {
    const row = isNear ? words8 : wordsFarApart;
    walk(row, new Int8Array(...t.span), t.at, new Int8Array(...f.span), f.at, axes, width);
  }
}

/** The same fill as moves of single elements. */
function withoutFilling({ bytes, axes }: StridedMove, element: number): StridedMove {
  return { bytes: element, axes: [...axes, { extent: bytes / element, to: element, from: 0 }] };
}

/** The widest word to which all pieces are aligned on both sides. */
function widthOf({ bytes, axes }: StridedMove, toStart: number, fromStart: number): 1 | 2 | 4 {
  let all = bytes | toStart | fromStart;
  for (const { to, from } of axes) all |= to | from;
  return (all & 3) === 0 ? 4 : (all & 1) === 0 ? 2 : 1;
}

/** The whole words of a place's memory, and the bytes from the first of them to the place. */
function placeOf({ bytes, at }: Place, width: number) {
  const { buffer, byteOffset, length } = bytes;
  const before = (width - byteOffset % width) % width;
  const span: [ArrayBuffer, number, number] = [
    buffer,
    byteOffset + before,
    Math.max(0, Math.floor((length - before) / width)),
  ];
  return { span, at: at - before };
}

function walk<A>(
  row: MoveRow<A>,
  to: A,
  toAt: number,
  from: A,
  fromAt: number,
  axes: readonly MoveAxis[],
  width: number,
): void {
  const { extent, to: toStep, from: fromStep } = axes.at(-1) ?? { extent: 1, to: 0, from: 0 };
  eachPiece(axes.slice(0, -1), 0, toAt, fromAt, (t, f) => {
    row(to, t / width, toStep / width, from, f / width, fromStep / width, extent);
  });
}

function eachPiece(
  axes: readonly MoveAxis[],
  depth: number,
  toAt: number,
  fromAt: number,
  piece: (toAt: number, fromAt: number) => void,
): void {
  const axis = axes[depth];
  if (axis === undefined) return piece(toAt, fromAt);
  const { extent, to, from } = axis;
  for (let i = 0; i < extent; i++) eachPiece(axes, depth + 1, toAt + i * to, fromAt + i * from, piece);
}

// V8 generates the fewest instructions for loops of this form: 32-bit integers throughout, an end that is met exactly.

// law copy/words32: copy/host_move
const words32: MoveRow<Int32Array> = (to, t, toStep, from, f, fromStep, n) => {
  for (let [i, at, fromAt] = [0, t | 0, f | 0]; i !== n; i = (i + 1) | 0) {
    to[at] = from[fromAt] ?? 0;
    at = (at + toStep) | 0;
    fromAt = (fromAt + fromStep) | 0;
  }
};

// law copy/twoWords: copy/host_move
const twoWords: MoveRow<Int32Array> = (to, t, toStep, from, f, fromStep, n) => {
  for (let [i, at, fromAt] = [0, t | 0, f | 0]; i !== n; i = (i + 1) | 0) {
    to[at] = from[fromAt] ?? 0;
    to[at + 1] = from[fromAt + 1] ?? 0;
    at = (at + toStep) | 0;
    fromAt = (fromAt + fromStep) | 0;
  }
};

// law copy/fourWords: copy/host_move
const fourWords: MoveRow<Int32Array> = (to, t, toStep, from, f, fromStep, n) => {
  for (let [i, at, fromAt] = [0, t | 0, f | 0]; i !== n; i = (i + 1) | 0) {
    to[at] = from[fromAt] ?? 0;
    to[at + 1] = from[fromAt + 1] ?? 0;
    to[at + 2] = from[fromAt + 2] ?? 0;
    to[at + 3] = from[fromAt + 3] ?? 0;
    at = (at + toStep) | 0;
    fromAt = (fromAt + fromStep) | 0;
  }
};

// law copy/words16: copy/host_move
const words16: MoveRow<Int16Array> = (to, t, toStep, from, f, fromStep, n) => {
  for (let [i, at, fromAt] = [0, t | 0, f | 0]; i !== n; i = (i + 1) | 0) {
    to[at] = from[fromAt] ?? 0;
    at = (at + toStep) | 0;
    fromAt = (fromAt + fromStep) | 0;
  }
};

// law copy/words8: copy/host_move
const words8: MoveRow<Int8Array> = (to, t, toStep, from, f, fromStep, n) => {
  for (let [i, at, fromAt] = [0, t | 0, f | 0]; i !== n; i = (i + 1) | 0) {
    to[at] = from[fromAt] ?? 0;
    at = (at + toStep) | 0;
    fromAt = (fromAt + fromStep) | 0;
  }
};

// law copy/wordsFarApart: copy/host_move
const wordsFarApart: MoveRow<Int8Array | Int16Array | Int32Array> = (to, t, toStep, from, f, fromStep, n) => {
  for (let i = 0; i < n; i++) to[t + i * toStep] = from[f + i * fromStep] ?? 0;
};
