/** All of `bindings/`, sorted into functions, structs and constants. */
import type { StructDescription, SymbolTable } from "../../bindings/abi.ts";
import * as arrow from "../../bindings/arrow.ts";
import * as cpython from "../../bindings/cpython.ts";
import * as cuda from "../../bindings/cuda.ts";
import * as cudaTypes from "../../bindings/cuda_types.ts";
import * as cudart from "../../bindings/cudart.ts";
import * as dlpack from "../../bindings/dlpack.ts";
import * as libc from "../../bindings/libc.ts";
import * as nvrtc from "../../bindings/nvrtc.ts";
import * as ucp from "../../bindings/ucp.ts";
import * as ucpTypes from "../../bindings/ucp_types.ts";

/** The value of a constant. */
export type Constant = number | bigint | string;

/** What the files about one library export. */
export interface Library {
  readonly name: string;
  readonly files: readonly string[];
  readonly tables: readonly SymbolTable[];
  readonly structs: { readonly [name: string]: StructDescription };
  /** Constants by exported name: an object of them, or a single one. */
  readonly constants: { readonly [name: string]: Constant | { readonly [key: string]: Constant } };
}

/** Objects that are not from C: they state how our code uses the rest, and have separate tests. */
const OWN = new Set(["UCP_API", "UCP_SINCE", "DLPACK_CAPSULE", "ARROW_CAPSULE"]);

function library(name: string, modules: { readonly [file: string]: object }): Library {
  const tables: SymbolTable[] = [];
  const structs: Record<string, StructDescription> = {};
  const constants: Record<string, Constant | { readonly [key: string]: Constant }> = {};
  for (const [key, value] of Object.values(modules).flatMap((module): [string, unknown][] => Object.entries(module))) {
    if (OWN.has(key)) continue;
    if (typeof value !== "object" || value === null) constants[key] = value as Constant;
    else if (isTable(value)) tables.push(value);
    else if (isConstants(value)) constants[key] = value;
    else structs[key] = value as StructDescription;
  }
  return { name, files: Object.keys(modules), tables, structs, constants };
}

function isTable(value: object): value is SymbolTable {
  return Object.values(value).every((group: unknown) =>
    typeof group === "object" && group !== null && Object.values(group).every((entry) => Object.hasOwn(entry, "args"))
  );
}

function isConstants(value: object): value is { readonly [key: string]: Constant } {
  return Object.values(value).every((entry) => typeof entry === "number" || typeof entry === "bigint");
}

/** Every library that is bound. */
export const libraries: readonly Library[] = [
  library("libc", { "libc.ts": libc }),
  library("cuda", { "cuda.ts": cuda, "cuda_types.ts": cudaTypes }),
  library("cudart", { "cudart.ts": cudart }),
  library("nvrtc", { "nvrtc.ts": nvrtc }),
  library("ucp", { "ucp.ts": ucp, "ucp_types.ts": ucpTypes }),
  library("cpython", { "cpython.ts": cpython }),
  library("dlpack", { "dlpack.ts": dlpack }),
  library("arrow", { "arrow.ts": arrow }),
];
