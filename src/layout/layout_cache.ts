/**
 * A cache of the layouts of earlier arrays. Libraries pass arrays of the same few shapes again and again, and comparing
 * a layout takes a tenth of the time that making one and computing its facts does. Layouts are immutable: two arrays
 * may share one.
 *
 * @module
 */
import { checkArray, type Shape } from "./shape.ts";
import { StridedLayout } from "./strided_layout.ts";

/** A cached layout. */
interface CachedLayout {
  readonly layout: StridedLayout;
  /** Whether strides were given. */
  readonly hasStrides: boolean;
}

/** Number of cache slots. */
const places = 64;

const known: (CachedLayout | undefined)[] = Array.from({ length: places });

// law layout/cachedLayout: layout/layout_cache
/**
 * Finds a layout by its description. The layout was checked when it was made.
 *
 * @param shape extents, of which the first `ndim` count
 * @param strides steps along each axis, in elements times `unit`; null for contiguous C order
 */
export function cachedLayout(
  shape: readonly unknown[],
  strides: readonly unknown[] | null,
  ndim: number,
  itemsize: number,
  unit: number,
): StridedLayout | null {
  const found = known[placeOf(shape, ndim)];
  if (found === undefined || found.hasStrides !== (strides !== null)) return null;
  const { layout } = found;
  if (layout.itemsize !== itemsize || layout.shape.length !== ndim) return null;
  for (let axis = 0; axis < ndim; axis++) {
    if (layout.shape[axis] !== shape[axis]) return null;
    if (strides !== null && (layout.strides[axis] ?? 0) * unit !== strides[axis]) return null;
  }
  return layout;
}

/** Caches a layout. @param hasStrides whether its description had strides */
export function cacheLayout(layout: StridedLayout, hasStrides: boolean): void {
  known[placeOf(layout.shape, layout.shape.length)] = { layout, hasStrides };
}

/**
 * A contiguous layout in C order.
 *
 * @throws {TypeError | RangeError} as the constructor of a layout does
 */
export function denseLayout(shape: Shape, itemsize: number): StridedLayout {
  checkArray("shape", shape);
  const known = cachedLayout(shape, null, shape.length, itemsize, 1);
  if (known !== null) return known;
  const layout = new StridedLayout(shape, null, itemsize);
  cacheLayout(layout, false);
  return layout;
}

/** The cache slot of a shape. */
function placeOf(shape: readonly unknown[], ndim: number): number {
  let place = ndim;
  for (let axis = 0; axis < ndim; axis++) {
    const extent = shape[axis];
    if (typeof extent === "number") place = Math.imul(place, 31) + extent | 0;
  }
  return (place ^ place >>> 12) & places - 1;
}
