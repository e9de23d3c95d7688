/**
 * Random programs of producers and consumers: exports, imports, exports of imports, tensors taken by other consumers,
 * closes and releases in any order. A model that only counts users determines when each piece of memory must be free.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { DlpackTensor } from "../../src/dlpack/tensor.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { slice } from "../../src/layout/mod.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { check, fc } from "../support/property.ts";
import { CountingDeleter, foreignTensor, type Kind, patchDeleter, readRaw } from "../support/raw_dlpack.ts";

/** Memory in the model: one of our buffers, or an import. */
interface Memory {
  readonly view: StridedMemoryView;
  /** The tensor that this memory was imported from; null for our own buffers. */
  readonly from: Tensor | null;
  closed: boolean;
}

/** A tensor in the model: ours over some memory, or a foreign one (`over` is null). */
interface Tensor {
  readonly ptr: bigint;
  readonly kind: Kind;
  readonly over: Memory | null;
  readonly tensor: DlpackTensor;
  /** `out`: not taken yet; `taken`: owned by a foreign consumer; `imported`; `released`. */
  state: "out" | "taken" | "imported" | "released";
}

type Operation =
  | { readonly kind: "allocate" | "foreign"; readonly legacy: boolean }
  | { readonly kind: "export"; readonly at: number; readonly legacy: boolean; readonly part: boolean }
  | { readonly kind: "import" | "take" | "release" | "drop" | "close"; readonly at: number }
  | { readonly kind: "look" };

const index = fc.nat(30);
const operations: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("allocate" as const, "foreign" as const), legacy: fc.boolean() }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("export" as const),
      at: index,
      legacy: fc.boolean(),
      part: fc.boolean(),
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constantFrom("import" as const, "import" as const, "take" as const, "release", "drop", "close", "close"),
      at: index,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("look" as const) }) },
);

/** One run: the objects, the model of them, and the comparison. */
class Run {
  readonly #memories: Memory[] = [];
  readonly #tensors: Tensor[] = [];
  readonly #freed = new Map<Memory, number>();
  readonly #deleter: CountingDeleter;
  readonly #foreign: (() => void)[] = [];
  /** The real deleter of each of our tensors, which the counting one calls. */
  readonly #deleters: Map<bigint, bigint>;

  constructor(deleter: CountingDeleter, deleters: Map<bigint, bigint>) {
    this.#deleter = deleter;
    this.#deleters = deleters;
    deleter.calls.clear();
    deleters.clear();
  }

