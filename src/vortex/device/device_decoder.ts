/**
 * Decodes columns of numbers on a device: the encoded data is uploaded and decoded to words there.
 *
 * @module
 */
import type { DTypeOf } from "../dtype.ts";
import { inNode } from "../error.ts";
import { type CudaStream, isSameDevice, type Program, ProgramCache } from "../../device/mod.ts";
import type { MemoryBuffer } from "../../memory/mod.ts";
import { hostWaitsFor, orderStreams } from "../../order/mod.ts";
import { primitiveOf } from "../canonical.ts";
import type { DecodeContext } from "../decode_context.ts";
import { type EncodedNode, rawBufferOf } from "../encoded_node.ts";
import { constantEncoding, dictEncoding, sequenceEncoding } from "../encodings/composed.ts";
import { primitiveEncoding } from "../encodings/null_bool_primitive.ts";
import { alpEncoding } from "../numeric/alp.ts";
import { bitsOf, bytesOf, indexColumn } from "../numeric/columns.ts";
import { bitPackedEncoding, forEncoding, maxSteps, zigzagEncoding } from "../numeric/integers.ts";
import type { Step } from "../numeric/kernel.ts";
import type { NodePatches } from "../numeric/node_patches.ts";
import { checkRuns, repeatBits, runEndEncoding } from "../numeric/run_end.ts";
import type { Bits, Indices } from "../numeric/words.ts";
import { openNode } from "../open_nodes.ts";
import { readScalar } from "../wire/scalar.ts";
import type { Bytes } from "../wire/source.ts";
import {
  endsKernel,
  type NumberKernel,
  patchKernel,
  runKernel,
  runThreads,
  sequenceKernel,
  stepArguments,
  stepKernel,
  takeKernel,
  THREADS,
  unpackKernel,
  unpackThreads,
} from "./number_kernels.ts";

/** A column whose words are on a device. */
export interface DeviceNumbers {
  readonly dtype: DTypeOf<"primitive">;
  readonly length: number;
  /** The words; the column's owner closes them. */
  readonly words: MemoryBuffer;
  /** One bit per row, on the host; null if all rows are valid. */
  readonly validity: Bytes | null;
}

/** Words and their validity. */
type Words = Pick<DeviceNumbers, "words" | "validity">;

/** The limit on rows, as kernels count them in 32 bits: the last blocks must fit, too. */
const maxRows = 2 ** 31 - 2 ** 11;

/** The kernels: compiled by the driver once for each device, on demand, and closed with it. */
const programs = new ProgramCache<Program>();

/** One decode on one stream. */
export class DeviceDecoder {
  readonly #context: DecodeContext;
  readonly #stream: CudaStream;
  /** All memory of this decode that is not yet closed. */
  readonly #open = new Set<MemoryBuffer>();
  /** Words that the device sets to 1 if codes are out of range or runs are out of order, and what throws then. */
  readonly #wrong: { readonly word: MemoryBuffer; readonly fail: () => void }[] = [];

  /** @param stream runs all the work, and is the home stream of the results */
  constructor(context: DecodeContext, stream: CudaStream) {
    this.#context = context;
    this.#stream = stream;
  }

