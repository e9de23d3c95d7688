/**
 * Arrow arrays as the JSON of Arrow's integration tests: the model's types and values, without their buffers.
 *
 * @module
 */
import { decimalOf, filler, hasKeys, indexFor, integerOf, keyOf, type Model, type Value } from "./arrow_model.ts";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const units: Readonly<Record<string, string>> = {
  s: "SECOND",
  m: "MILLISECOND",
  u: "MICROSECOND",
  n: "NANOSECOND",
};

/** Types identified by their format alone. */
const named: Readonly<Record<string, Json>> = {
  n: { name: "null" },
  b: { name: "bool" },
  f: { name: "floatingpoint", precision: "SINGLE" },
  g: { name: "floatingpoint", precision: "DOUBLE" },
  u: { name: "utf8" },
  U: { name: "largeutf8" },
  z: { name: "binary" },
  Z: { name: "largebinary" },
  tdD: { name: "date", unit: "DAY" },
  tdm: { name: "date", unit: "MILLISECOND" },
  tiM: { name: "interval", unit: "YEAR_MONTH" },
  tiD: { name: "interval", unit: "DAY_TIME" },
  tin: { name: "interval", unit: "MONTH_DAY_NANO" },
  "+l": { name: "list" },
  "+L": { name: "largelist" },
  "+s": { name: "struct" },
};

/**
 * Whether the integration tests can express a type: they have no views of text or lists and no dictionaries of
 * dictionaries. nanoarrow writes half floats as single, and refuses widths of 0.
 */
export function isSayable(model: Model): boolean {
  const { format, children, dictionary, metadata } = model;
  return hasKeys(model) && !/^(e|\+?v.|\+?w:0)$/.test(format) &&
    new Set(metadata.map(([key]) => key)).size === metadata.length &&
    children.every(isSayable) && (dictionary === null || (isSayable(dictionary) && dictionary.dictionary === null));
}

/** One table: a struct's fields, one batch of rows, and the dictionaries of both. */
export class JsonTable {
  readonly #dictionaries: Json[] = [];
  #ids = 0;