  step(operation: Operation): void {
    switch (operation.kind) {
      case "allocate":
        this.#allocate();
        return;
      case "foreign":
        this.#makeForeign(operation.legacy ? "legacy" : "versioned");
        return;
      case "look":
        this.compare();
        return;
      case "export": {
        const memory = pick(this.#memories, operation.at);
        if (memory !== undefined && !memory.closed) this.#export(memory, operation.legacy, operation.part);
        return;
      }
      case "close": {
        const memory = pick(this.#memories, operation.at);
        if (memory !== undefined) this.#close(memory);
        return;
      }
      default: {
        const tensor = pick(this.#tensors, operation.at);
        if (tensor !== undefined) this.#consume(tensor, operation.kind);
      }
    }
  }

  /** Releases everything that is still held, in order of creation. */
  finish(): void {
    for (const tensor of this.#tensors) {
      this.#consume(tensor, "drop");
      this.#consume(tensor, "release");
    }
    for (const memory of this.#memories) this.#close(memory);
    this.compare();
    assertEquals(liveExports(), 0);
    for (const { ptr, over } of this.#tensors) {
      // Our structs may reuse the address of an earlier one, so they are counted on release, below.
      if (over === null) assertEquals(this.#deleter.callsFor(ptr), 1, "a deleter is called exactly once");
    }
    for (const free of this.#foreign) free();
  }

  /** Fails unless exactly the unused memory is free. */
  compare(): void {
    assertEquals(liveExports(), this.#tensors.filter((one) => one.over !== null && !this.#isReleased(one)).length);
    for (const memory of this.#memories) {
      const expected = this.#isFree(memory) ? 1 : 0;
      if (memory.from === null) assertEquals(this.#freed.get(memory) ?? 0, expected, "a buffer is freed when unused");
      else if (memory.from.over === null) {
        assertEquals(this.#deleter.callsFor(memory.from.ptr), expected, "an import is released when unused");
      }
      assertEquals(memory.view.owner === undefined, memory.from === null || expected === 1);
    }
    for (const one of this.#tensors) {
      if (one.over !== null) assertEquals(one.tensor.released, this.#isReleased(one));
    }
  }

  /** Memory is free when it is closed and every tensor over it has been released. */
  #isFree(memory: Memory): boolean {
    return memory.closed && this.#tensors.every((one) => one.over !== memory || this.#isReleased(one));
  }

  /** A tensor is released by its consumer, or when the import that took it is free. */
  #isReleased(tensor: Tensor): boolean {
    if (tensor.state !== "imported") return tensor.state === "released";
    const holder = this.#memories.find((memory) => memory.from === tensor);
    assert(holder !== undefined);
    return this.#isFree(holder);
  }

  #allocate(): void {
    const ptr = libc().loading.calloc(16n, 4n);
    const buffer = MemoryBuffer.fromAllocation({
      ptr,
      size: 64,
      device: null,
      stream: null,
      free: (at) => {
        this.#freed.set(memory, (this.#freed.get(memory) ?? 0) + 1);
        libc().loading.free(at);
      },
    });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [4, 4], dtype: "float32" });
    const memory: Memory = { view, from: null, closed: false };
    this.#memories.push(memory);
  }

  #makeForeign(kind: Kind): void {
    const data = libc().loading.calloc(16n, 4n);
    const made = foreignTensor(kind, { shape: [4, 4], strides: [4, 1], data, deleter: this.#deleter.address });
    const { ptr } = made;
    // The address may have belonged to an export that has been freed since.
    this.#deleters.delete(ptr);
    this.#deleter.calls.set(ptr, 0);
    const tensor = new DlpackTensor(ptr, kind === "versioned" ? [1, 3] : null, { isReleased: () => false });
    this.#tensors.push({ ptr, kind, over: null, tensor, state: "out" });
    this.#foreign.push(made.free, () => libc().loading.free(data));
  }

  #export(over: Memory, legacy: boolean, part: boolean): void {
    const view = part ? over.view.sliced(slice(null, null, -2), slice(1)) : over.view;
    const tensor = view.toDlpack({ maxVersion: legacy ? [0, 8] : [1, 3] });
    const kind = legacy ? "legacy" : "versioned";
    const { ptr } = tensor;
    this.#deleters.set(ptr, readRaw(ptr, kind).deleter);
    this.#deleter.calls.set(ptr, 0);
    patchDeleter(ptr, kind, this.#deleter.address);
    this.#tensors.push({ ptr, kind, over, tensor, state: "out" });
  }

  #consume(tensor: Tensor, how: "import" | "take" | "release" | "drop"): void {
    if (how === "release") {
      if (tensor.state !== "taken") return;
      ffiPort().functionAt(readRaw(tensor.ptr, tensor.kind).deleter, { args: ["ptr"], returns: "void" })(tensor.ptr);
      tensor.state = "released";
    } else if (tensor.state === "out") {
      if (how === "import") {
        this.#memories.push({ view: StridedMemoryView.fromDlpack(tensor.tensor), from: tensor, closed: false });
        tensor.state = "imported";
      } else if (how === "take") {
        assertEquals(tensor.tensor.take(), tensor.ptr);
        tensor.state = "taken";
      } else {
        tensor.tensor.close();
        tensor.state = "released";
      }
    }
    // While its block is allocated the struct's address is not reused, so released means called once.
    if (tensor.state === "released") assert(this.#deleter.callsFor(tensor.ptr) <= 1);
  }

  #close(memory: Memory): void {
    if (memory.from === null) memory.view.buffer.close();
    else memory.view.close();
    memory.closed = true;
  }
}

function pick<T>(list: readonly T[], at: number): T | undefined {
  return list[at % list.length];
}

test("memory is free exactly when its last user is gone, in any program of exports, imports, closes and releases", () => {
  using deleter = new CountingDeleter();
  const deleters = new Map<bigint, bigint>();
  let deepest = 0;
  deleter.onCall = (ptr) => {
    assert((deleter.calls.get(ptr) ?? 0) === 1, "a deleter is called exactly once");
    const real = deleters.get(ptr);
    if (real !== undefined) ffiPort().functionAt(real, { args: ["ptr"], returns: "void" })(ptr);
    deepest++;
  };
  check(
    fc.property(
      fc.array(operations, { minLength: 10, maxLength: 80, size: "max" }),
      fc.boolean(),
      (program, isWatched) => {
        const run = new Run(deleter, deleters);
        for (const operation of program) {
          run.step(operation);
          if (isWatched) run.compare();
        }
        run.finish();
      },
    ),
    1500,
  );
  assert(deepest > 1000, `the programs must release something: ${deepest} deleters called`);
});
