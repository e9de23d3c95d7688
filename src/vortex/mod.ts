/**
 * Vortex: arrays that stay compressed in memory, read from files, messages and the descriptions that Vortex in Python
 * gives of its arrays.
 *
 * Whatever its source, files (`file/`), messages (`ipc.ts`) or another session's tuples (`bridge.ts`), an array becomes
 * a tree of nodes (`encoded_node.ts`) over bytes that `wire/` reads. A session (`session.ts`) maps ids to encodings:
 * `encodings/` has those close to Arrow's, `numeric/`, `strings/` and `compressed/` the others, and
 * `default_encodings.ts` lists them all. `open_nodes.ts` opens each node with its encoding, which checks everything but
 * the elements; `decode_context.ts` decodes it on first use, within limits, to one canonical form per kind of dtype
 * (`canonical.ts`), which `ops/` slices, concatenates and takes from, and which `arrow/` turns into an Arrow array over
 * the same memory. `device/` does the same for numbers on a GPU. The room knows the room `arrow/` and all rooms below
 * it, but no Python.
 *
 * @module
 */
export { fromVortexMetadata, type FromVortexMetadataOptions, type VortexMetadataSource } from "./bridge.ts";
export type {
  BoolArray,
  CanonicalArray,
  DecimalArray,
  DecodedArray,
  DictionaryArray,
  ExtensionArray,
  FixedSizeListArray,
  ListArray,
  NullArray,
  PrimitiveArray,
  RunEndArray,
  StructArray,
  VarBinViewArray,
} from "./canonical.ts";
export type { DecodeContext, Kept } from "./decode_context.ts";
export { type DTypeOf, showDType, type VortexDType } from "./dtype.ts";
export type { EncodedNode } from "./encoded_node.ts";
export type { VortexEncoding } from "./encoding.ts";
export { type Place, VortexError } from "./error.ts";
export { decodeVortexIpc, encodeVortexIpc, readVortexIpc } from "./ipc.ts";
export type { VortexLimits } from "./limits.ts";
export type { VortexMetadata, VortexMetadataBuffer } from "./metadata.ts";
export type { VortexReadOptions } from "./read_options.ts";
export type { PrimitiveValues, PType } from "./ptype.ts";
export { type VortexExtension, VortexSession, type VortexSessionOptions } from "./session.ts";
export { VortexArray, type VortexToArrowDeviceOptions, type VortexToArrowOptions } from "./vortex_array.ts";
export type { VortexColumn, VortexComparison, VortexFilter } from "./file/filter.ts";
export { HttpReader, type HttpReaderOptions } from "./file/http_reader.ts";
export type { ColumnValue, LiteralValue } from "./file/literal.ts";
export type { VortexReader, VortexSource } from "./file/reader.ts";
export type { VortexColumnStatistics } from "./file/statistics.ts";
export { openVortex, type OpenVortexOptions, VortexFile } from "./file/vortex_file.ts";
export { layoutLines, showEncodings, type VortexLayout } from "./file/describe.ts";
export type { VortexScanOptions } from "./file/scan.ts";
export type { EncodingTree } from "./wire/array_flatbuffer.ts";
export type { ColumnBounds } from "./file/prune.ts";
export type { ProtoMessage } from "./wire/protobuf.ts";
export type { Allocate, Bytes } from "./wire/source.ts";
