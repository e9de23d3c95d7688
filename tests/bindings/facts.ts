/**
 * Facts about C from sources other than `bindings/`: `abi_facts.json`, measured with gcc from the real headers by
 * `abi_facts.py`, and `ucp_layout.json`, measured the same way from every UCX from 1.13.1 to 1.22.
 */
import { readFileSync } from "node:fs";

/** One type in a prototype, as the compiler sees it. */
export interface TypeFact {
  readonly kind: "integer" | "enum" | "float" | "pointer" | "struct" | "union";
  readonly size: number;
  readonly signed?: boolean;
}

/** One struct in one version. */
export interface StructFact {
  readonly size: number;
  readonly alignment: number;
  readonly fields: { readonly [field: string]: readonly [offset: number, size: number, kind: string] };
}

/** The facts about one library; empty sections are omitted. */
export interface LibraryFacts {
  readonly versions: readonly string[];
  /** Prototypes, in the newest version that has them. */
  readonly prototypes?: { readonly [name: string]: string };
  /** Prototypes that differ in an older version. */
  readonly was?: { readonly [name: string]: { readonly [version: string]: string } };
  readonly types?: { readonly [type: string]: TypeFact };
  readonly structs?: { readonly [name: string]: { readonly [version: string]: StructFact } };
  readonly constants?: { readonly [name: string]: number };
  /** All constants of the enums that the bindings name. */
  readonly members?: { readonly [type: string]: readonly string[] };
  /** Version that brought a function of the driver: 11040 is CUDA 11.4. */
  readonly since?: { readonly [name: string]: number };
  /** Functions of the bindings that a shared library does not export, by version. */
  readonly lacks?: { readonly [version: string]: readonly string[] };
}

/** `ucp_layout.json`. */
export interface UcpLayout {
  readonly base_version: string;
  readonly structs: { readonly [name: string]: UcpStruct };
  readonly enums: { readonly [name: string]: number };
  readonly appended: {
    readonly [version: string]: {
      readonly structs: { readonly [name: string]: UcpStruct };
      readonly enums: { readonly [name: string]: number };
    };
  };
  readonly sizes: { readonly [type: string]: number };
  readonly sizes_by_version: { readonly [name: string]: { readonly [version: string]: number } };
  readonly latest: { readonly structs: { readonly [name: string]: UcpStruct } };
}

/** One struct of UCX, or the fields that a version appended to it. */
export interface UcpStruct {
  readonly size: number;
  readonly fields: {
    readonly [field: string]: { readonly offset: number; readonly size: number; readonly decl: string };
  };
}

function read(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../data/${name}`, import.meta.url), "utf8"));
}

/** Facts by library. */
export const facts = read("abi_facts.json") as { readonly [library: string]: LibraryFacts };

/** Layout of UCX's structs. */
export const ucpLayout = read("ucp_layout.json") as UcpLayout;

/** Text of a file of `bindings/`. */
export function sourceOf(file: string): string {
  return readFileSync(new URL(`../../bindings/${file}`, import.meta.url), "utf8");
}

/** The facts about one library. */
export function factsOf(library: string): LibraryFacts {
  const found = facts[library];
  if (found === undefined) throw new Error(`tests/data/abi_facts.json has no facts about ${library}`);
  return found;
}
