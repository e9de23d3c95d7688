/**
 * Plans for copies in host memory: which pieces are moved, in which order. A pure function decides, from extents and
 * steps alone; machine code or loops carry the plan out (`host_move.ts`).
 *
 * Memory is transferred in lines of 64 bytes. A copy in the order of the destination writes line by line; if the source
 * has another order, tiles of both axes are moved one after the other, so that each line is fully used while it is in
 * the nearest cache.
 *
 * @module
 */
import type { MoveAxis, StridedMove } from "../native/mod.ts";

/** A move, and the position of its first piece on both sides, in bytes from the first element. */
export interface PlacedMove extends StridedMove {
  readonly toOffset: number;
  readonly fromOffset: number;
}

/** From the first byte of any element to just past the last one, in bytes from the first element. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Bytes on both sides. */
export interface Bytes {
  readonly to: number;
  readonly from: number;
}

/** The moves of one copy. */
export interface HostPlan {
  /** Made one after the other; none if there are no elements. */
  readonly moves: readonly PlacedMove[];
  /** Bytes contiguous on both sides, and the number of such runs. */
  readonly run: number;
  readonly runs: number;
  /** Runs per tile in the destination's and in the source's direction; null without tiles. */
  readonly tile: readonly [number, number] | null;
  /** Whether the elements of the destination are disjoint, so that they may be moved in any order. */
  readonly isFree: boolean;
  readonly to: Span;
  readonly from: Span;
}

/**
 * Runs along the sides of a tile, in the destination's and in the source's direction: the fastest, or within 10% of it,
 * for transposes of elements of every size. Few rows of the source are read at a time, so that they stay in the cache
 * even if they are a power of two apart.
 */
function tileSides(run: number): readonly [inner: number, partner: number] {
  return run <= 8 ? [16, 64] : [8, 32];
}

/** Bytes of a cache line: runs of at least this size use whole lines anyway. */
const lineBytes = 64;

/** Rows of fewer elements cost more than their elements. */
const shortRow = 8;

/**
 * Up to this many bytes a single run is moved by units of 16 bytes, which takes less time than a call of memcpy. Among
 * many runs, so are longer ones: memcpy was slower, at 1 to 2 KiB by half, if they were not cached.
 */
const longestAlone = 256;
const longestByUnits = 64 * 1024;

/**
 * Copies of at least this many bytes are written past the caches, if runs are long enough for memcpy: with the bytes
 * read they are twice as many, and a cache would first fetch the lines that are overwritten. On an EPYC 64 MiB took 4.2
 * ms this way, and 6.8 by memcpy.
 */
const farBytes = 16 * 2 ** 20;

/**
 * Runs longer than this are then faster that way than by units: 16 KiB take four fifths, 4 KiB the same, 1 KiB half
 * more.
 */
const longestFar = 4096;

// law copy/planHostCopy: copy/host_plan
/**
 * Plans a copy.
 *
 * @param axes in element order, the last one fastest; steps in bytes
 * @param itemsize bytes, at least 1
 */
export function planHostCopy(axes: readonly MoveAxis[], itemsize: number): HostPlan {
  const to = spanOf(axes, itemsize, "to");
  const from = spanOf(axes, itemsize, "from");
  if (axes.some(({ extent }) => extent === 0)) {
    const nowhere = { start: 0, end: 0 };
    return { moves: [], run: itemsize, runs: 0, tile: null, isFree: true, to: nowhere, from: nowhere };
  }
  const longer = axes.filter(({ extent }) => extent > 1);
  const isFree = elementsAreApart(longer, itemsize);
  // Where elements of the destination overlap, the last one in element order wins: so the order is kept.
  const forwards = isFree ? longer.map(turnedForwards) : longer;
  const toOffset = startOf(longer, forwards, "to");
  const fromOffset = startOf(longer, forwards, "from");
  const ordered = isFree ? forwards.toSorted((one, other) => other.to - one.to) : forwards;
  const joined = joinAxes(ordered);
  const inner = joined.at(-1);
  const isDense = inner !== undefined && inner.to === itemsize;
  const filled = isFree && isDense && inner.from === 0 ? fillingOf(inner.extent, itemsize) : null;
  const isRun = filled !== null || isDense && inner.from === itemsize;
  const run = isRun ? (inner?.extent ?? 1) * itemsize : itemsize;
  const rest = isRun ? joined.slice(0, -1) : joined;
  const boxes = isFree ? tiled(rest, run) : untiled(rest);
  const runs = rest.reduce((count, { extent }) => count * extent, 1);
  const pieces = filled ?? piecesOf(run, runs === 1, isFree, run * runs >= farBytes);
  return {
    moves: boxes.parts.flatMap((part) =>
      pieces.map((piece) => ({
        ...piece,
        axes: [...part.axes, ...piece.axes],
        toOffset: toOffset + part.to + piece.toOffset,
        fromOffset: fromOffset + part.from + piece.fromOffset,
      }))
    ),
    run,
    runs,
    tile: boxes.tile,
    isFree,
    to,
    from,
  };
}

