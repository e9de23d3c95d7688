/**
 * Exports as the C structs ArrowArray and ArrowDeviceArray: an array as structs for any library.
 *
 * @module
 */
import {
  ARROW_DEVICE,
  ArrowArray as ArrowArrayStruct,
  ArrowDeviceArray as ArrowDeviceStruct,
} from "../../bindings/arrow.ts";
import { observerOf } from "../driver/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import { none, show, unknownOption } from "../layout/mod.ts";
import { isField } from "./field.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { type ArrayParts, byteCount, firstAddress, withLastingCopies } from "../copy/mod.ts";
import { ArrayNode, type ArrowNode } from "./array_node.ts";
import { hasOffsets, hasViews, secondBuffer } from "./buffers.ts";
import { ArrowDeviceArray, releaseSchema, toArrowOptionNames, type ToArrowOptions } from "./device_array.ts";
import { applyRequestedSchema } from "./requested_schema.ts";
import { exportSchema } from "./schema.ts";
import { ExportedTree, type PlannedTree, StructBlock, type TreeNode } from "./exported_tree.ts";
import { ExchangeError, hostWaits, pollIfMany, recordReady, type ReleaseOrder } from "../order/mod.ts";

// law cdata/exportArrow: order/refusals, order/reclaim, dlpack/host_consumers, sim/behaviours, arrow/release,
//   arrow/array, order/programs, arrow/several_homes, order/worker_end
/**
 * Exports an array.
 *
 * @param where `host`: for a consumer on the host, which reads immediately: the data must be in host memory, and the
 *   call waits for it
 * @throws {ExchangeError} if the buffers are on several devices, or on a device although host memory is requested, or
 *   the requested schema is incompatible
 */
export function exportArrow(
  array: ArrowNode,
  options: ToArrowOptions,
  where: "host" | "device" = "device",
): ArrowDeviceArray {
  const field = applyRequestedSchema(array.field, checkOptions(options).requestedSchema ?? null);
  pollIfMany();
  const buffers = buffersOf(array);
  const ending = [...buffers.keys()].filter(({ buffer }) => buffer.endsWithWorker);
  if (ending.length > 0) {
    return withLastingCopies(ending, (lasting) => exportArrow(withBuffers(array, lasting), options, where));
  }
  const place = where === "host" ? onHost(buffers.keys()) : placeOf(buffers);
  const block = new StructBlock();
  const head = block.struct(ArrowDeviceStruct); // begins with the base struct
  const eventSlot = block.reserve(8);
  const root = planRoot(array, block, head, where);
  const schema = exportSchema(field);
  const memory = new Set([...buffers.keys()].map(({ buffer }) => buffer));
  using undo = new DisposableStack(); // unless the export succeeds
  undo.defer(() => releaseSchema(schema.address));
  const held = undo.use(new DisposableStack()); // until the consumer releases the array
  for (const buffer of memory) held.use(buffer.pinned());
  const event = where === "host" ? null : recordReady(memory);
  if (event !== null) {
    using own = new DisposableStack();
    own.use(event);
    held.use(event.device.retained());
    held.use(own.move()); // disposed of first
    observerOf(event.device.driver)?.closedByUser(event.handle); // its consumer destroys it
  }
  block.allocate();
  root.write();
  const out = block.at(ArrowDeviceStruct, head);
  out.device_type = place.type;
  out.device_id = BigInt(place.id);
  out.sync_event = event === null ? 0n : block.address(eventSlot);
  block.pointers(eventSlot, [event?.handle ?? 0n]);
  const finish = () => held.dispose();
  const order = (order: ReleaseOrder) => [...memory].every((buffer) => order.add(buffer));
  const tree = new ExportedTree(block.address(head), block.tree, root.node, { finish, order });
  const exported = new ArrowDeviceArray({ field, array: tree, schema });
  undo.move();
  return exported;
}

/** The same array with other buffers. */
function withBuffers(array: ArrowNode, lasting: (buffer: ArrayParts) => ArrayParts): ArrowNode {
  const { field, length, offset, knownNullCount: nullCount, dictionary } = array;
  return new ArrayNode({
    field,
    length,
    offset,
    nullCount,
    buffers: array.buffers.map((buffer) => buffer === null ? null : lasting(buffer)),
    children: array.children.map((child) => withBuffers(child, lasting)),
    dictionary: dictionary === null ? null : withBuffers(dictionary, lasting),
  });
}

