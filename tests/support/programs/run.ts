/**
 * Runs random programs of producers and consumers.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { CUresult } from "../../../bindings/cuda_types.ts";
import type { MemoryKind } from "../../../src/order/ordered_memory.ts";
import { liveExports } from "../../../src/order/reclaim.ts";
import type { Lease } from "../../../src/view/lease.ts";
import { type ArrowStreamExport, exportArrowStream } from "../../../src/public/arrow.ts";
import {
  ArrowArray,
  type ArrowDeviceArray,
  arrowField,
  type Cuda,
  type CudaDevice,
  type CudaStream,
  DeviceMemoryResource,
  type DlpackTensor,
  ManagedMemoryResource,
  type MemoryBuffer,
  type MemoryResource,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../../mod.ts";
import { drainFrees } from "../../../src/order/deferred_free.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { ffiPort } from "../../../src/ffi/port.ts";
import { join, start } from "../foreign_thread.ts";
import {
  deviceOfLane,
  type Part,
  type Program,
  type ReleasedBy,
  type Resource,
  side,
  type Step,
  type Via,
  whole,
} from "./mod.ts";
import { ForeignArray } from "./foreign.ts";
import { callStream, runOf, type Taken, takeStruct, takeTensor } from "./taken.ts";
import { type Named, type Run, runsOf, Streams } from "./streams.ts";
import { layout, moveRaw, pointerAt, type RawArray, readRawArray, releaseRaw } from "../raw_arrow.ts";
import { enqueueCopy, enqueueFill } from "../../../src/device/mod.ts";

/**
 * Runs a program; closes everything, the Cuda included.
 *
 * @param without index of an `order` step to skip, from 0
 * @returns what the reads returned
 */
export function runProgram(cuda: Cuda, program: Program, without: number | null = null): number[][] {
  const run = new ProgramRun(cuda, program);
  let orders = 0;
  for (const step of program.steps) if (step.do !== "order" || orders++ !== without) run.take(step);
  drainFrees(); // for memory that the driver does not free in stream order
  return run.results;
}

/** An array that the program holds. */
interface Held {
  readonly view: StridedMemoryView;
  /** Where in its block it begins. */
  readonly part: Part;
  /** What closes it. */
  readonly close: () => void;
}

/** A tensor or an Arrow array that has been exported. */
interface Out {
  /** Null for an array of a stream: its consumer has only the struct. */
  readonly source: DlpackTensor | ArrowDeviceArray | null;
  readonly isReadonly: boolean;
  /** The other child of a struct of two. */
  readonly twin: number | null;
  /** What its consumer sees, once taken. */
  taken: Taken | null;
}

/** A lease, or what a consumer of the CUDA Array Interface read. */
type Loan =
  | { readonly lease: Lease; readonly runs: readonly Run[]; readonly kind: MemoryKind }
  | { readonly lease: null; readonly runs: readonly Run[]; readonly producer: Named; readonly lane: number };

class ProgramRun {
  readonly #cuda: Cuda;
  readonly #program: Program;
  readonly #streams: Streams;
  readonly #arena = new NativeArena();
  readonly #slots: MemoryBuffer;
  readonly #slotAt: number[] = [];
  readonly #resources = new Map<string, MemoryResource>();
  readonly #arrays = new Map<number, Held | ForeignArray>();
  readonly #exports = new Map<number, Out>();
  readonly #sent = new Map<number, { readonly source: ArrowStreamExport; address: bigint | null }>();
  readonly #loans = new Map<number, Loan>();
  readonly #liveBefore = liveExports();
  #results: number[][] | null = null;

  constructor(cuda: Cuda, program: Program) {
    this.#cuda = cuda;
    this.#program = program;
    this.#streams = new Streams(cuda, program.devices);
    let bytes = 0;
    for (const one of program.slots) {
      this.#slotAt.push(bytes);
      bytes += one;
    }
    this.#slots = new PinnedMemoryResource(cuda.device(0)).allocate(bytes + 1);
    this.#slots.bytes().fill(0xee);
    if (program.hasPeers) this.#enablePeerAccess();
  }

