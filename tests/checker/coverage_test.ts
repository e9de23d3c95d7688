/** The checker covers every function of the driver, or there is a known reason why not. */
import { assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { SymbolTable } from "../../bindings/abi.ts";
import { cuda } from "../../bindings/cuda.ts";
import { checkDriver } from "../../src/checker/mod.ts";
import { simulateDriver } from "../../src/sim/mod.ts";

/**
 * Calls that are irrelevant to order, memory and lifetimes: queries, settings, code, and the current context.
 */
const passedOn: ReadonlySet<string> = new Set([
  ...[
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGet",
    "cuDeviceTotalMem_v2",
    "cuDeviceCanAccessPeer",
    "cuDeviceSetMemPool",
    "cuMemSetMemPool",
  ],
  ...["cuDevicePrimaryCtxSetFlags_v2", "cuCtxSetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"],
  ...["cuCtxEnablePeerAccess", "cuCtxDisablePeerAccess", "cuMemAdvise", "cuMemPoolTrimTo", "cuDeviceGraphMemTrim"],
  ...["cuMemPoolExportToShareableHandle", "cuStreamIsCapturing", "cuGraphDebugDotPrint"],
  ...["cuThreadExchangeStreamCaptureMode", "cuLibraryLoadData", "cuLibraryUnload"],
  ...["cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxPotentialBlockSize"],
  ...["cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy"],
]);

/** Whether a function only gets or sets an attribute: `cuStreamGetFlags`, `cuMemRangeGetAttribute`. */
function isQuestion(name: string): boolean {
  if (["cuModuleGetFunction", "cuPointerSetAttribute", "cuIpcGetEventHandle", "cuIpcGetMemHandle"].includes(name)) {
    return false;
  }
  return /[a-z]Get[A-Z_]|SetAttribute|SetAccess|SetGraphMemAttribute/.test(name) || name.startsWith("cuGet");
}

test("every function of the driver is checked, or has no effect that matters", () => {
  const inner: Readonly<Record<string, Readonly<Record<string, unknown>>>> = simulateDriver().driver;
  // The same functions, behind the checker.
  const { driver } = checkDriver(inner as ReturnType<typeof simulateDriver>["driver"]);
  const checked: typeof inner = driver;
  const unseen = Object.entries<SymbolTable[string]>(cuda).flatMap(([group, table]) =>
    Object.keys(table).filter((name) => checked[group]?.[name] === inner[group]?.[name])
  );
  const seen = Object.values<SymbolTable[string]>(cuda).flatMap((table) => Object.keys(table))
    .filter((name) => !unseen.includes(name));
  assertEquals(unseen.filter((name) => !passedOn.has(name) && !isQuestion(name)), []);
  assertEquals(seen.filter((name) => passedOn.has(name) || isQuestion(name)), []);
});

test("a function that a driver does not have stays null", () => {
  const { driver } = checkDriver(simulateDriver({ driverVersion: 11040 }).driver);
  assertEquals(
    [driver.context.cuCtxRecordEvent, driver.context.cuCtxWaitEvent, driver.kernel.cuLaunchKernelEx],
    [null, null, null],
  );
});

test("docs/checker.md names all options, kinds and limits", () => {
  const text = readFileSync(new URL("../../docs/checker.md", import.meta.url), "utf8");
  const source = (file: string) => readFileSync(new URL(`../../src/checker/${file}`, import.meta.url), "utf8");
  const kinds = /type CausalityKind = (.*?);/s.exec(source("report.ts"))?.[1]?.match(/[a-z-]+/g) ?? [];
  const options = [...source("checker.ts").matchAll(/readonly (\w+)\?:/g)].map((match) => match[1] ?? "");
  assertEquals([...kinds, ...options].filter((name) => !text.includes(`\`${name}\``)), []);
  assertEquals([kinds.length, options.length], [6, 3]);
  for (const limit of ["1024", "65536", "8192", "2048"]) assertEquals(text.includes(limit), true, limit);
});
