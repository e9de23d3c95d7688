/**
 * Decoding Vortex arrays on a GPU beside a copy of as many bytes there, in one run on one machine. Prints Markdown.
 *
 * Claim: each decodes at half the rate of the copy or more.
 *
 * ```sh
 * deno run -A bench/vortex_device.ts [rows]
 * bun bench/vortex_device.ts [rows]
 * ```
 *
 * The encoded bytes are already on the device, as another library would pass them; the time is that of `toArrowDevice`,
 * the release of its result, and the wait for both, several times in a row. Measurements alternate in rounds, of which
 * the fastest counts.
 */
import process from "node:process";
import { Cuda, type CudaStream, DeviceMemoryResource, type MemoryBuffer } from "../mod.ts";
import { fromVortexMetadata, type VortexArray, type VortexDType, type VortexMetadata } from "../src/public/vortex.ts";
import { primitiveDType } from "../src/vortex/dtype.ts";
import { type PType, ptypes, widthOf } from "../src/vortex/ptype.ts";
import { writeDType } from "../src/vortex/wire/dtype_flatbuffer.ts";
import { type ProtoField, protoOf } from "../src/vortex/wire/proto_writer.ts";

const rows = Number(process.argv[2] ?? 1e8);
const ROUNDS = 5;
/** Decodes per round. */
const TIMES = 10;
/** The minimum rate, as a fraction of the copy's. */
const least = 0.5;

using cuda = Cuda.open();
const device = cuda.device(0);
using stream: CudaStream = device.createStream({ nonBlocking: true });
const pool = new DeviceMemoryResource(device);

/** Copies bytes to the device; their pattern does not compress. */
function onDevice(bytes: Uint8Array<ArrayBuffer>): MemoryBuffer {
  const buffer = pool.allocate(bytes.length, { stream });
  buffer.copyFrom(bytes, { stream });
  stream.synchronize();
  return buffer;
}

function noise(bytes: number): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(Math.ceil(bytes / 4));
  let state = 1;
  for (let i = 0; i < words.length; i++) {
    state = Math.imul(state, 1_664_525) + 1_013_904_223 | 0;
    words[i] = state ^ state >>> 15;
  }
  return new Uint8Array(words.buffer, 0, bytes);
}

function node(
  id: string,
  dtype: VortexDType,
  length: number,
  fields: readonly ProtoField[],
  buffers: readonly (MemoryBuffer | Uint8Array)[],
  children: readonly VortexMetadata[] = [],
): VortexMetadata {
  return [id, writeDType(dtype), length, protoOf(fields), buffers, children];
}

const code = (ptype: PType): number => ptypes.indexOf(ptype);

/** Numbers bitpacked to `width` bits. */
function bitpacked(ptype: PType, width: number, length: number): VortexMetadata {
  const packed = onDevice(noise(128 * width * Math.ceil(length / 1024)));
  return node("fastlanes.bitpacked", primitiveDType(ptype), length, [[1, width]], [packed]);
}

function numbers(ptype: PType, values: ArrayBufferView<ArrayBuffer>, length: number): VortexMetadata {
  const bytes = onDevice(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  return node("vortex.primitive", primitiveDType(ptype), length, [], [bytes]);
}

const seven = protoOf([[3, 14]]); // zigzag
const shifted = (ptype: PType, child: VortexMetadata): VortexMetadata => [
  "fastlanes.for",
  writeDType(primitiveDType(ptype)),
  rows,
  seven,
  [],
  [child],
];

const runs = Math.ceil(rows / 50);

const arrays: Readonly<Record<string, { readonly ptype: PType; readonly tree: () => VortexMetadata }>> = {
  "primitive u32": { ptype: "u32", tree: () => numbers("u32", noise(4 * rows), rows) },
  "bitpacked u32, 10 bits": { ptype: "u32", tree: () => bitpacked("u32", 10, rows) },
  "bitpacked + for i32, 10 bits": { ptype: "i32", tree: () => shifted("i32", bitpacked("i32", 10, rows)) },
  "bitpacked + for i64, 20 bits": { ptype: "i64", tree: () => shifted("i64", bitpacked("i64", 20, rows)) },
  "zigzag i32 of bitpacked, 10 bits": {
    ptype: "i32",
    tree: () => node("vortex.zigzag", primitiveDType("i32"), rows, [], [], [bitpacked("u32", 10, rows)]),
  },
  "alp f64 of bitpacked + for": {
    ptype: "f64",
    tree: () => {
      const fields: ProtoField[] = [[1, 14], [2, 12]];
      return node("vortex.alp", primitiveDType("f64"), rows, fields, [], [shifted("i64", bitpacked("i64", 20, rows))]);
    },
  },
  "dict f64, codes of 10 bits": {
    ptype: "f64",
    tree: () => {
      const fields: ProtoField[] = [[1, 1024], [2, code("u16")]];
      const values = numbers("f64", Float64Array.from({ length: 1024 }, (_, i) => i / 3), 1024);
      return node("vortex.dict", primitiveDType("f64"), rows, fields, [], [bitpacked("u16", 10, rows), values]);
    },
  },
  "runend i64, runs of 50": {
    ptype: "i64",
    tree: () => {
      const ends = Uint32Array.from({ length: runs }, (_, i) => Math.min(rows, 50 * (i + 1)));
      const fields: ProtoField[] = [[1, code("u32")], [2, runs]];
      const children = [numbers("u32", ends, runs), numbers("i64", noise(8 * runs), runs)];
      return node("vortex.runend", primitiveDType("i64"), rows, fields, [], children);
    },
  },
  "sequence i64": {
    ptype: "i64",
    tree: () => node("vortex.sequence", primitiveDType("i64"), rows, [[1, seven], [2, seven]], []),
  },
  "constant i64": { ptype: "i64", tree: () => node("vortex.constant", primitiveDType("i64"), rows, [], [seven]) },
};

/** Seconds per call, of several in a row. */
function timed(act: () => void): number {
  stream.synchronize();
  const start = performance.now();
  for (let i = 0; i < TIMES; i++) act();
  stream.synchronize();
  return (performance.now() - start) / 1000 / TIMES;
}

console.log(`| ${rows} rows | decoded | a copy | ratio | goal |\n|---|--:|--:|--:|---|`);
for (const [name, { ptype, tree }] of Object.entries(arrays)) {
  const bytes = rows * widthOf(ptype);
  using from = pool.allocate(bytes, { stream });
  using to = pool.allocate(bytes, { stream });
  const array: VortexArray = fromVortexMetadata(tree(), { stream });
  const decode = () => array.toArrowDevice({ stream }).close();
  const copy = () => from.copyTo(to, { stream });
  decode();
  copy();
  let [decoded, copied] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    decoded = Math.min(decoded, timed(decode));
    copied = Math.min(copied, timed(copy));
  }
  const ratio = copied / decoded;
  const rate = (seconds: number) => `${(bytes / seconds / 1e9).toFixed(0)} GB/s`;
  const verdict = ratio >= least ? "met" : "MISSED";
  console.log(`| ${name} | ${rate(decoded)} | ${rate(copied)} | ${ratio.toFixed(2)} | ${least} x: ${verdict} |`);
  array.close();
}
console.log(`\n${process.versions["bun"] === undefined ? "Deno" : "Bun"}, ${device.name}`);