  /** The file's contents. @param model a struct */
  text(model: Model, values: readonly Value[]): string {
    const schema = { fields: model.children.map((child) => this.#field(child)), metadata: metadataOf(model) };
    this.#ids = 0; // the columns come in the order of their fields
    const columns = model.children.map((child) => this.#column(child, values.map((value) => part(value, child.name))));
    return JSON.stringify({ schema, batches: [{ count: values.length, columns }], dictionaries: this.#dictionaries });
  }

  #field(model: Model): Json {
    const { name, nullable, children, dictionary } = model;
    if (dictionary === null) {
      const fields = children.map((child) => this.#field(child));
      return { name, nullable, type: typeOf(model), children: fields, metadata: metadataOf(model) };
    }
    const id = this.#ids++;
    const values = this.#field(dictionary) as { [key: string]: Json }; // as every field is
    const index = { id, indexType: typeOf({ ...model, dictionary: null }), isOrdered: (model.flags & 1) !== 0 };
    return { ...values, name, nullable, metadata: metadataOf(model), dictionary: index };
  }

  #column(model: Model, slots: readonly Value[]): Json {
    const { name, format, children, dictionary } = model;
    if (dictionary !== null) return this.#encoded(model, dictionary, slots);
    const head = { name, count: slots.length };
    if (format === "n") return head;
    const valid = { ...head, VALIDITY: slots.map((slot) => slot === null ? 0 : 1) };
    const [child] = children;
    if (/^\+[lLm]$/.test(format) && child !== undefined) {
      const lists = slots.map((slot) => slot === null ? [] : elementsOf(format, child, slot));
      let end = 0;
      const offsets = [0, ...lists.map(({ length }) => end += length)];
      const OFFSET = offsets.map((offset) => format === "+L" ? String(offset) : offset);
      return { ...valid, OFFSET, children: [this.#column(child, lists.flat())] };
    }
    const filled = slots.map((slot) => slot ?? filler(model));
    if (format === "+s") {
      return {
        ...valid,
        children: children.map((one) => this.#column(one, filled.map((slot) => part(slot, one.name)))),
      };
    }
    if (format.startsWith("+w") && child !== undefined) {
      return { ...valid, children: [this.#column(child, filled.flatMap((slot) => slot as Value[]))] };
    }
    const DATA = filled.map((slot) => dataOf(model, slot));
    if (!/^[uUzZ]$/.test(format)) return { ...valid, DATA };
    let end = 0;
    const offsets = [0, ...filled.map((slot) => end += bytesOf(slot).length)];
    return { ...valid, OFFSET: offsets.map((offset) => /[UZ]/.test(format) ? String(offset) : offset), DATA };
  }

  /** Indices into a dictionary of unique entries, in order of first use. */
  #encoded(model: Model, dictionary: Model, slots: readonly Value[]): Json {
    const id = this.#ids++;
    const entries = new Map(slots.map((slot) => [keyOf(slot), slot]));
    const keys = [...entries.keys()];
    const column = this.#column(dictionary, [...entries.values()]);
    this.#dictionaries.push({ id, data: { count: entries.size, columns: [column] } });
    const indices = slots.map((slot) => indexFor(model.format, keys.indexOf(keyOf(slot))));
    return this.#column({ ...model, dictionary: null }, indices);
  }
}

function metadataOf({ metadata }: Model): Json {
  return metadata.map(([key, value]) => ({ key, value }));
}

function part(value: Value, name: string): Value {
  return (value as { [name: string]: Value })[name] ?? null; // a value of a struct, which the caller has
}

function elementsOf(format: string, child: Model, slot: Value): Value[] {
  if (format !== "+m") return slot as Value[];
  const [key, value] = child.children;
  return (slot as Value[][]).map(([k = null, v = null]) => ({ [key?.name ?? ""]: k, [value?.name ?? ""]: v }));
}

function typeOf({ format, flags }: Model): Json {
  const known = named[format];
  if (known !== undefined) return known;
  const [, kind = "", unit = "", zone = ""] = /^(tt|tD|ts)([smun]):?(.*)$/.exec(format) ?? [];
  const word = units[unit] ?? "";
  if (kind === "tt") return { name: "time", unit: word, bitWidth: /[sm]/.test(unit) ? 32 : 64 };
  if (kind === "tD") return { name: "duration", unit: word };
  if (kind === "ts") return { name: "timestamp", unit: word, ...zone === "" ? {} : { timezone: zone } };
  if (format === "+m") return { name: "map", keysSorted: (flags & 4) !== 0 };
  const [, nested, size] = /^(\+?)w:(\d+)$/.exec(format) ?? [];
  if (nested === "+") return { name: "fixedsizelist", listSize: Number(size) };
  if (nested === "") return { name: "fixedsizebinary", byteWidth: Number(size) };
  const decimal = decimalOf(format);
  if (decimal !== null) {
    return { name: "decimal", precision: decimal.precision, scale: decimal.scale, bitWidth: decimal.bits };
  }
  const [bitWidth, isSigned] = integerOf(format) ?? [0, false];
  return { name: "int", bitWidth, isSigned };
}

function bytesOf(value: Value): Uint8Array {
  return typeof value === "string" ? new TextEncoder().encode(value) : value as Uint8Array; // text or binary
}

function dataOf({ format }: Model, value: Value): Json {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "boolean") return value ? 1 : 0;
  if (value instanceof Uint8Array) return value.toHex().toUpperCase();
  const decimal = decimalOf(format);
  if (decimal !== null) return unscaled(String(value), decimal.scale);
  if (typeof value === "number" || typeof value === "string") return value;
  return Object.fromEntries(
    Object.entries(value ?? {}).map(([key, one]) => [key, typeof one === "bigint" ? String(one) : one as number]),
  );
}

function unscaled(text: string, scale: number): string {
  const digits = scale <= 0 ? String(BigInt(text) / 10n ** BigInt(-scale)) : text.replace(".", "");
  return String(BigInt(digits));
}