export function spanOf(axes: readonly MoveAxis[], itemsize: number, side: "to" | "from"): Span {
  let [start, end] = [0, itemsize];
  for (const axis of axes) {
    const last = (axis.extent - 1) * axis[side];
    if (last < 0) start += last;
    else end += last;
  }
  return { start, end };
}

/** Whether no two elements of the destination share a byte, by a conservative check: false if it is not obvious. */
export function elementsAreApart(axes: readonly MoveAxis[], itemsize: number): boolean {
  let taken = itemsize;
  for (const { extent, to } of axes.toSorted((one, other) => Math.abs(one.to) - Math.abs(other.to))) {
    if (Math.abs(to) < taken) return false;
    taken += (extent - 1) * Math.abs(to);
  }
  return true;
}

export function turnedForwards(axis: MoveAxis): MoveAxis {
  return axis.to < 0 ? { extent: axis.extent, to: -axis.to, from: -axis.from } : axis;
}

/** Position of the first piece after some axes were reversed. */
export function startOf(before: readonly MoveAxis[], after: readonly MoveAxis[], side: "to" | "from"): number {
  let start = 0;
  for (const [i, axis] of before.entries()) if (after[i] !== axis) start += (axis.extent - 1) * axis[side];
  return start;
}

/** Joins an axis with the next if it continues where that one ends, on both sides. */
export function joinAxes(axes: readonly MoveAxis[]): MoveAxis[] {
  const joined: MoveAxis[] = [];
  for (const axis of axes) {
    const outer = joined.at(-1);
    const goesOn = outer !== undefined && outer.to === axis.extent * axis.to && outer.from === axis.extent * axis.from;
    if (goesOn) joined[joined.length - 1] = { ...axis, extent: outer.extent * axis.extent };
    else joined.push(axis);
  }
  return joined;
}

/** A part of the elements to move: its start and its axes. */
interface Part {
  readonly to: number;
  readonly from: number;
  readonly axes: readonly MoveAxis[];
}

interface Parts {
  readonly parts: readonly Part[];
  readonly tile: HostPlan["tile"];
}

function untiled(axes: readonly MoveAxis[]): Parts {
  return { parts: [{ to: 0, from: 0, axes }], tile: null };
}

/** The axis with which the last axis, along which the destination is densest, is interleaved; undefined if none. */
function partnerOf(axes: readonly MoveAxis[]): MoveAxis | undefined {
  const inner = axes.at(-1);
  if (inner === undefined) return undefined;
  const outer = axes.slice(0, -1);
  // A repeated element is read from the cache again, wherever it is.
  const inSource = outer.filter(({ from }) => from !== 0 && Math.abs(from) < Math.abs(inner.from));
  if (inSource.length > 0) {
    return inSource.reduce((one, other) => Math.abs(other.from) < Math.abs(one.from) ? other : one);
  }
  const next = outer.at(-1);
  return next !== undefined && inner.extent < shortRow && next.extent > inner.extent ? next : undefined;
}

