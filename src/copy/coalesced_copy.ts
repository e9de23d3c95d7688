/**
 * Reduces a copy between two layouts to boxes of words, nested in the memory order of the destination. The result does
 * not depend on where the first elements lie, but for their alignment.
 *
 * @module
 */
import type { StridedLayout } from "../layout/mod.ts";
import { bytesOf, type Conversion } from "./conversion.ts";

/** One axis of a copy, in words. */
export interface CopyAxis {
  /** Number of steps. */
  readonly extent: number;
  /** Words from one step to the next in the destination; at least 1. */
  readonly to: number;
  /** The same in the source; 0 where it repeats, negative where it runs backwards. */
  readonly from: number;
}

/** Bytes of a word. */
export type WordSize = 1 | 2 | 4 | 8 | 16;

/** A copy in its simplest form. */
export interface CoalescedCopy {
  /** Bytes of a word as it is written: 1, 2, 4, 8 or 16. */
  readonly word: WordSize;
  /** Bytes of a word as it is read: different only if elements are converted; both words have equally many. */
  readonly fromWord: WordSize;
  /** How an element is converted, or null if it is unchanged. */
  readonly conversion: Conversion | null;
  /** Axes from the largest step of the destination to the smallest; none of extent 1, none that can be joined. */
  readonly axes: readonly CopyAxis[];
  /** Bytes from the source's first element to the first word that is read. */
  readonly fromOffset: number;
  /** Bytes from the destination's first element to the first word that is written. */
  readonly toOffset: number;
  /** Total number of words. */
  readonly words: number;
  /** Bytes, at most 16, that both the first word read and the first word written are aligned to. */
  readonly alignment: number;
}

/** A copy of packed elements that do not fill whole bytes on both sides, in its simplest form. */
export interface PackedProblem {
  /** Bits of an element: 1 to 7. */
  readonly bits: number;
  /** As in {@linkcode CoalescedCopy}, in elements. */
  readonly axes: readonly CopyAxis[];
  /** Bits from the source's first element to the one that is read first. */
  readonly from: number;
  /** Bits from the destination's first element to the one that is written first. */
  readonly to: number;
}

/** Addresses of the two first elements, of which only the alignment matters. Default: aligned for every word. */
export interface CopyAlignment {
  readonly from?: bigint;
  readonly to?: bigint;
}

interface Draft {
  /** Bytes; less than 1 for packed elements. */
  word: number;
  fromWord: number;
  axes: CopyAxis[];
  /** Bytes to the first word; a fraction if a packed element begins inside a byte. */
  from: number;
  to: number;
}

const words = [16, 8, 4, 2] as const;

/**
 * Reduces a copy to its simplest form: drops axes of one step, reverses and sorts the others so that the destination is
 * walked forwards and nested in memory order, joins adjacent axes, and joins elements to the largest words that both
 * sides allow.
 *
 * @param conversion how each element is converted; a word is then one element, or up to four adjacent ones
 * @throws {RangeError} if the shapes or sizes of elements differ, two indices of the destination refer to one element,
 *   or packed elements do not fill whole bytes
 */
export function coalesce(
  source: StridedLayout,
  destination: StridedLayout,
  alignment: CopyAlignment = {},
  conversion: Conversion | null = null,
): CoalescedCopy {
  check(source, destination, conversion);
  const draft = draftOf(source, destination, alignment, conversion);
  join(draft);
  if (draft.word < 1 && !joinToBytes(draft)) {
    throw new RangeError(`Cannot copy from ${source} to ${destination} byte by byte: elements share bytes with others`);
  }
  const fits = conversion === null ? fitsBoth(draft, alignment) : fitsEach(draft, alignment, conversion);
  widen(draft, fits);
  join(draft);
  const { word, fromWord, axes, from, to } = draft;
  const total = axes.reduce((product, { extent }) => product * extent, source.volume === 0 ? 0 : 1);
  return {
    word: word as WordSize, // a power of two of at most 16, both initially and after widening
    fromWord: fromWord as WordSize, // the same
    conversion,
    axes,
    fromOffset: from,
    toOffset: to,
    words: total,
    alignment: alignmentOf(from, to, alignment),
  };
}

/**
 * As {@linkcode coalesce}, for packed elements that cannot be moved as whole bytes.
 *
 * @returns null if {@linkcode coalesce} handles the copy
 * @throws {RangeError} as {@linkcode coalesce} does
 */
export function packedProblem(source: StridedLayout, destination: StridedLayout): PackedProblem | null {
  check(source, destination, null);
  const draft = draftOf(source, destination, {}, null);
  join(draft);
  const { word, axes, from, to } = draft;
  if (word >= 1 || joinToBytes(draft)) return null;
  return { bits: word * 8, axes, from: from * 8, to: to * 8 };
}

function check(source: StridedLayout, destination: StridedLayout, conversion: Conversion | null): void {
  const { shape } = destination;
  if (source.ndim !== shape.length || source.shape.some((extent, axis) => extent !== shape[axis])) {
    throw new RangeError(`Cannot copy from ${source} to ${destination}: expected equal shapes`);
  }
  if (conversion === null && source.itemsize !== destination.itemsize) {
    throw new RangeError(`Cannot copy from ${source} to ${destination}: expected elements of equal size`);
  }
  if (!destination.isUnique) {
    throw new RangeError(`Cannot copy to ${destination}: two of its indices may lead to the same element`);
  }
}

