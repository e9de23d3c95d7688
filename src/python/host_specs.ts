/**
 * What arrays of one layout, type and access share in Python, where a program has loaded NumPy: made once and kept, so
 * that exporting another one takes only a tensor and an address. All functions here need the interpreter's lock.
 *
 * @module
 */
import type { DType, StridedLayout } from "../layout/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";
import type { Interpreter } from "./interpreter.ts";

/** How many are kept. In a program that keeps making layouts, all are dropped at this limit and made anew. */
const maxSpecs = 256;

interface Known {
  readonly dtype: DType;
  readonly readonly: boolean;
  /** `Spec` of guest/numpy_array.py; borrowed. */
  readonly object: bigint;
  /** How often all specs had been dropped before this one was made. */
  readonly generation: number;
}

/** The specs of an interpreter. */
class HostSpecs {
  readonly #python: Interpreter;
  readonly #byText = new Map<string, Known>();
  /** The spec last used with a layout: an array is often exported again. */
  readonly #byLayout = new WeakMap<StridedLayout, Known>();
  #generation = 0;

  constructor(python: Interpreter) {
    this.#python = python;
  }

  // law python/HostSpecs.of: python/host_exports
  /** The spec of a view's array; borrowed until the next call. 0n: it is not exported by a spec. */
  of({ layout, dtype, readonly }: StridedMemoryView): bigint {
    const last = this.#byLayout.get(layout);
    const isLast = last !== undefined && last.dtype === dtype && last.readonly === readonly &&
      last.generation === this.#generation;
    if (isLast) return last.object;
    if (dtype.typestr === null || layout.volume === 0) return 0n; // NumPy allocates its own memory for empty arrays
    const text = `${dtype.name} ${readonly} ${layout.shape} ${layout.stridesInBytes}`;
    const known = this.#byText.get(text) ?? this.#make(layout, dtype, readonly);
    if (known === null) return 0n;
    this.#byText.set(text, known);
    this.#byLayout.set(layout, known);
    return known.object;
  }

  // law python/HostSpecs.make: python/host_exports
  #make(layout: StridedLayout, dtype: DType, readonly: boolean): Known | null {
    const python = this.#python;
    const { none } = python.singletons;
    if (this.#byText.size === maxSpecs) {
      for (const { object } of this.#byText.values()) python.release(object);
      this.#byText.clear();
      this.#generation++;
    }
    const object = python.callHelper("spec_of", [
      python.text(dtype.name),
      layout.isContiguousC && dtype.arrowFormat !== null ? python.text(dtype.arrowFormat) : python.retain(none),
      python.numbers(layout.shape),
      layout.isContiguousC ? python.retain(none) : python.numbers(layout.stridesInBytes),
      python.text(dtype.typestr ?? ""),
      python.retain(readonly ? python.singletons.true : python.singletons.false),
    ]);
    if (object !== none) return { dtype, readonly, object, generation: this.#generation };
    python.release(none);
    return null;
  }
}

const specs = new WeakMap<Interpreter, HostSpecs>();

/** The spec by which a host view is exported; borrowed until the next call. 0n: it is not exported by a spec. */
export function hostSpec(python: Interpreter, view: StridedMemoryView): bigint {
  return specs.getOrInsertComputed(python, () => new HostSpecs(python)).of(view);
}