  /** What the reads returned: known once the Cuda is closed. */
  get results(): number[][] {
    assert(this.#results !== null, "the program closes its Cuda");
    return this.#results;
  }

  take(step: Step): void {
    switch (step.do) {
      case "allocate": {
        const { array, device, resource, lane } = step;
        if (resource === "foreign") this.#arrays.set(array, new ForeignArray(this.#streams, lane));
        else this.#allocate(array, device, resource, lane);
        return;
      }
      case "fill":
        return this.#fill(step.via, step.lane, step.value);
      case "read":
        return this.#read(step.via, step.lane, this.#slots.ptr + BigInt(this.#slotAt[step.slot] ?? 0));
      case "copy":
        return this.#own(step.to).view.copyFrom(this.#own(step.from).view, { stream: this.#stream(step.lane) });
      case "home":
        return this.#own(step.array).view.buffer.setHomeStream(this.#stream(step.lane));
      case "lend": {
        const lease = this.#partOf(step.array, step.part).borrow(this.#stream(step.lane));
        // The owner may close the buffer meanwhile: the borrower has the address by then.
        this.#loans.set(step.loan, { lease, ...oursOf(lease.view) });
        return;
      }
      case "describe":
        return this.#describe(step.loan, step.array, step.part, step.lane);
      case "return":
        return this.#return(step.loan);
      case "export":
        return this.#export(step);
      case "await": {
        const { event } = this.#taken(step.export);
        if (event !== 0n) this.#streams.wait(this.#streams.named(step.lane), event);
        return;
      }
      case "stream":
        return this.#exportStream(step);
      case "next":
        return this.#next(step.stream, step.export);
      case "release stream":
        return this.#releaseStream(step.stream, step.by);
      case "import":
        return this.#import(step);
      case "release":
        return this.#release(step);
      case "close":
        return given(this.#arrays.get(step.array)).close();
      case "look":
        return this.#look(step);
      case "peers": {
        const resource = this.#resource(step.owner, step.isOwnPool ? "own" : "current");
        assert(resource instanceof DeviceMemoryResource);
        resource.peerAccessibleBy = step.peers;
        return;
      }
      case "order":
        return this.#streams.orderLanes(step.before, step.after, step.how);
      case "synchronize":
        return this.#stream(step.lane).synchronize();
      case "synchronize device":
        return this.#cuda.device(step.device).synchronize();
      case "destroy":
        return this.#streams.destroy(step.lane);
      case "close pool": {
        const pool = this.#resources.get(`own ${step.device}`);
        if (pool instanceof DeviceMemoryResource) pool.close();
        return;
      }
      case "close cuda":
        return this.#closeCuda();
    }
  }

  #look({ live, released, streams }: Extract<Step, { do: "look" }>): void {
    assertEquals(liveExports() - this.#liveBefore, live, "as many exports are live as were not released");
    for (const [id, { source }] of this.#exports) {
      if (source === null) continue;
      assertEquals([id, source.released], [id, released.includes(id)], "an export knows whether it was released");
    }
    for (const [id, { source }] of this.#sent) {
      assertEquals([id, source.released], [id, streams.includes(id)], "a stream knows whether it was released");
    }
  }

  #closeCuda(): void {
    for (const device of this.#cuda.devices) device.synchronize();
    const bytes = this.#slots.bytes();
    this.#results = this.#program.slots.map((size, i) => {
      const at = this.#slotAt[i] ?? 0;
      return Array.from(bytes.subarray(at, at + size));
    });
    this.#slots.close();
    for (const { ordinal } of this.#cuda.devices.slice(0, this.#program.devices)) {
      const current = this.#resources.get(`current ${ordinal}`); // the device's, which outlives the program
      if (current instanceof DeviceMemoryResource) current.peerAccessibleBy = [];
    }
    this.#streams.close();
    this.#cuda.close();
  }

