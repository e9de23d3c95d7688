/** Every function of the driver is simulated or refused, and docs/simulator.md says which. */
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { FunctionDescription, SymbolTable } from "../../bindings/abi.ts";
import { cuda } from "../../bindings/cuda.ts";
import { CUmemPoolProps, CUresult } from "../../bindings/cuda_types.ts";
import { readCString } from "../../src/ffi/c_string.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { Raw } from "../support/raw_driver.ts";

const table: readonly (readonly [group: string, name: string, description: FunctionDescription])[] = Object.entries<
  SymbolTable[string]
>(cuda).flatMap(([group, functions]) => Object.entries(functions).map(([name, one]) => [group, name, one] as const));

/** A value for each parameter, for a call that must not read any. */
function zeroes({ args }: FunctionDescription): (number | bigint | Uint8Array | null)[] {
  return args.map((type) => {
    if (type === "struct64") return new Uint8Array(64);
    return type === "buffer" ? null : ["i64", "u64", "size", "ptr", "handle"].includes(type) ? 0n : 0;
  });
}

test("a function that is not simulated says so, and the simulator names it", () => {
  const simulated = simulateDriver();
  const groups: Readonly<Record<string, Readonly<Record<string, unknown>>>> = simulated.driver;
  const refused: string[] = [];
  for (const [group, name, description] of table) {
    const call = groups[group]?.[name];
    assert(typeof call === "function", `${group}.${name}`);
    if (simulated.simulates(name)) continue;
    assertEquals(call(...zeroes(description)), CUresult.CUDA_ERROR_NOT_SUPPORTED, name);
    refused.push(name);
  }
  assertEquals(simulated.unsupported, refused);
  assert(refused.length > 0 && refused.length < table.length / 4, `${refused.length} of ${table.length}`);
});

test("a part of a call that is not simulated is refused and named, too", () => {
  const simulated = simulateDriver();
  using raw = new Raw(simulated.driver);
  raw.use(0);
  const props = raw.arena.struct(CUmemPoolProps);
  props.allocType = 1;
  props.location.type = 2; // the host
  const out = raw.arena.out("ptr");
  assertEquals(simulated.driver.pool.cuMemPoolCreate(out.$address, props.$address), CUresult.CUDA_ERROR_NOT_SUPPORTED);
  assertEquals(simulated.unsupported, ["cuMemPoolCreate: pools of host memory"]);
});

test("nothing works before cuInit() except calls that open the driver", () => {
  const { driver } = simulateDriver();
  const groups: Readonly<Record<string, Readonly<Record<string, unknown>>>> = driver;
  const simulated = simulateDriver();
  for (const [group, name, description] of table) {
    const call = groups[group]?.[name];
    if (group === "opening" || !simulated.simulates(name) || typeof call !== "function") continue;
    assertEquals(call(...zeroes(description)), CUresult.CUDA_ERROR_NOT_INITIALIZED, name);
  }
});

test("docs/simulator.md lists what is simulated and what is refused", () => {
  const simulated = simulateDriver();
  const text = readFileSync(new URL("../../docs/simulator.md", import.meta.url), "utf8");
  const [before = "", refused = ""] = text.split("## Refused");
  const calls = before.split("## Calls")[1] ?? "";
  const listed = (part: string) => [...part.matchAll(/`(cu[A-Z]\w*)`/g)].map((match) => match[1] ?? "");
  const names = (is: boolean) => table.map(([, name]) => name).filter((name) => simulated.simulates(name) === is);
  assertEquals(listed(calls).sort(), names(true).sort());
  assertEquals(listed(refused).sort(), names(false).sort());
});

test("the simulator has a text for each code that it returns", () => {
  const { driver } = simulateDriver();
  using raw = new Raw(driver);
  const folder = new URL("../../src/sim/", import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const sources = files.map((name) => readFileSync(new URL(name, folder), "utf8")).join("");
  const codes = new Set(
    [...sources.matchAll(/CUresult\.(CUDA_\w+)/g)].map(([, name]) => name as keyof typeof CUresult),
  );
  assert(codes.size > 20);
  for (const name of codes) {
    const text = raw.word((out) => driver.opening.cuGetErrorString(CUresult[name], out));
    assertNotEquals(readCString(text), "", name);
  }
});

test("the optional functions of the table exist from the version that the table says", () => {
  // The versions are in comments in the table: "since CUDA 12.5", above the prototype of each optional function.
  const source = readFileSync(new URL("../../bindings/cuda.ts", import.meta.url), "utf8");
  const since = /since CUDA (\d+)\.(\d+)\n(?:\s*\/\/.*\n)+?\s*(cu\w+): \{/g;
  let seen = 0;
  for (const [, major, minor, name] of source.matchAll(since)) {
    const version = Number(major) * 1000 + Number(minor) * 10;
    const exists = (driverVersion: number) => {
      const groups: Readonly<Record<string, Readonly<Record<string, unknown>>>> =
        simulateDriver({ driverVersion }).driver;
      return Object.values(groups).some((group) => typeof group[name ?? ""] === "function");
    };
    assertEquals([name, exists(version - 10), exists(version)], [name, false, true]);
    seen++;
  }
  assertEquals(seen, table.filter(([, , { optional }]) => optional === true).length);
});
