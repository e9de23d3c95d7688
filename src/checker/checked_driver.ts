/**
 * The checked driver: functions of the checker around some of the driver's, and the driver's own for all others.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { cuda } from "../../bindings/cuda.ts";
import {
  cause,
  type CudaDriver,
  type DriverGroups,
  type DriverObserver,
  isStickyCode,
  observer,
} from "../driver/mod.ts";
import { contextCalls } from "./calls/context.ts";
import { copyCalls } from "./calls/copy.ts";
import { copyPitchedCalls } from "./calls/copy_pitched.ts";
import { eventCalls } from "./calls/event.ts";
import { fillCalls, fillPitchedCalls } from "./calls/fill.ts";
import { captureCalls, graphCalls } from "./calls/graph.ts";
import { kernelCalls, moduleCalls } from "./calls/kernel.ts";
import { hostMemoryCalls, managedMemoryCalls, memoryCalls, pointerCalls } from "./calls/memory.ts";
import { ipcCalls, poolCalls, poolSharingCalls } from "./calls/pool.ts";
import { streamCalls } from "./calls/stream.ts";
import type { CheckerState } from "./checker_state.ts";

/** The calls of a group that are checked. */
export type CheckedCalls<Group extends keyof DriverGroups> = {
  readonly [Name in keyof DriverGroups[Group]]?: NonNullable<DriverGroups[Group][Name]>;
};

/** How the calls of a group are checked. Groups not listed here are the driver's own. */
const checkedGroups: {
  readonly [Group in keyof DriverGroups]?: (
    checker: CheckerState,
    inner: DriverGroups[Group],
  ) => Partial<DriverGroups[Group]>;
} = {
  context: contextCalls,
  stream: streamCalls,
  event: eventCalls,
  memory: memoryCalls,
  hostMemory: hostMemoryCalls,
  managedMemory: managedMemoryCalls,
  pointer: pointerCalls,
  copy: copyCalls,
  copyPitched: copyPitchedCalls,
  fill: fillCalls,
  fillPitched: fillPitchedCalls,
  pool: poolCalls,
  poolSharing: poolSharingCalls,
  ipc: ipcCalls,
  capture: captureCalls,
  graph: graphCalls,
  module: moduleCalls,
  kernel: kernelCalls,
};

/** Makes the checked driver. A group is made, and the driver's own group bound, at first use. */
export function makeCheckedDriver(checker: CheckerState, observed: DriverObserver): CudaDriver {
  const { [cause]: explain } = checker.inner;
  const driver = { [observer]: observed, ...(explain === undefined ? {} : { [cause]: explain }) };
  for (const group of Object.keys(cuda) as (keyof DriverGroups)[]) { // the names of the table
    Object.defineProperty(driver, group, {
      enumerable: true,
      configurable: true,
      get() {
        const value = makeGroup(checker, group);
        Object.defineProperty(driver, group, { value, enumerable: true });
        return value;
      },
    });
  }
  return driver as CudaDriver; // one property per group of the table
}

function makeGroup<Group extends keyof DriverGroups>(checker: CheckerState, group: Group): DriverGroups[Group] {
  const inner = checker.inner[group];
  const make = checkedGroups[group];
  if (make === undefined) return inner;
  const calls: Readonly<Record<string, unknown>> = make(checker, inner);
  const own: Readonly<Record<string, unknown>> = inner;
  const table: SymbolTable[string] = cuda[group];
  // A function that this driver lacks stays null.
  const reporting = (call: unknown) => typeof call === "function" ? withReports(checker, call) : call;
  const all = Object.keys(table).map((name) => [name, own[name] === null ? null : reporting(calls[name]) ?? own[name]]);
  return Object.fromEntries(all) as DriverGroups[Group]; // one property per function of the group
}

/** Wraps a call to also report the races of kernels that have run by then, and to note that a context is lost. */
function withReports(checker: CheckerState, call: CallableFunction): (...args: readonly unknown[]) => unknown {
  return (...args) => {
    const code: unknown = call(...args);
    if (code !== 0 && typeof code === "number" && isStickyCode(code)) checker.isLost = true;
    checker.reportKernelRaces();
    return code;
  };
}
