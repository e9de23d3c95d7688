/**
 * A foreign producer: memory of the driver, offered by DLPack, the CUDA Array Interface and Arrow, and freed on its own
 * stream the moment the last consumer has released it. It waits for no consumer, as no convention requires it to.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { DlpackTensor, type ToDlpackOptions } from "../../../src/dlpack/tensor.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { ffiPort } from "../../../src/ffi/port.ts";
import { deviceOfLane, isDense, type Part, side } from "./mod.ts";
import { type Named, type Run, runsOf, type Streams } from "./streams.ts";
import { layout } from "../raw_arrow.ts";
import { CountingDeleter, foreignTensor } from "../raw_dlpack.ts";

/** Callbacks that release structs: by address for DLPack, by private data for Arrow. */
const releases = new Map<bigint, () => void>();

function released(key: bigint): void {
  const release = releases.get(key);
  assert(release !== undefined, "a struct is released once");
  releases.delete(key);
  release();
}

let made: { readonly tensor: bigint; readonly schema: bigint; readonly array: bigint } | undefined;

/** The callbacks shared by all foreign libraries of a test process. */
function callbacks() {
  if (made !== undefined) return made;
  const deleter = new CountingDeleter();
  deleter.onCall = released;
  const arrow = ({ size, release, privateData }: { size: number; release: number; privateData: number }) =>
    ffiPort().callback({ args: ["ptr"], returns: "void" }, (address) => {
      const view = new DataView(ffiPort().memory(address, size));
      view.setBigUint64(release, 0n, true);
      released(view.getBigUint64(privateData, true));
    }).address;
  made = { tensor: deleter.address, schema: arrow(layout.schema), array: arrow(layout.array) };
  return made;
}

/** An array of another library. */
export class ForeignArray {
  readonly ptr: bigint;
  readonly lane: number;
  readonly #streams: Streams;
  readonly #free: () => void;
  #users = 0;
  #isClosed = false;

  /** Allocates on a lane. */
  constructor(streams: Streams, lane: number) {
    this.#streams = streams;
    this.lane = lane;
    const { raw } = streams;
    const { driver } = raw;
    const handle = streams.handle(lane);
    streams.use(lane);
    this.ptr = raw.allocate(side * side, handle);
    this.#free = () => {
      streams.use(lane);
      raw.ok(driver.pool.cuMemFreeAsync(this.ptr, handle));
    };
  }

  /** The bytes of a part. */
  runs(part: Part): Run[] {
    return runsOf(this.#at(part), [part.rows, part.cols], [side]);
  }

  /** Releases the memory; a consumer that has it by DLPack or Arrow keeps it. */
  close(): void {
    this.#isClosed = true;
    this.#freeIfUnused();
  }

  /** A part as an object that speaks DLPack. */
  dlpack(part: Part): object {
    const device = deviceOfLane(this.lane);
    return {
      __dlpack_device__: () => [2, device],
      __dlpack__: ({ stream }: ToDlpackOptions = {}) => {
        const handle = typeof stream === "object" && stream !== null ? stream.handle : stream ?? 1n;
        assert(handle !== 0n, "stream 0 is forbidden");
        if (stream !== null && handle !== -1n) this.#orderBefore({ device, handle });
        const { tensor: deleter } = callbacks();
        const { rows, cols } = part;
        const place = { data: this.#at(part), deviceType: 2, deviceId: device, code: 1, bits: 8 };
        const made = foreignTensor("versioned", { shape: [rows, cols], strides: [side, 1], deleter, ...place });
        this.#addUser(made.ptr, made.free);
        return new DlpackTensor(made.ptr, [1, 3], { isReleased: () => !releases.has(made.ptr) });
      },
    };
  }

  /** A part as an object with a CUDA Array Interface. */
  described(part: Part): object {
    const { rows, cols } = part;
    const stream = this.#streams.handle(this.lane) || 1n;
    const data = [this.#at(part), false];
    const strides = [side, 1];
    return { __cuda_array_interface__: { shape: [rows, cols], typestr: "|u1", data, strides, version: 3, stream } };
  }

  /** A part as Arrow's structs, which the consumer moves out. */
  arrow(part: Part): { readonly schema: bigint; readonly deviceArray: bigint } {
    assert(isDense(part));
    const arena = new NativeArena();
    const event = this.#streams.event(deviceOfLane(this.lane));
    const { driver } = this.#streams.raw;
    const handle = this.#streams.handle(this.lane);
    this.#streams.use(this.lane);
    assertEquals(driver.event.cuEventRecord(event, handle), 0);
    const writer = new ArrowWriter(arena);
    const schema = writer.schema(part);
    const deviceArray = writer.array(part, this.#at(part), deviceOfLane(this.lane), event);
    let structs = 2;
    const freeStructs = () => --structs > 0 || arena.close();
    releases.set(schema, freeStructs);
    this.#addUser(deviceArray, () => {
      assertEquals(driver.event.cuEventDestroy_v2(event), 0);
      freeStructs();
    });
    return { schema, deviceArray };
  }

  #at({ row, col }: Part): bigint {
    return this.ptr + BigInt(row * side + col);
  }

  #orderBefore(stream: Named): void {
    this.#streams.order(this.#streams.named(this.lane), stream);
  }

  #addUser(key: bigint, free: () => void): void {
    this.#users++;
    assert(!releases.has(key));
    releases.set(key, () => {
      free();
      this.#users--;
      this.#freeIfUnused();
    });
  }

  #freeIfUnused(): void {
    if (this.#isClosed && this.#users === 0) this.#free();
  }
}

