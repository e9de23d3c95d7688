/**
 * Validation of an array: whether its parts match its type.
 *
 * @module
 */
import { type ArrowNode, sizeOf } from "./array_node.ts";
import { hostBytes } from "./bits.ts";
import { bufferCount, hasViews, needsOf, type Probe, secondBuffer } from "./buffers.ts";
import { equalTypes } from "./field.ts";
import { type ArrowType, childrenOf } from "./type.ts";
import { ExchangeError } from "../order/mod.ts";

// law cdata/checkNode: view/arrow
/**
 * Checks an array's parts, but not those of its children. Offsets in device memory, which the host cannot read, are
 * skipped.
 *
 * @throws {ExchangeError} if they do not match its type
 */
export function checkNode(array: ArrowNode): void {
  const { type, length, offset, buffers, children, dictionary, knownNullCount: nullCount } = array;
  const refuse = (why: string): never => {
    throw new ExchangeError(`Cannot make an Arrow array of ${type.kind}: ${why}`);
  };
  for (const [name, value] of Object.entries({ length, offset, end: length + offset })) {
    if (!Number.isSafeInteger(value) || value < 0) refuse(`its ${name} is ${value}. Expected 0 to 2^53 - 1`);
  }
  if (!Number.isInteger(nullCount) || nullCount < -1 || nullCount > length) {
    refuse(`its null count is ${nullCount}. Expected -1 to ${length}`);
  }
  const count = bufferCount(type);
  if (hasViews(type) ? buffers.length < count : buffers.length !== count) {
    refuse(`it has ${buffers.length} buffers. Expected ${hasViews(type) ? "at least " : ""}${count}`);
  }
  if (nullCount > 0 && count > 0 && (buffers[0] ?? null) === null) {
    refuse(`${nullCount} of its elements are null and it has no validity bitmap`);
  }
  const fields = childrenOf(type);
  if (children.length !== fields.length || fields.some((child, i) => !sameType(child.type, children[i]))) {
    refuse("its children do not match its type");
  }
  if ((type.kind === "dictionary") !== (dictionary !== null)) {
    refuse(dictionary === null ? "it has no dictionary" : "it has a dictionary and no indices");
  }
  if (type.kind === "dictionary" && !sameType(type.values.type, dictionary)) refuse("its dictionary has another type");
  if (type.kind === "run_end_encoded" && (children[0]?.length ?? 0) > (children[1]?.length ?? 0)) {
    refuse(`it has ${children[0]?.length} run ends and ${children[1]?.length} values`);
  }
  checkSizes(array, refuse);
}

/** Checks an array, its children and its dictionary. See {@linkcode checkNode}. */
export function checkTree(array: ArrowNode): void {
  for (const child of array.children) checkTree(child);
  if (array.dictionary !== null) checkTree(array.dictionary);
  checkNode(array);
}

function sameType(type: ArrowType, array: ArrowNode | null | undefined): boolean {
  return array !== null && array !== undefined && equalTypes(type, array.type);
}

// law cdata/checkSizes: view/arrow, arrow/place
function checkSizes(array: ArrowNode, refuse: (why: string) => never): void {
  const { type, buffers, children } = array;
  let needs: ReturnType<typeof needsOf>;
  try {
    needs = needsOf(type, array, buffers.length, probeOf(array));
  } catch (error) {
    if (error instanceof RangeError) return refuse(error.message);
    throw error;
  }
  needs.bytes.forEach((bytes, i) => {
    const buffer = buffers[i] ?? null;
    const size = sizeOf(buffer);
    if (size < bytes && !(i === 0 && buffer === null)) {
      refuse(`buffer ${i} has ${size} bytes. Expected at least ${bytes}`);
    }
    if (buffer !== null && (buffer.dtype.name !== "uint8" || !buffer.layout.isContiguousC)) {
      refuse(`buffer ${i} is a view of ${buffer.dtype.name}. Expected bytes without gaps: uint8`);
    }
  });
  const sizes = hasViews(type) ? buffers.at(-1) ?? null : null;
  if (sizes !== null && !sizes.buffer.isHostAccessible) {
    refuse(
      `buffer ${buffers.length - 1}, the sizes of its data, is in device memory. Expected it in host memory, where ` +
        "consumers read it wherever the array is",
    );
  }
  for (const child of children) {
    if (child.length < needs.childLength) {
      refuse(`a child has ${child.length} elements. Expected at least ${needs.childLength}`);
    }
  }
}

function probeOf({ buffers }: ArrowNode): Probe {
  return {
    offset(index, bits) {
      const buffer = buffers[secondBuffer] ?? null;
      if (buffer === null) throw new RangeError("it has no offsets");
      if (buffer.buffer.device !== null) return 0n; // checked when it was imported, or not at all
      const bytes = hostBytes(buffer);
      const at = index * (bits / 8);
      if (at + bits / 8 > bytes.byteLength) {
        throw new RangeError(`its offsets have ${bytes.byteLength} bytes. Expected at least ${at + bits / 8}`);
      }
      return bits === 32 ? BigInt(bytes.getInt32(at, true)) : bytes.getBigInt64(at, true);
    },
    dataSizes: () => buffers.slice(2, -1).map((buffer) => BigInt(sizeOf(buffer))),
  };
}
