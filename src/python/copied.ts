/**
 * Copies of Python containers in other forms: with plain objects, and for JSON.
 *
 * @module
 */

// law python/withObjects: python/json
/**
 * A copy with its Maps replaced by plain objects. Consumes the given copy.
 *
 * @throws {TypeError} if a Map has a key that is not a string
 */
export function withObjects(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withObjects);
  if (value instanceof Map) return objectOf(value, withObjects);
  return value instanceof Set ? new Set(Array.from(value, withObjects)) : value;
}

// law python/jsonOf: python/json
/**
 * What `JSON.stringify` should write for a copy: it would silently write Maps, Sets and bytes in unexpected forms.
 *
 * @throws {TypeError} for bytes, integers from 2^53 on, and a Map with a key that is not a string
 */
export function jsonOf(value: unknown): unknown {
  if (typeof value === "bigint") {
    throw new TypeError(
      `Cannot write ${value} as JSON: numbers from 2^53 on lose digits. Convert it in Python, by str()`,
    );
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(jsonOf);
  if (value instanceof Map) return objectOf(value, jsonOf);
  if (value instanceof Set) return Array.from(value, jsonOf);
  if (value instanceof Uint8Array) {
    throw new TypeError("Cannot write bytes as JSON: encode them as text, such as by bytes.hex() or base64.b64encode");
  }
  return "toJSON" in value && typeof value.toJSON === "function" ? value.toJSON() : value; // a Date, a view
}

function objectOf(map: ReadonlyMap<unknown, unknown>, convert: (value: unknown) => unknown): object {
  return Object.fromEntries(Array.from(map, ([key, value]) => {
    if (typeof key === "string") return [key, convert(value)];
    throw new TypeError(
      `Cannot make an object from a dict with the key ${shown(key)}: expected strings. $value() makes a Map of it`,
    );
  }));
}

function shown(key: unknown): string {
  return Array.isArray(key) ? `(${key.map(shown).join(", ")})` : String(key);
}