/** Writes Arrow's structs of a matrix of bytes. */
class ArrowWriter {
  readonly #arena: NativeArena;

  constructor(arena: NativeArena) {
    this.#arena = arena;
  }

  schema({ cols }: Part): bigint {
    const child = this.#schema("C", []);
    const root = this.#schema(`+w:${cols}`, [child.address]);
    root.view.setBigUint64(layout.schema.release, callbacks().schema, true);
    root.view.setBigUint64(layout.schema.privateData, root.address, true);
    child.view.setBigUint64(layout.schema.release, callbacks().schema, true); // never called: only the base's is
    return root.address;
  }

  array({ rows, cols }: Part, data: bigint, device: number, event: bigint): bigint {
    const child = this.#array(rows * cols, [0n, data], []);
    const root = this.#array(rows, [0n], [child.address]);
    const { release, privateData } = layout.array;
    child.view.setBigUint64(release, callbacks().array, true);
    root.view.setBigUint64(release, callbacks().array, true);
    root.view.setBigUint64(privateData, root.address, true);
    root.view.setBigInt64(layout.deviceArray.deviceId, BigInt(device), true);
    root.view.setInt32(layout.deviceArray.deviceType, 2, true);
    root.view.setBigUint64(layout.deviceArray.syncEvent, this.#pointers([event]), true);
    return root.address;
  }

  #schema(format: string, children: readonly bigint[]) {
    const made = this.#struct(layout.schema.size);
    made.view.setBigUint64(0, this.#arena.cString(format), true);
    made.view.setBigUint64(8, this.#arena.cString("item"), true);
    made.view.setBigInt64(32, BigInt(children.length), true);
    made.view.setBigUint64(40, this.#pointers(children), true);
    return made;
  }

  #array(length: number, buffers: readonly bigint[], children: readonly bigint[]) {
    const made = this.#struct(layout.deviceArray.size);
    made.view.setBigInt64(0, BigInt(length), true);
    made.view.setBigInt64(24, BigInt(buffers.length), true);
    made.view.setBigInt64(32, BigInt(children.length), true);
    made.view.setBigUint64(40, this.#pointers(buffers), true);
    made.view.setBigUint64(48, this.#pointers(children), true);
    return made;
  }

  #pointers(values: readonly bigint[]): bigint {
    const { address, view } = this.#struct(Math.max(1, values.length) * 8);
    values.forEach((value, i) => view.setBigUint64(i * 8, value, true));
    return address;
  }

  #struct(size: number): { readonly address: bigint; readonly view: DataView } {
    const { address, bytes } = this.#arena.bytes(size);
    return { address, view: new DataView(bytes.buffer, bytes.byteOffset, size) };
  }
}