/**
 * Unknown options may only be null or undefined, which the protocol allows for later versions: those change nothing.
 */
export function checkOptions(options: ToArrowOptions): ToArrowOptions {
  return options === none ? options : checkNames(options);
}

function checkNames(options: ToArrowOptions): ToArrowOptions {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(
      `Expected an object of options (${Object.keys(toArrowOptionNames).join(", ")}), got ${show(options)}`,
    );
  }
  const { requestedSchema: wanted = null } = options;
  if (wanted !== null && !isField(wanted)) {
    throw new TypeError(`Expected requestedSchema to be a field, such as arrowField("i"), got ${show(wanted)}`);
  }
  for (const name of Object.keys(options)) {
    const value: unknown = Reflect.get(options, name);
    if (name !== "requestedSchema" && value !== null && value !== undefined) {
      throw unknownOption(name, toArrowOptionNames);
    }
  }
  return options;
}

/** The range of an array's elements that is exported. */
interface Part {
  readonly length: number;
  readonly offset: number;
  readonly nullCount: number;
}

function wholeOf({ length, offset, knownNullCount }: ArrowNode): Part {
  return { length, offset, nullCount: knownNullCount };
}

// law cdata/partOf: arrow/array
/** `length` elements from `start` on. An empty part has offset 0, because its buffers may be empty, too. */
function partOf(array: ArrowNode, start: number, length: number): Part {
  const { type, offset, knownNullCount } = array;
  const known = knownNullCount === 0 || (start === 0 && length === array.length) ? knownNullCount : -1;
  return { length, offset: length === 0 ? 0 : offset + start, nullCount: type.kind === "null" ? length : known };
}

// law cdata/planRoot: arrow/array, python/arrow_capsules
/**
 * Plans the outermost array. Consumers that read a struct as a batch (PyArrow) accept no offset and take the whole
 * children as columns. So the children of a struct are exported with its length, and for a slice of a struct without
 * nulls the offset moves into the children. Nulls are counted for that only on the host, after waiting for the
 * elements.
 */
function planRoot(array: ArrowNode, block: StructBlock, head: number, where: "host" | "device"): PlannedTree {
  const { type, length, offset, buffers: [validity = null] } = array;
  if (type.kind !== "struct") return plan(array, block, wholeOf(array), head);
  const isAtStart = offset === 0 || length === 0; // an empty array may have no buffers, and skips nothing
  const isCounted = where === "host" && !isAtStart && validity !== null;
  const nullCount = isCounted ? array.nullCount : array.knownNullCount;
  if (!isAtStart && validity !== null && nullCount !== 0) return plan(array, block, wholeOf(array), head);
  const root = { length, offset: 0, nullCount };
  const hidden = isAtStart ? 0 : 1; // the bitmap starts before the slice, and has no nulls
  return plan(array, block, root, head, (child) => partOf(child, isAtStart ? 0 : offset, length), hidden);
}

/**
 * Reserves memory for an array's struct, unless already reserved, and for its children's.
 *
 * @param hidden the number of leading buffers to omit
 */