  /** Enables peer access between contexts, as the runtimes of other libraries do: it covers memory that has no pool. */
  #enablePeerAccess(): void {
    const { raw } = this.#streams;
    const { devices } = this.#program;
    for (let device = 0; device < devices; device++) {
      for (let peer = 0; peer < devices; peer++) {
        if (peer === device) continue;
        raw.use(device);
        const code = raw.driver.context.cuCtxEnablePeerAccess(raw.context(peer), 0);
        if (code !== CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) raw.ok(code); // contexts may outlive a program
      }
    }
  }

  #allocate(array: number, device: number, resource: Resource, lane: number): void {
    const buffer = this.#resource(device, resource).allocate(side * side, { stream: this.#stream(lane) });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [side, side], dtype: "uint8" });
    this.#arrays.set(array, { view, part: whole, close: () => buffer.close() });
  }

  #resource(ordinal: number, kind: Resource): MemoryResource {
    const key = `${kind} ${ordinal}`;
    const known = this.#resources.get(key) ?? resourceOf(this.#cuda.device(ordinal), kind);
    this.#resources.set(key, known);
    return known;
  }

  #fill(via: Via, lane: number, value: number): void {
    const ours = this.#ours(via);
    if (ours === null) return this.#streams.fill(lane, this.#runs(via), value);
    const stream = this.#stream(lane);
    for (const { ptr, bytes } of ours.runs) enqueueFill(stream, ptr, value, 1, bytes);
  }

  #read(via: Via, lane: number, to: bigint): void {
    const ours = this.#ours(via);
    if (ours === null) return this.#streams.read(lane, this.#runs(via), to);
    const stream = this.#stream(lane);
    let at = to;
    for (const { ptr, bytes } of ours.runs) {
      enqueueCopy(stream, at, ptr, bytes, ours.kind === "pinned" ? "HtoH" : "DtoH");
      at += BigInt(bytes);
    }
  }

  /** The memory behind one of our own holders; null for another library's. */
  #ours({ kind, id }: Via): { readonly runs: readonly Run[]; readonly kind: MemoryKind } | null {
    if (kind === "array") {
      const array = given(this.#arrays.get(id));
      return array instanceof ForeignArray ? null : oursOf(array.view);
    }
    if (kind === "export") return null;
    const loan = given(this.#loans.get(id));
    return loan.lease === null ? null : loan;
  }

  /** The memory that another library has. */
  #runs({ kind, id }: Via): readonly Run[] {
    if (kind === "export") return this.#taken(id).runs;
    if (kind === "loan") {
      const loan = given(this.#loans.get(id));
      assert(loan.lease === null);
      return loan.runs;
    }
    const array = this.#arrays.get(id);
    assert(array instanceof ForeignArray);
    return array.runs(whole);
  }

  /** A consumer reads a description, and makes its stream wait for the stream it names. */
  #describe(loan: number, array: number, part: Part, lane: number): void {
    const of = given(this.#arrays.get(array));
    const source = of instanceof ForeignArray ? of.described(part) : this.#partOf(array, part);
    const found: unknown = Reflect.get(source, "__cuda_array_interface__");
    const { shape, data, strides, stream } = found as Description;
    const runs = runsOf(data[0], shape, strides ?? [shape[1] ?? 1, 1]);
    const device = of instanceof ForeignArray ? deviceOfLane(of.lane) : of.view.device?.ordinal;
    assert(stream !== null && device !== undefined);
    const producer = { device, handle: stream };
    this.#orderUnlessSame(producer, this.#streams.named(lane));
    this.#loans.set(loan, { lease: null, runs, producer, lane });
  }

  #return(id: number): void {
    const loan = given(this.#loans.get(id));
    if (loan.lease !== null) return loan.lease.close();
    const { producer, lane } = loan;
    this.#orderUnlessSame(this.#streams.named(lane), producer);
  }

  #orderUnlessSame(before: Named, after: Named): void {
    if (before.handle !== after.handle || before.device !== after.device) this.#streams.order(before, after);
  }

  #export(step: Extract<Step, { do: "export" }>): void {
    const { export: id, array, part, how, lane, naming, isReadonly, twin } = step;
    const view = this.#partOf(array, part);
    const put = (source: Out["source"], at: number, twinAt: number | null) =>
      this.#exports.set(at, { source, isReadonly, twin: twinAt, taken: null });
    if (twin !== null) {
      const children = [view, this.#partOf(twin.array, twin.part)].map(bytesArray).map(asOne);
      const type = { kind: "struct", children: children.map(({ field }) => field) } as const;
      const field = arrowField(type, { nullable: false });
      const array = new ArrowArray({ field, length: 1, nullCount: 0, buffers: [null], children });
      const source = array.toArrowDevice();
      put(source, id, twin.export);
      put(source, twin.export, id);
      return;
    }
    if (how === "arrow") return void put(view.toArrowDevice(), id, null);
    const maxVersion = how === "legacy" ? [0, 8] as const : [1, 3] as const;
    const isHandle = naming === "handle";
    const stream = lane === null ? (isHandle ? -1n : null) : isHandle ? this.#streams.handle(lane) : this.#stream(lane);
    put(view.toDlpack(naming === "default" ? { maxVersion } : { maxVersion, stream }), id, null);
  }

  /** What an export's consumer sees: it takes the export over on first use. */
  #taken(id: number): Taken {
    const out = given(this.#exports.get(id));
    if (out.taken === null) {
      assert(out.source !== null);
      if ("schemaPtr" in out.source) this.#takeArrow(out, out.source, id);
      else out.taken = takeTensor(out.source, out.isReadonly);
    }
    assert(out.taken !== null);
    return out.taken;
  }

  /** Every other consumer moves the structs to memory of its own. */
  #takeArrow(out: Out, source: ArrowDeviceArray, id: number): void {
    let { schema, array } = source.take();
    if (id % 2 === 0) {
      const [to, schemaTo] = [this.#arena.bytes(layout.deviceArray.size), this.#arena.bytes(layout.schema.size)];
      to.bytes.set(new Uint8Array(ffiPort().memory(array, layout.deviceArray.size)));
      moveRaw(to.address, array, "array");
      moveRaw(schemaTo.address, schema, "schema");
      assertEquals(pointerAt(array, layout.array.release), 0n, "a moved struct needs no release");
      [schema, array] = [schemaTo.address, to.address];
    }
    const { event, struct, runs } = takeStruct(array);
    let hasSchema = true; // a released schema may be gone
    const releaseSchema = () => {
      if (hasSchema) releaseRaw(schema, "schema");
      hasSchema = false;
    };
    if (out.twin === null) {
      out.taken = { runs, event, struct, child: 0n, releaseSchema };
      return;
    }
    const take = (one: Out, values: RawArray, child: bigint) => {
      one.taken = { runs: [runOf(values)], event, struct, child, releaseSchema };
    };
    const raw = readRawArray(array);
    const children = pointerAt(array, 48);
    const order = [Math.min(id, out.twin), Math.max(id, out.twin)];
    raw.children.forEach((child, i) =>
      take(given(this.#exports.get(order[i] ?? 0)), given(child.children[0]), pointerAt(children, 8 * i))
    );
  }

  #exportStream({ stream, items }: Extract<Step, { do: "stream" }>): void {
    const arrays = items.map(({ array, part }) => bytesArray(this.#partOf(array, part)));
    this.#sent.set(stream, { source: exportArrowStream(arrays, { device: true }), address: null });
  }

  /** The consumer takes the stream over, and reads its schema once. */
  #takeStream(id: number): bigint {
    const sent = given(this.#sent.get(id));
    if (sent.address !== null) return sent.address;
    sent.address = sent.source.take();
    const { address } = this.#arena.bytes(layout.schema.size);
    callStream(sent.address, 8, address);
    releaseRaw(address, "schema");
    return sent.address;
  }

  #next(stream: number, id: number): void {
    const { address } = this.#arena.bytes(layout.deviceArray.size);
    callStream(this.#takeStream(stream), 16, address);
    const taken = { ...takeStruct(address), child: 0n, releaseSchema: () => {} };
    this.#exports.set(id, { source: null, isReadonly: true, twin: null, taken });
  }

  #releaseStream(id: number, by: ReleasedBy): void {
    if (by === "close") return given(this.#sent.get(id)).source.close();
    const address = this.#takeStream(id);
    const callback = pointerAt(address, 32);
    if (by === "thread") join(start(callback, address));
    else ffiPort().functionAt(callback, { args: ["ptr"], returns: "void" })(address);
  }

  #release({ export: id, by, what }: Extract<Step, { do: "release" }>): void {
    const { source, twin } = given(this.#exports.get(id));
    if (by === "close") return source?.close();
    const taken = this.#taken(id);
    taken.releaseSchema();
    if (what === "schema") return;
    if (what === "all but twin" && twin !== null) {
      const other = this.#taken(twin);
      const { address } = this.#arena.bytes(layout.array.size);
      const callback = pointerAt(other.child, layout.array.release);
      moveRaw(address, other.child, "array");
      other.struct = { address, callback };
    }
    const { address, callback } = taken.struct;
    if (by === "thread") join(start(callback, address));
    else ffiPort().functionAt(callback, { args: ["ptr"], returns: "void" })(address);
  }

  #import({ array, from, part, how, given: says, device, lane, isReadonly }: Extract<Step, { do: "import" }>): void {
    const owner = this.#cuda.device(device);
    const options = says === "stream" && lane !== null
      ? { stream: this.#stream(lane) }
      : says === "null"
      ? { device: owner, stream: null }
      : { device: owner };
    const source = this.#sourceOf(from, part, how);
    const view = how === "dlpack"
      ? StridedMemoryView.fromDlpack(source, options)
      : how === "arrow"
      ? StridedMemoryView.fromArrowDevice(source, options)
      : StridedMemoryView.fromCudaArrayInterface(source, options);
    assertEquals([view.shape, view.readonly], [[part.rows, part.cols], isReadonly]);
    this.#arrays.set(array, { view, part, close: () => view.close() });
  }

  #sourceOf({ kind, id }: Via, part: Part, how: "dlpack" | "arrow" | "interface"): unknown {
    if (kind === "export") return given(this.#exports.get(id)).source;
    const of = given(this.#arrays.get(id));
    if (!(of instanceof ForeignArray)) return this.#partOf(id, part);
    return how === "dlpack" ? of.dlpack(part) : how === "arrow" ? of.arrow(part) : of.described(part);
  }

  /** A part of an array, in coordinates of the block, so that slices of slices agree. */
  #partOf(id: number, { row, rows, col, cols }: Part): StridedMemoryView {
    const { view, part } = this.#own(id);
    const [top, left] = [row - part.row, col - part.col];
    return view.sliced(slice(top, top + rows), slice(left, left + cols));
  }

  #own(id: number): Held {
    const array = given(this.#arrays.get(id));
    assert(!(array instanceof ForeignArray));
    return array;
  }

  #stream(lane: number): CudaStream {
    return this.#streams.stream(lane);
  }
}

/** What a consumer of the CUDA Array Interface reads. */
interface Description {
  readonly shape: readonly number[];
  readonly data: readonly [ptr: bigint, readonly: boolean];
  readonly strides: readonly number[] | null;
  readonly stream: bigint | null;
}

function oursOf(view: StridedMemoryView): { readonly runs: readonly Run[]; readonly kind: MemoryKind } {
  return { runs: runsOf(view.ptr, view.shape, view.strides), kind: view.buffer.kind };
}

/** Contiguous bytes as an Arrow array. */
function bytesArray(view: StridedMemoryView): ArrowArray {
  const length = view.layout.volume;
  const field = arrowField("C", { nullable: false });
  return new ArrowArray({ field, length, nullCount: 0, buffers: [null, view.reshaped([length])] });
}

/** One element, a list of all elements of an array: as such, arrays of any length fit into one struct. */
function asOne(array: ArrowArray): ArrowArray {
  const type = { kind: "fixed_size_list", size: array.length, child: array.field } as const;
  return new ArrowArray({
    field: arrowField(type, { nullable: false }),
    length: 1,
    buffers: [null],
    children: [array],
  });
}

function resourceOf(device: CudaDevice, kind: Resource): MemoryResource {
  switch (kind) {
    case "own":
      return new DeviceMemoryResource(device, { maxSize: 2 ** 26 });
    case "synchronous":
      return new SynchronousMemoryResource(device);
    case "pinned":
      return new PinnedMemoryResource(device);
    case "managed":
      return new ManagedMemoryResource(device);
    default:
      return device.memory;
  }
}

function given<T>(value: T | undefined): T {
  assert(value !== undefined, "the program names only what exists");
  return value;
}