// law copy/hostTiles: copy/host_plan
/** Tiles of the last axis and another one, if the source is denser along the other one, or the last one is short. */
function tiled(axes: readonly MoveAxis[], run: number): Parts {
  const [inner, partner] = [axes.at(-1), partnerOf(axes)];
  if (inner === undefined || partner === undefined || run >= lineBytes) return untiled(axes);
  // If one of the two sides is short, the other is longer.
  const [innerLeast, partnerLeast] = tileSides(run);
  const runs = innerLeast * partnerLeast;
  const innerSide = sideOf(inner.extent, Math.max(innerLeast, Math.floor(runs / partner.extent)));
  const partnerSide = sideOf(partner.extent, Math.max(partnerLeast, Math.floor(runs / inner.extent)));
  const outer = axes.filter((axis) => axis !== inner && axis !== partner);
  const parts: Part[] = [];
  for (const p of partsOf(partner, partnerSide)) {
    for (const i of partsOf(inner, innerSide)) {
      const isLong = i.within.extent >= shortRow || i.within.extent >= p.within.extent;
      parts.push({
        to: p.to + i.to,
        from: p.from + i.from,
        axes: [...outer, ...p.tiles, ...i.tiles, ...isLong ? [p.within, i.within] : [i.within, p.within]],
      });
    }
  }
  return { parts, tile: [innerSide, partnerSide] };
}

/** An extent of little more than one tile becomes one tile. */
function sideOf(extent: number, side: number): number {
  return extent < 1.5 * side ? extent : side;
}

/** Splits an axis into tiles: their starts, the axis within each, and the remainder at the end. */
function partsOf(axis: MoveAxis, side: number) {
  const { extent, to, from } = axis;
  const whole = Math.floor(extent / side);
  const tiles = whole === 1 ? [] : [{ extent: whole, to: side * to, from: side * from }];
  const parts = [{ to: 0, from: 0, tiles, within: { extent: side, to, from } }];
  const left = extent - whole * side;
  if (left > 0) {
    const [toStart, fromStart] = [whole * side * to, whole * side * from];
    parts.push({ to: toStart, from: fromStart, tiles: [], within: { extent: left, to, from } });
  }
  return parts;
}

/** Sizes that one instruction can move, the largest first. */
const units = [16, 8, 4, 2, 1] as const;

// law copy/piecesOf: copy/host_plan
/**
 * Splits a run into pieces that one instruction moves: two may overlap, because both write the same bytes there. Or
 * leaves it whole, for memcpy.
 *
 * @param isAlone whether there is no other run
 * @param isFree whether the ends of all runs may be moved after everything before them
 * @param isFar whether no cache would hold all moved bytes
 */
function piecesOf(run: number, isAlone: boolean, isFree: boolean, isFar: boolean): PlacedMove[] {
  const asOne = [{ bytes: run, axes: [], toOffset: 0, fromOffset: 0, ...isFar ? { isFar } : {} }];
  if (run > (isAlone ? longestAlone : isFar ? longestFar : longestByUnits)) return asOne;
  const bytes = units.find((unit) => unit <= run) ?? 1;
  const length = run - bytes; // from the first piece to the last
  const fewestSteps = Math.ceil(length / bytes);
  if (fewestSteps === 0) return asOne; // a unit
  const mostSteps = run <= longestAlone ? 1.5 * fewestSteps : fewestSteps;
  for (let steps = fewestSteps; steps <= mostSteps; steps++) {
    const step = length / steps;
    if (Number.isInteger(step)) {
      return [{ bytes, axes: [{ extent: steps + 1, to: step, from: step }], toOffset: 0, fromOffset: 0 }];
    }
  }
  if (run <= longestAlone || !isFree) return asOne;
  const body = {
    bytes,
    axes: [{ extent: Math.floor(run / bytes), to: bytes, from: bytes }],
    toOffset: 0,
    fromOffset: 0,
  };
  return [body, { bytes, axes: [], toOffset: length, fromOffset: length }];
}

// law copy/fillingOf: copy/host_plan
/** One element repeated, 16 bytes at a time; null if there are fewer bytes, or 16 bytes are not whole elements. */
function fillingOf(count: number, itemsize: number): PlacedMove[] | null {
  const element = units.find((unit) => unit === itemsize);
  const run = count * itemsize;
  if (element === undefined || run < 16) return null;
  const whole = Math.floor(run / 16);
  const filling = { bytes: 16, element, fromOffset: 0 };
  const body = { ...filling, axes: [{ extent: whole, to: 16, from: 0 }], toOffset: 0 };
  const end = { ...filling, axes: [{ extent: 1, to: 16, from: 0 }], toOffset: run - 16 };
  return run === whole * 16 ? [body] : [body, end];
}
