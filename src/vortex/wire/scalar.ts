/**
 * Single values on the wire: a ScalarValue message, which a dtype interprets.
 *
 * @module
 */
import { decimalWidth, entriesOf, showDType, type VortexDType } from "../dtype.ts";
import { isSigned, type PType, widthOf } from "../ptype.ts";
import { ProtoMessage } from "./protobuf.ts";
import { type Bytes, textOf } from "./source.ts";

/**
 * A value of a dtype:
 *
 * | dtype | value |
 * |---|---|
 * | any | `null` if it is null |
 * | bool | boolean |
 * | integers, decimals | bigint; for decimals, without their scale |
 * | floats | bigint: the bits, so that a NaN keeps them |
 * | utf8, binary | bytes |
 * | list, fixed-size list, struct | values of the elements or fields |
 * | map | entries, each a pair of values |
 * | extension | a value of its storage |
 */
export type VortexScalar = null | boolean | bigint | Bytes | readonly VortexScalar[];

/**
 * Reads a value.
 *
 * @param path the node that the value belongs to, for errors
 * @param depth how deeply values may be nested in it
 * @throws {VortexError} if it is not a value of the dtype
 */
export function readScalar(bytes: Bytes, dtype: VortexDType, path: string, depth = 64): VortexScalar {
  return scalarOf(new ProtoMessage(bytes, path, "scalar"), dtype, path, depth);
}

/** Reads a value from a parsed message. */
export function scalarOf(message: ProtoMessage, dtype: VortexDType, path: string, depth = 64): VortexScalar {
  if (depth === 0) message.fail("it is nested more deeply than the limit allows");
  const kind = message.fields.at(-1) ?? message.fail("missing kind: it has no value");
  if (kind === 1) {
    message.varint(1);
    return dtype.nullable ? null : message.fail(`it is null, but ${showDType(dtype)} is not nullable`);
  }
  const wrong = (): never => message.fail(`a value of kind ${kind} does not match ${showDType(dtype)}`);
  switch (dtype.kind) {
    case "bool":
      return kind === 2 ? message.bool(2) ?? wrong() : wrong();
    case "primitive":
      return numberOf(message, kind, dtype.ptype) ?? wrong();
    case "decimal": {
      const bytes = kind === 8 ? message.bytes(8) ?? wrong() : wrong();
      if (![1, 2, 4, 8, 16, 32].includes(bytes.length)) message.fail(`a decimal has ${bytes.length} bytes`);
      const value = signedOf(bytes);
      if (magnitude(value) >= 10n ** BigInt(dtype.precision)) {
        message.fail(`${value} has more digits than ${showDType(dtype)}`);
      }
      return value;
    }
    case "utf8": {
      const bytes = kind === 7 ? message.bytes(7) ?? wrong() : wrong();
      return textOf(bytes) === null ? message.fail("the text is not UTF-8") : bytes;
    }
    case "binary":
      return kind === 8 ? message.bytes(8) ?? wrong() : wrong();
    case "extension":
      return scalarOf(message, dtype.storage, path, depth - 1);
    case "list":
      return partsOf(message, kind, path).map((part) => readScalar(part, dtype.element, path, depth - 1));
    case "fixedSizeList": {
      const parts = partsOf(message, kind, path);
      if (parts.length !== dtype.size) message.fail(`it has ${parts.length} elements. Expected ${dtype.size}`);
      return parts.map((part) => readScalar(part, dtype.element, path, depth - 1));
    }
    case "map": {
      const entries = entriesOf(dtype);
      return partsOf(message, kind, path).map((part) => readScalar(part, entries, path, depth - 1));
    }
    case "struct": {
      const parts = partsOf(message, kind, path);
      if (parts.length !== dtype.fields.length) {
        message.fail(`it has ${parts.length} fields. Expected ${dtype.fields.length}`);
      }
      return dtype.fields.map((field, i) => readScalar(parts[i] ?? wrong(), field, path, depth - 1));
    }
    default:
      return wrong();
  }
}

function partsOf(message: ProtoMessage, kind: number, path: string): Bytes[] {
  const list = kind === 9 ? message.bytes(9) : null;
  if (list === null) return message.fail(`its kind is ${kind}. Expected a list of values`);
  return new ProtoMessage(list, path, "scalar").everyBytes(1);
}

/** A number of a ptype; null if the ptype cannot come as this kind. */
function numberOf(message: ProtoMessage, kind: number, ptype: PType): bigint | null {
  const bits = 8 * widthOf(ptype);
  switch (ptype) {
    case "f16":
      return kind === 10 || kind === 4 ? fitting(message, BigInt(message.varint(kind) ?? 0), 0n, 0xffffn) : null;
    case "f32":
      return kind === 5 ? BigInt(message.fixed32(5) ?? 0) : null;
    case "f64":
      return kind === 6 ? message.fixed64(6) : null;
    default: {
      if (kind !== 3 && kind !== 4) return null;
      const raw = BigInt(message.varint(kind) ?? 0);
      const value = kind === 3 ? (raw >> 1n) ^ -(raw & 1n) : raw;
      const least = isSigned(ptype) ? -(1n << BigInt(bits - 1)) : 0n;
      return fitting(message, value, least, least + (1n << BigInt(bits)) - 1n);
    }
  }
}

function fitting(message: ProtoMessage, value: bigint, least: bigint, most: bigint): bigint {
  if (value >= least && value <= most) return value;
  return message.fail(`the number is ${value}. Expected ${least} to ${most}`);
}

function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value;
}

/** A signed integer, of any number of bytes. */
export function signedOf(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = value << 8n | BigInt(bytes[i] ?? 0);
  return BigInt.asIntN(8 * bytes.length, value);
}

/**
 * A non-null value in its stored form: numbers and decimals in as many bytes as an element of their arrays, text and
 * binary unchanged.
 *
 * @throws {TypeError} if it is not a value of the dtype
 */
export function scalarBytes(dtype: VortexDType, scalar: VortexScalar): Bytes {
  if (scalar instanceof Uint8Array) return scalar;
  if (typeof scalar !== "bigint") throw new TypeError(`Expected a value of ${showDType(dtype)}, got ${typeof scalar}`);
  const width = dtype.kind === "primitive"
    ? widthOf(dtype.ptype)
    : dtype.kind === "decimal"
    ? decimalWidth(dtype.precision)
    : 0;
  const bytes = new Uint8Array(width);
  let rest = scalar;
  for (let i = 0; i < width; i++, rest >>= 8n) bytes[i] = Number(rest & 0xffn);
  return bytes;
}