  // law vortex/device.numbers: vortex/device/decode
  /**
   * Decodes a node whose dtype is primitive. The host decodes and uploads what the device cannot decode.
   *
   * @throws {VortexError} if the data is invalid; codes are only known to be valid after `finish`
   */
  numbers(node: EncodedNode): DeviceNumbers {
    const dtype = primitiveOf(node.dtype);
    return { dtype, length: node.length, ...this.#column(node) };
  }

  /** Copies host bytes to the device. The caller closes the result. */
  upload(bytes: Bytes, node: EncodedNode): MemoryBuffer {
    const buffer = this.#allocate(bytes.length, node);
    if (bytes.length > 0) buffer.copyFrom(bytes, { stream: this.#stream });
    return buffer;
  }

  /**
   * Waits for the device's checks of codes and runs, if there are any.
   *
   * @throws {VortexError} if a check failed, as for a code that is out of range
   */
  finish(): void {
    for (const { word, fail } of this.#wrong.splice(0)) {
      const found = new Uint32Array(1);
      word.copyTo(found, { stream: this.#stream });
      hostWaitsFor(this.#stream);
      this.#close(word);
      if (found[0] !== 0) fail();
    }
    this.#open.clear(); // the remaining buffers belong to the results
  }

  /** Closes everything, results included, after an error. */
  abandon(): void {
    for (const buffer of this.#open) buffer.close();
    this.#open.clear();
  }

  #column(node: EncodedNode): Words {
    const { encoding } = openNode(this.#context.session, node);
    if (node.length > 0 && node.length < maxRows) {
      switch (encoding) {
        case forEncoding:
        case zigzagEncoding:
        case bitPackedEncoding:
          return this.#chain(node, []);
        case alpEncoding: {
          const { bits, step, encoded, patches } = node.opened(alpEncoding.open);
          const column = this.#chain(encoded, [step]);
          this.#patch(column.words, bits, node, patches, []);
          return column;
        }
        case sequenceEncoding: {
          const { base, multiplier } = node.opened(sequenceEncoding.open);
          return { words: this.#sequence(node, base, multiplier), validity: null };
        }
        case constantEncoding: {
          const scalar = readScalar(node.buffer(0), node.dtype, node.path);
          if (typeof scalar === "bigint") return { words: this.#sequence(node, scalar, 0n), validity: null };
          break;
        }
        case primitiveEncoding: {
          const { validity } = node.opened(primitiveEncoding.open);
          const words = this.#allocate(node.length * bitsOf(primitiveOf(node.dtype).ptype) / 8, node);
          const raw = rawBufferOf(node, 0);
          if (raw instanceof Uint8Array) words.copyFrom(raw, { stream: this.#stream });
          else this.#using(raw.memory, (memory) => words.copyFrom(memory, { stream: this.#stream }));
          return { words, validity: this.#context.validity(validity) };
        }
        case dictEncoding: {
          const taken = this.#take(node);
          if (taken !== null) return taken;
          break;
        }
        case runEndEncoding:
          if (node.opened(runEndEncoding.open).offset + node.length < 2 ** 32) return this.#runs(node);
      }
    }
    const array = this.#context.primitive(node);
    return { words: this.upload(bytesOf(array), node), validity: array.validity };
  }

  /** Decodes words and applies steps to them, in one kernel. */
  #chain(node: EncodedNode, steps: readonly Step[]): Words {
    const { encoding } = openNode(this.#context.session, node);
    if (steps.length < maxSteps) {
      for (const one of [forEncoding, zigzagEncoding]) {
        if (encoding !== one) continue;
        const { child, step } = node.opened(one.open);
        return this.#chain(child, [step, ...steps]);
      }
    }
    const bits = bitsOf(primitiveOf(node.dtype).ptype);
    if (encoding !== bitPackedEncoding) {
      const column = this.#column(node);
      if (steps.length > 0) this.#step(column.words, bits, steps, node.length);
      return column;
    }
    const { width, offset, patches, validity } = node.opened(bitPackedEncoding.open);
    if (typeof width !== "number") throw new TypeError("The widths are not known yet"); // only in .v2
    const words = this.#allocate(node.length * bits / 8, node);
    const raw = rawBufferOf(node, 0);
    const unpack = ({ ptr }: MemoryBuffer) => this.#unpack(words, ptr, node, { bits, width, offset, steps });
    const device = raw instanceof Uint8Array || raw.size === 0 ? null : raw.memory.device;
    if (!(raw instanceof Uint8Array) && device !== null && isSameDevice(device, this.#stream.device)) {
      this.#using(raw.memory, unpack); // in place
    } else {
      const packed = this.upload(node.buffer(0), node);
      unpack(packed);
      this.#close(packed);
    }
    this.#patch(words, bits, node, patches, steps);
    return { words, validity: this.#context.validity(validity) };
  }

  #unpack(
    words: MemoryBuffer,
    from: bigint,
    { length }: EncodedNode,
    { bits, width, offset, steps }: {
      readonly bits: Bits;
      readonly width: number;
      readonly offset: number;
      readonly steps: readonly Step[];
    },
  ): void {
    const parameters = [words.ptr, from, BigInt(offset), BigInt(length), ...stepArguments(bits, steps)];
    this.#launch(unpackKernel(bits, width, steps), unpackThreads(bits, offset + length), parameters);
  }

  #step(words: MemoryBuffer, bits: Bits, steps: readonly Step[], length: number): void {
    this.#launch(stepKernel(bits, steps), length, [words.ptr, BigInt(length), ...stepArguments(bits, steps)]);
  }

  #sequence(node: EncodedNode, base: bigint, step: bigint): MemoryBuffer {
    const bits = bitsOf(primitiveOf(node.dtype).ptype);
    const words = this.#allocate(node.length * bits / 8, node);
    const [first, by] = [BigInt.asUintN(64, base), BigInt.asUintN(64, step)];
    this.#launch(sequenceKernel(bits), node.length, [words.ptr, BigInt(node.length), first, by]);
    return words;
  }

  /** Patches are few: the host checks their rows, and picks the last patch of each row. */
  #patch(
    words: MemoryBuffer,
    bits: Bits,
    node: EncodedNode,
    patches: NodePatches | null,
    steps: readonly Step[],
  ): void {
    if (patches === null) return;
    const indices = indexColumn(patches.indices, this.#context);
    const last = new Map<number, number>();
    for (let patch = 0; patch < indices.length; patch++) {
      const row = (indices[patch] ?? 0) - patches.offset;
      if (!(row >= 0 && row < node.length)) {
        node.fail(`Patch ${patch} is for row ${row}, expected 0 to ${node.length - 1}`);
      }
      last.set(row, patch);
    }
    const all = bytesOf(this.#context.primitive(patches.values));
    const bytes = bits / 8;
    const values = this.#context.allocate(last.size * bytes, node);
    [...last.values()].forEach((patch, index) => {
      values.set(all.subarray(patch * bytes, (patch + 1) * bytes), index * bytes);
    });
    const rows = this.upload(new Uint8Array(Uint32Array.from(last.keys()).buffer), node);
    const put = this.upload(values, node);
    if (steps.length > 0) this.#step(put, bits, steps, last.size);
    this.#launch(patchKernel(bits), last.size, [words.ptr, rows.ptr, put.ptr, BigInt(last.size)]);
    this.#close(rows);
    this.#close(put);
  }

  /** The rows of a dictionary; null if the host has to decode them. */
  #take(node: EncodedNode): Words | null {
    const { codes, values } = node.opened(dictEncoding.open);
    const codeBits = bitsOf(primitiveOf(codes.dtype).ptype);
    if (codeBits === 64 || values.length === 0 || values.length >= maxRows) return null;
    const entries = this.#column(values);
    if (entries.validity !== null) {
      this.#close(entries.words);
      return null;
    }
    const { words: indices, validity } = this.#column(codes);
    const bits = bitsOf(primitiveOf(node.dtype).ptype);
    const words = this.#allocate(node.length * bits / 8, node);
    const wrong = this.upload(new Uint8Array(4), node);
    const mask = validity === null ? null : this.upload(validity, node);
    const [count, known] = [BigInt(node.length), BigInt(values.length)];
    const parameters = [words.ptr, indices.ptr, entries.words.ptr, count, known, wrong.ptr];
    const kernel = takeKernel(bits, codeBits, mask !== null);
    this.#launch(kernel, node.length, mask === null ? parameters : [...parameters, mask.ptr]);
    for (const buffer of [entries.words, indices, mask]) if (buffer !== null) this.#close(buffer);
    if (this.#areRight(codes, values.length)) this.#close(wrong);
    else this.#wrong.push({ word: wrong, fail: () => codes.fail("A code has no value") });
    return { words, validity };
  }

  /** Whether codes have too few bits to be out of range: then the host need not wait for the device. */
  #areRight(codes: EncodedNode, entries: number): boolean {
    if (openNode(this.#context.session, codes).encoding !== bitPackedEncoding) return false;
    const { width, patches } = codes.opened(bitPackedEncoding.open);
    return typeof width === "number" && patches === null && 2 ** width <= entries;
  }

  #runs(node: EncodedNode): Words {
    const { ends: endsNode, values: valuesNode, offset } = node.opened(runEndEncoding.open);
    const { length } = node;
    const values = this.#column(valuesNode);
    const bits = bitsOf(primitiveOf(node.dtype).ptype);
    const words = this.#allocate(length * bits / 8, node);
    const endBits = bitsOf(primitiveOf(endsNode.dtype).ptype);
    // Validity is on the host, and needs the ends there.
    const isOnDevice = values.validity === null && endBits !== 64 && endsNode.length > 0;
    const ends = isOnDevice ? null : this.#checkedEnds(node, endsNode, offset);
    const sent = ends === null ? this.#endsOnDevice(node, endsNode, endBits, offset) : this.#sendEnds(ends, node);
    const counts = [BigInt(length), BigInt(endsNode.length), BigInt(offset)];
    this.#launch(runKernel(bits), runThreads(length), [words.ptr, sent.ptr, values.words.ptr, ...counts]);
    this.#close(sent);
    this.#close(values.words);
    const { validity } = values;
    if (validity === null || ends === null) return { words, validity: null };
    return { words, validity: repeatBits(validity, 0, ends, offset, length, this.#context.allocator(node)) };
  }

  #checkedEnds(node: EncodedNode, endsNode: EncodedNode, offset: number): Indices {
    const ends = indexColumn(endsNode, this.#context);
    inNode(node, () => checkRuns(ends, node.length, offset));
    return ends;
  }

  #sendEnds(ends: Indices, node: EncodedNode): MemoryBuffer {
    const least = this.#context.allocate(4 * ends.length, node);
    // An end that overflows 32 bits is past the last row anyway.
    new Uint32Array(least.buffer, 0, ends.length).set(ends.map((end) => Math.min(end, 0xffff_ffff)));
    return this.upload(least, node);
  }

  /** Decodes and checks ends on the device; the host reads them only to report what is wrong. */
  #endsOnDevice(node: EncodedNode, endsNode: EncodedNode, endBits: Bits, offset: number): MemoryBuffer {
    if (endBits === 64) throw new TypeError("Ends of 64 bits are the host's");
    const { words: given } = this.#column(endsNode);
    const sent = this.#allocate(4 * endsNode.length, node);
    const wrong = this.upload(new Uint8Array(4), node);
    const counts = [BigInt(endsNode.length), BigInt(offset), BigInt(offset + node.length)];
    this.#launch(endsKernel(endBits), endsNode.length, [sent.ptr, given.ptr, ...counts, wrong.ptr]);
    this.#close(given);
    this.#wrong.push({ word: wrong, fail: () => void this.#checkedEnds(node, endsNode, offset) });
    return sent;
  }

  /** Enqueues work that uses memory handed over by its owner, ordered with that memory's home stream. */
  #using(memory: MemoryBuffer, enqueue: (memory: MemoryBuffer) => void): void {
    orderStreams(memory.stream, this.#stream);
    enqueue(memory);
    orderStreams(this.#stream, memory.stream);
    memory.pinUntilPassed(this.#stream);
  }

  #launch(kernel: NumberKernel, threads: number, parameters: readonly bigint[]): void {
    const { device } = this.#stream;
    const program = programs.get(device, kernel.key, () => device.loadPtx(kernel.ptx()));
    program.kernel("decode").launch(this.#stream, Math.ceil(threads / THREADS), THREADS, parameters);
  }

  #allocate(bytes: number, node: EncodedNode): MemoryBuffer {
    this.#context.charge(bytes, node);
    const buffer = this.#stream.device.memory.allocate(bytes, { stream: this.#stream });
    this.#open.add(buffer);
    return buffer;
  }

  /** Frees memory in stream order, after the kernels that use it. */
  #close(buffer: MemoryBuffer): void {
    this.#open.delete(buffer);
    buffer.close();
  }
}