function plan(
  array: ArrowNode,
  block: StructBlock,
  part: Part,
  reserved?: number,
  partOfChild: (child: ArrowNode) => Part = wholeOf,
  hidden = 0,
): PlannedTree {
  const at = reserved ?? block.struct(ArrowArrayStruct);
  const counter = block.reserve(8);
  // Before anything is allocated: throws for a closed buffer, which has no address.
  const addresses = array.buffers.map((buffer) => buffer === null ? 0n : firstAddress(buffer));
  addresses.fill(0n, 0, hidden);
  const buffers = block.reserve(8 * addresses.length);
  // Even an array without elements has one offset, 0; the block is zeroed.
  const offset = hasOffsets(array.type) && addresses[secondBuffer] === 0n ? block.reserve(8) : null;
  const children = array.children.map((child) => plan(child, block, partOfChild(child)));
  const dictionary = array.dictionary === null ? null : plan(array.dictionary, block, wholeOf(array.dictionary));
  const pointers = block.reserve(8 * children.length);
  const inner = dictionary === null ? children : [...children, dictionary];
  const node: TreeNode = { struct: at, counter, kind: "ArrowArray", inner: inner.map((one) => one.node) };
  return {
    node,
    write() {
      for (const one of inner) one.write();
      if (offset !== null) addresses[secondBuffer] = block.address(offset);
      block.pointers(buffers, addresses);
      block.pointers(pointers, children.map((child) => block.address(child.node.struct)));
      const out = block.at(ArrowArrayStruct, at);
      out.length = BigInt(part.length);
      out.null_count = BigInt(part.nullCount);
      out.offset = BigInt(part.offset);
      out.n_buffers = BigInt(addresses.length);
      out.n_children = BigInt(children.length);
      out.buffers = addresses.length === 0 ? 0n : block.address(buffers);
      out.children = children.length === 0 ? 0n : block.address(pointers);
      out.dictionary = dictionary === null ? 0n : block.address(dictionary.node.struct);
      out.release = releaseThunks().address.ArrowArray;
      out.private_data = block.address(counter);
    },
  };
}

/**
 * The buffers of an array and of its children, and whether each must be where the array is: the sizes of data buffers
 * need not be.
 */
function buffersOf(array: ArrowNode): Map<ArrayParts, boolean> {
  const found = new Map<ArrayParts, boolean>();
  const visit = ({ type, buffers, children, dictionary }: ArrowNode): void => {
    buffers.forEach((buffer, i) => {
      if (buffer !== null) found.set(buffer, !(hasViews(type) && i === buffers.length - 1));
    });
    children.forEach(visit);
    if (dictionary !== null) visit(dictionary);
  };
  visit(array);
  return found;
}

/** A memory location, in Arrow's terms. */
export interface Place {
  readonly type: number;
  readonly id: number;
}

const cpu: Place = { type: ARROW_DEVICE.CPU, id: -1 };

/** The place of a buffer. */
export function placeOfBuffer({ kind, device, stream }: MemoryBuffer): Place {
  if (kind === "pinned" && stream !== null) return { type: ARROW_DEVICE.CUDA_HOST, id: stream.device.ordinal };
  if (device === null) return cpu;
  return { type: kind === "managed" ? ARROW_DEVICE.CUDA_MANAGED : ARROW_DEVICE.CUDA, id: device.ordinal };
}

// law cdata/placeOf: order/refusals, order/reclaim, dlpack/host_consumers, sim/behaviours, arrow/release,
//   arrow/array, order/programs
/** The single place of all of an array's elements. */
function placeOf(buffers: ReadonlyMap<ArrayParts, boolean>): Place {
  let place: Place | null = null;
  for (const [array, matters] of buffers) {
    if (byteCount(array) === 0 || !matters) continue;
    const one = placeOfBuffer(array.buffer);
    place ??= one;
    if (place.type === one.type && place.id === one.id) continue;
    throw new ExchangeError(
      `Cannot export an Arrow array whose buffers are on devices ${place.type}:${place.id} and ` +
        `${one.type}:${one.id}: expected one place. Copy them there first.`,
    );
  }
  return place ?? cpu;
}

// law cdata/onHost: order/refusals, order/reclaim, dlpack/host_consumers, sim/behaviours, arrow/release, arrow/array,
//   order/programs, arrow/several_homes
/** Checks that buffers are in host memory, and waits for their contents: the C data interface has no event for that. */
export function onHost(buffers: Iterable<ArrayParts>): Place {
  const byHome = new Map<CudaStream | null, MemoryBuffer>();
  for (const { buffer } of buffers) {
    byHome.set(buffer.stream, buffer);
    if (!buffer.isHostAccessible) {
      throw new ExchangeError(
        "Cannot export device memory by the Arrow C data interface, which is for host memory. Use " +
          "__arrow_c_device_array__, or copy to host memory first.",
      );
    }
  }
  for (const buffer of byHome.values()) hostWaits(buffer);
  return cpu;
}
