/**
 * UCX's extensible structs: a `field_mask` says which fields are set. Here it is derived from the fields given, so that
 * it cannot disagree with them.
 *
 * @module
 */
import type { Field, StructDescription } from "../../bindings/abi.ts";
import type { FieldValue, StructView } from "../ffi/mod.ts";

/** Values for some fields of a struct; an embedded struct takes an object of its own fields. */
type Values<D extends StructDescription> = { readonly [N in keyof D]?: Value<D[N]> };
type Value<F extends Field> = F extends string ? FieldValue<F>
  : F extends StructDescription ? { readonly [N in keyof F]: Value<F[N]> }
  : never;

/**
 * Writes the given fields and the mask that announces them.
 *
 * @param target a zeroed struct
 * @param masks the bit of each field
 */
export function writeFields<D extends StructDescription & { readonly field_mask: "u64" }>(
  target: StructView<D>,
  masks: { readonly [N in keyof D]?: bigint },
  values: Values<D>,
): void {
  const fields = target as Record<string, unknown>; // a struct view has a property per field
  let mask = 0n;
  for (const [name, value] of Object.entries(values)) {
    mask |= masks[name] ?? 0n;
    if (typeof value === "object") Object.assign(fields[name] as object, value);
    else fields[name] = value;
  }
  fields["field_mask"] = mask;
}