/** The axes in words, as large as their alignment allows, or in packed elements, turned forwards and sorted. */
function draftOf(
  s: StridedLayout,
  d: StridedLayout,
  alignment: CopyAlignment,
  conversion: Conversion | null,
): Draft {
  if (s.volume === 0) return { word: 1, fromWord: 1, axes: [], from: 0, to: 0 };
  let [from, to] = [0, 0];
  const common = s.itemsize < 1 ? s.itemsize : Math.min(largestWordIn(s.itemsize), alignmentOf(from, to, alignment));
  const [word, fromWord] = conversion === null ? [common, common] : [bytesOf(conversion.to), bytesOf(conversion.from)];
  const parts = d.itemsize / word;
  const axes: CopyAxis[] = [];
  d.shape.forEach((extent, axis) => {
    if (extent === 1) return;
    const [stepTo, stepFrom] = [(d.strides[axis] ?? 0) * parts, (s.strides[axis] ?? 0) * parts];
    if (stepTo >= 0) {
      axes.push({ extent, to: stepTo, from: stepFrom });
      return;
    }
    to += stepTo * (extent - 1) * word;
    from += stepFrom * (extent - 1) * fromWord;
    axes.push({ extent, to: -stepTo, from: 0 - stepFrom });
  });
  axes.sort((one, other) => other.to - one.to || Math.abs(other.from) - Math.abs(one.from));
  if (parts > 1) axes.push({ extent: parts, to: 1, from: 1 });
  return { word, fromWord, axes, from, to };
}

/** Bytes, at most 16, that both the first word read and the first word written are aligned to. */
function alignmentOf(fromOffset: number, toOffset: number, { from = 0n, to = 0n }: CopyAlignment): number {
  return largestWordIn(Number(((from + BigInt(fromOffset)) | (to + BigInt(toOffset))) & 15n));
}

/** The largest power of two of at most 16 that divides a size. */
function largestWordIn(bytes: number): number {
  return words.find((word) => bytes % word === 0) ?? 1;
}

/** Joins an axis with the next if it steps over exactly the extent of that one. */
function join(draft: Draft): void {
  const joined: CopyAxis[] = [];
  for (const axis of draft.axes) {
    if (axis.extent === 1) continue;
    const before = joined.at(-1);
    if (before !== undefined && before.to === axis.to * axis.extent && before.from === axis.from * axis.extent) {
      joined[joined.length - 1] = { extent: before.extent * axis.extent, to: axis.to, from: axis.from };
    } else joined.push(axis);
  }
  draft.axes = joined;
}

// law copy/joinToBytes: copy/packed_copy
/** Joins packed elements to bytes, if each contiguous run fills whole bytes; otherwise leaves them unchanged. */
function joinToBytes(draft: Draft): boolean {
  const inner = draft.axes.at(-1);
  if (inner === undefined || inner.to !== 1 || inner.from !== 1) return false;
  const bits = draft.word * 8;
  // The fewest elements that fill whole bytes: eight of three bits fill three.
  const elements = bits % 2 === 1 ? 8 : bits === 4 ? 2 : 4;
  const outer = draft.axes.slice(0, -1);
  const fits = [inner.extent, ...outer.flatMap((axis) => [axis.to, axis.from])].every((step) => step % elements === 0);
  if (!fits || !Number.isInteger(draft.from) || !Number.isInteger(draft.to)) return false;
  const inBytes = (step: number) => step * bits / 8;
  const steps = outer.map(({ extent, to, from }) => ({ extent, to: inBytes(to), from: inBytes(from) }));
  draft.axes = [...steps, { extent: inBytes(inner.extent), to: 1, from: 1 }];
  [draft.word, draft.fromWord] = [1, 1];
  return true;
}

/** Whether the addresses allow words `ratio` times as large to be moved in one piece. */
type Fits = (ratio: number) => boolean;

/** For words that are not converted: both sides must allow them. */
function fitsBoth(draft: Draft, alignment: CopyAlignment): Fits {
  const aligned = alignmentOf(draft.from, draft.to, alignment);
  return (ratio) => draft.word * ratio <= aligned;
}

/** For converted elements: up to four adjacent ones, as a vector of each type. */
function fitsEach(draft: Draft, { from = 0n, to = 0n }: CopyAlignment, conversion: Conversion): Fits {
  const { fromWord, word } = draft;
  const isAligned = (at: bigint, bytes: number) => bytes <= 16 && at % BigInt(bytes) === 0n;
  return (ratio) =>
    ratio <= 4 && !conversion.from.isComplex && !conversion.to.isComplex &&
    isAligned(from + BigInt(draft.from), fromWord * ratio) && isAligned(to + BigInt(draft.to), word * ratio);
}

/** Makes words as large as the innermost run, the other steps and the addresses allow. */
function widen(draft: Draft, isAllowed: Fits): void {
  const inner = draft.axes.at(-1);
  if (inner === undefined || inner.to !== 1 || inner.from !== 1) return;
  const outer = draft.axes.slice(0, -1);
  for (const ratio of words) {
    const fits = [inner.extent, ...outer.flatMap((axis) => [axis.to, axis.from])].every((step) => step % ratio === 0);
    if (!fits || !isAllowed(ratio)) continue;
    const narrowed = outer.map(({ extent, to, from }) => ({ extent, to: to / ratio, from: from / ratio }));
    draft.axes = [...narrowed, { extent: inner.extent / ratio, to: 1, from: 1 }];
    draft.word *= ratio;
    draft.fromWord *= ratio;
    return;
  }
}
