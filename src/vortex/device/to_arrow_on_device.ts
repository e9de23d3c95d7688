/**
 * Converts Vortex arrays to Arrow arrays on a device.
 *
 * @module
 */
import { ArrowArray } from "../../arrow/mod.ts";
import { type ArrowField, arrowField, type ArrowType, countSet, hasViews } from "../../cdata/mod.ts";
import type { CudaStream } from "../../device/mod.ts";
import type { MemoryBuffer } from "../../memory/mod.ts";
import { StridedMemoryView } from "../../view/mod.ts";
import { fieldOf } from "../arrow/types.ts";
import { toArrowArray } from "../arrow/to_arrow.ts";
import type { DecodeContext } from "../decode_context.ts";
import type { EncodedNode } from "../encoded_node.ts";
import { dictEncoding } from "../encodings/composed.ts";
import { extensionEncoding, structEncoding } from "../encodings/nested.ts";
import { runEndEncoding } from "../numeric/run_end.ts";
import { openNode } from "../open_nodes.ts";
import type { Bytes } from "../wire/source.ts";
import { DeviceDecoder } from "./device_decoder.ts";

// law vortex/toArrowOnDevice: vortex/device/arrow
/**
 * Decodes an array to an Arrow array on a stream's device, in stream order. Numbers, also in structs and extensions,
 * are decoded there; everything else, and what the context keeps encoded, is decoded on the host and uploaded.
 *
 * @returns an array whose `close` frees its memory
 * @throws {VortexError} if the data is invalid
 */
export function toArrowOnDevice(
  root: EncodedNode,
  name: string,
  context: DecodeContext,
  stream: CudaStream,
): ArrowArray {
  const decoder = new DeviceDecoder(context, stream);
  try {
    const array = new DeviceArrow(decoder, context).arrayOf(root, name);
    decoder.finish();
    return array;
  } catch (error) {
    decoder.abandon();
    throw error;
  }
}

/** Builds the arrays of one decode. Closing an array closes the arrays nested in it. */
class DeviceArrow {
  readonly #decoder: DeviceDecoder;
  readonly #context: DecodeContext;

  constructor(decoder: DeviceDecoder, context: DecodeContext) {
    this.#decoder = decoder;
    this.#context = context;
  }

  arrayOf(node: EncodedNode, name: string): ArrowArray {
    const { session, keep } = this.#context;
    const { encoding } = openNode(session, node);
    if (encoding === structEncoding) {
      const { dtype, fields, validity } = node.opened(structEncoding.open);
      const bits = this.#context.validity(validity);
      const children = fields.map((one, index) => this.arrayOf(one, dtype.names[index] ?? ""));
      const type: ArrowType = { kind: "struct", children: children.map(({ field }) => field) };
      return this.#array(node, arrowField(type, { name, nullable: dtype.nullable }), bits, [], children);
    }
    if (keep.dictionary && encoding === dictEncoding || keep.runEnd && encoding === runEndEncoding) {
      const array = this.#context.decodeKeeping(node);
      return this.#sent(toArrowArray(array, name, session, this.#context.allocator(node)), node);
    }
    return this.#decoded(node, fieldOf(node.dtype, name, session));
  }

  /** A fully decoded array, nothing of which stays encoded. */
  #decoded(node: EncodedNode, field: ArrowField): ArrowArray {
    const { session } = this.#context;
    const { encoding } = openNode(session, node);
    if (encoding === extensionEncoding && node.dtype.kind === "extension" && node.dtype.storage.kind === "primitive") {
      return this.#decoded(node.child(0, node.dtype.storage, node.length), field);
    }
    if (node.dtype.kind === "primitive") {
      const { words, validity } = this.#decoder.numbers(node);
      return this.#array(node, field, validity, [words], []);
    }
    const array = toArrowArray(this.#context.decode(node), field.name, session, this.#context.allocator(node));
    return this.#sent(array, node);
  }

  // law vortex/DeviceArrow.sent: vortex/device/arrow, vortex/device/decode
  /** Uploads a host array, but for the sizes of an array of views: the host reads those wherever the array is. */
  #sent(array: ArrowArray, node: EncodedNode): ArrowArray {
    const { field, length, offset, nullCount } = array;
    const sent = hasViews(field.type) ? array.buffers.slice(0, -1) : array.buffers;
    const sizes = array.buffers.slice(sent.length);
    const buffers = sent.map((view) => view === null ? null : this.#decoder.upload(bytesOf(view), node));
    const children = array.children.map((one) => this.#sent(one, node));
    const dictionary = array.dictionary === null ? null : this.#sent(array.dictionary, node);
    return new ArrowArray({
      ...{ field, length, offset, nullCount, children, dictionary },
      buffers: [...buffers.map(viewOf), ...sizes],
      onClose: closing(buffers, children, dictionary),
    });
  }

  #array(
    node: EncodedNode,
    field: ArrowField,
    validity: Bytes | null,
    words: readonly MemoryBuffer[],
    children: readonly ArrowArray[],
  ): ArrowArray {
    const { length } = node;
    const valid = validity === null ? length : countSet(validity, 0, length);
    const mask = validity === null || valid === length ? null : this.#decoder.upload(validity, node);
    const buffers = [mask, ...words];
    const parts = { field, length, nullCount: length - valid, children };
    return new ArrowArray({ ...parts, buffers: buffers.map(viewOf), onClose: closing(buffers, children, null) });
  }
}

function viewOf(buffer: MemoryBuffer | null): StridedMemoryView | null {
  return buffer === null ? null : StridedMemoryView.fromBuffer(buffer, { shape: [buffer.size], dtype: "uint8" });
}

/** The bytes of a view of host memory. */
function bytesOf(view: StridedMemoryView): Bytes {
  return view.buffer.bytes().subarray(view.offset, view.offset + view.nbytes);
}

function closing(
  buffers: readonly (MemoryBuffer | null)[],
  children: readonly ArrowArray[],
  dictionary: ArrowArray | null,
): () => void {
  return () => {
    for (const buffer of buffers) buffer?.close();
    for (const child of children) child.close();
    dictionary?.close();
  };
}
