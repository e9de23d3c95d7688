/**
 * Calls one C function so often that the runtime compiles the call, which takes another path than the first calls:
 * `hot.ts <library> <type>`, with the values on standard input. Prints the values that changed.
 *
 * Runs in a separate process because compilers only do so while the loop has seen a single function.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import type { Argument, CScalar, FunctionDescription } from "../../../bindings/abi.ts";
import { libc } from "../../../src/ffi/libc.ts";
import { ffiPort } from "../../../src/ffi/port.ts";
import { cString } from "../../../src/ffi/c_string.ts";

const [library = "", type = ""] = process.argv.slice(2);
const scalar = (type === "handle" ? "ptr" : type) as CScalar;
const wide = ["i64", "u64", "size", "ptr"].includes(scalar);
const values = (JSON.parse(readFileSync(0, "utf8")) as string[]).map((text) => wide ? BigInt(text) : Number(text));
const description: FunctionDescription = { args: [type as Argument], returns: scalar };
const given = values.map((value) => [value, type === "handle" ? ffiPort().handle(BigInt(value)) : value] as const);
const { same } = bindSame();
const wrong = new Set<string>();

function bindSame() {
  const name = `same_${scalar}`;
  const functions = ffiPort().bind(library, libc().loading.dlopen(cString(library), 2), { [name]: description });
  const same = functions[name];
  if (!same) throw new Error(`${library} has no ${name}`);
  return { same };
}

function round(): void {
  for (const [value, argument] of given) {
    const back = same(argument);
    if (!Object.is(back, value)) wrong.add(`${value} came back as ${back}`);
  }
}

for (let i = 0; i < 4000; i++) round();
console.log(JSON.stringify([...wrong]));
