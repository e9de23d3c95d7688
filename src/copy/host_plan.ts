/**
 * Plans for copies in host memory: which pieces are moved, in which order. A pure function decides, from extents and
 * steps alone; machine code or loops carry it out (`host_move.ts`).
 *
 * Memory comes and goes in lines of 64 bytes. What lies in the order of the destination is written line by line; where
 * the source lies in another order, tiles of both axes are moved one after the other, so that each line is used up while
 * it is in the nearest cache.
 *
 * @module
 */
import type { MoveAxis, StridedMove } from "../native/mod.ts";

/** A move, and where its first piece lies on both sides, in bytes from offset 0. */
export interface PlacedMove extends StridedMove {
  readonly toOffset: number;
  readonly fromOffset: number;
}

/** From the first byte that belongs to an element to behind the last one, in bytes from offset 0. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What one copy consists of. */
export interface HostPlan {
  /** One after the other; none if there are no elements. */
  readonly moves: readonly PlacedMove[];
  /** Bytes that lie side by side on both sides, and how many such runs there are. */
  readonly run: number;
  readonly runs: number;
  /** Of tiles, how many runs each has in the destination's and in the source's direction; null without tiles. */
  readonly tile: readonly [number, number] | null;
  /** Whether the elements of the destination are apart, so that they may be moved in any order. */
  readonly isFree: boolean;
  readonly to: Span;
  readonly from: Span;
}

/**
 * Runs along the sides of a tile, in the destination's and in the source's direction: what was fastest, or within 10% of
 * it, for transposes of elements of every size. Few rows of the source are read at a time, so that they stay in the
 * cache also if they are a power of two apart.
 */
function tileSides(run: number): readonly [inner: number, partner: number] {
  return run <= 8 ? [16, 64] : [8, 32];
}

/** A line of a cache: runs of as many bytes use it up by themselves. */
const lineBytes = 64;

/** Rows of fewer elements cost more than their elements. */
const shortRow = 8;

/**
 * Up to so many bytes one run is moved by units of 16 bytes, which takes less than a call of memcpy. Of many runs so are
 * longer ones: memcpy was slower, at 1 to 2 KiB by half, where they were not in a cache.
 */
const longestAlone = 256;
const longestByUnits = 64 * 1024;

/**
 * Copies of so many bytes are written past the caches, where runs are so long that memcpy would move them: with what is
 * read they are twice as many, and a cache would first fetch what is overwritten. On an EPYC 64 MiB took 4.2 ms so, and
 * 6.8 by memcpy.
 */
const farBytes = 16 * 2 ** 20;

/** Then longer runs than these take less so than by units: of 16 KiB four fifths, of 4 KiB the same, of 1 KiB half more. */
const longestFar = 4096;

// law copy/planHostCopy: copy/host_plan
/**
 * Plans a copy.
 *
 * @param axes in the order of the elements, the last one fastest; steps in bytes
 * @param itemsize bytes, at least 1
 * @param first where the first element is, in bytes from offset 0
 */
export function planHostCopy(
  axes: readonly MoveAxis[],
  itemsize: number,
  first: { readonly to: number; readonly from: number } = origin,
): HostPlan {
  const to = spanOf(axes, itemsize, "to", first.to);
  const from = spanOf(axes, itemsize, "from", first.from);
  if (axes.some(({ extent }) => extent === 0)) {
    const nowhere = { start: 0, end: 0 };
    return { moves: [], run: itemsize, runs: 0, tile: null, isFree: true, to: nowhere, from: nowhere };
  }
  const longer = axes.filter(({ extent }) => extent > 1);
  const isFree = elementsAreApart(longer, itemsize);
  // Where elements of the destination meet, the last one in the order of the elements stays: so the order does.
  const forwards = isFree ? longer.map(turnedForwards) : longer;
  const toOffset = first.to + startOf(longer, forwards, "to");
  const fromOffset = first.from + startOf(longer, forwards, "from");
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

const origin = { to: 0, from: 0 };

export function spanOf(axes: readonly MoveAxis[], itemsize: number, side: "to" | "from", first: number): Span {
  let [start, end] = [first, first + itemsize];
  for (const axis of axes) {
    const last = (axis.extent - 1) * axis[side];
    if (last < 0) start += last;
    else end += last;
  }
  return { start, end };
}

/** Whether no two elements of the destination have a byte in common, seen at a glance: false if it is not plain. */
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

/** Where the first piece lies after some axes were turned over. */
export function startOf(before: readonly MoveAxis[], after: readonly MoveAxis[], side: "to" | "from"): number {
  let start = 0;
  for (const [i, axis] of before.entries()) if (after[i] !== axis) start += (axis.extent - 1) * axis[side];
  return start;
}

/** Axes that go on where the next one ends, on both sides, become one. */
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

/** A part of all that is to be moved: where it begins, and its axes. */
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

/** What the last axis, along which the destination is densest, is interleaved with; undefined if with none. */
function partnerOf(axes: readonly MoveAxis[]): MoveAxis | undefined {
  const inner = axes.at(-1);
  if (inner === undefined) return undefined;
  const outer = axes.slice(0, -1);
  // A repeated element is read again from the cache, wherever it is.
  const inSource = outer.filter(({ from }) => from !== 0 && Math.abs(from) < Math.abs(inner.from));
  if (inSource.length > 0) {
    return inSource.reduce((one, other) => Math.abs(other.from) < Math.abs(one.from) ? other : one);
  }
  const next = outer.at(-1);
  return next !== undefined && inner.extent < shortRow && next.extent > inner.extent ? next : undefined;
}

// law copy/hostTiles: copy/host_plan
/** Tiles of the last axis and another one, if the source is denser along that, or the last one is short. */
function tiled(axes: readonly MoveAxis[], run: number): Parts {
  const [inner, partner] = [axes.at(-1), partnerOf(axes)];
  if (inner === undefined || partner === undefined || run >= lineBytes) return untiled(axes);
  // Of two sides one may be short: the other is longer then.
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

/** Hardly more than one tile is one. */
function sideOf(extent: number, side: number): number {
  return extent < 1.5 * side ? extent : side;
}

/** An axis as tiles: where they begin, and what is in each; and what is left at the end. */
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

/** Sizes that one instruction moves, the largest first. */
const units = [16, 8, 4, 2, 1] as const;

// law copy/piecesOf: copy/host_plan
/**
 * A run as pieces that one instruction moves: two that overlap are as good as two that do not, since both write there
 * the same. Or as it is, for memcpy.
 *
 * @param isAlone whether there is no other run
 * @param isFree whether the ends of all runs may be moved after all that is before them
 * @param isFar whether no cache would keep all that is moved
 */
function piecesOf(run: number, isAlone: boolean, isFree: boolean, isFar: boolean): PlacedMove[] {
  const asOne = [{ bytes: run, axes: [], toOffset: 0, fromOffset: 0, ...isFar ? { isFar } : {} }];
  if (run > (isAlone ? longestAlone : isFar ? longestFar : longestByUnits)) return asOne;
  const bytes = units.find((unit) => unit <= run) ?? 1;
  const length = run - bytes; // from the first piece to the last
  const fewest = Math.ceil(length / bytes);
  if (fewest === 0) return asOne; // a unit
  const most = run <= longestAlone ? 1.5 * fewest : fewest;
  for (let more = fewest; more <= most; more++) {
    const step = length / more;
    if (Number.isInteger(step)) {
      return [{ bytes, axes: [{ extent: more + 1, to: step, from: step }], toOffset: 0, fromOffset: 0 }];
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
/** One element again and again, by 16 bytes; null if that are not as many, or 16 bytes are no whole elements. */
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
