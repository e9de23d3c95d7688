/** Every call that docs/coming-from.md promises exists: the compiler checks the second column of its tables. */
import { assert, assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { patiently } from "../support/child.ts";
import { testOnce } from "../support/once.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Declarations that the rows assume. Everything else in them is a public name. */
const prelude = `
import * as all from "./mod.ts";
import type { CudaGraph, CudaGraphExec } from "./src/public/cuda.ts";
import * as ucxNames from "./src/public/ucx.ts";
import * as arrowNames from "./src/public/arrow.ts";
const { ArrowArray, arrowField, ArrowStream, DeviceMemoryResource, MemoryBuffer, openNpy, PinnedMemoryResource } = all;
const { readNpy, readNpz, slice, StridedMemoryView, Ucx, UcxError, writeNpz } = all;
const { exportArrowStream } = arrowNames;
declare const cuda: all.Cuda, device: all.CudaDevice, stream: all.CudaStream, event: all.CudaEvent, start: all.CudaEvent;
declare const buffer: all.MemoryBuffer, other_buffer: all.MemoryBuffer, resource: all.DeviceMemoryResource;
declare const program: all.Program, kernel: all.Kernel, graph: CudaGraph, exec: CudaGraphExec;
declare const view: all.StridedMemoryView, other: all.StridedMemoryView, layout: all.StridedLayout;
declare const ucx: all.Ucx, worker: all.UcxWorker, endpoint: all.UcxEndpoint, listener: ucxNames.UcxListener;
declare const array: all.ArrowArray, field: arrowNames.ArrowField, python: all.Python;
declare const n: number, shape: number[], ptr: bigint, handle: bigint, x: unknown, owner: unknown;
declare const source: string, path: string, address: Uint8Array<ArrayBuffer>;
declare function work(): void;
`;

/** The calls of a page: the code in the second column of a table that has a third. */
function callsOf(page: string): string[] {
  return page.split("\n").filter((line) => line.startsWith("| ")).flatMap((line) => {
    const [, , ours = ""] = line.split(/ \| | \|$|^\| /);
    return Array.from(ours.matchAll(/`([^`]+)`/g), ([, call = ""]) => call);
  });
}

/** The compiler's errors about the calls, each prefixed with its call. */
function faultsOf(calls: readonly string[]): string[] {
  const file = join(root, "coming_from.ts"); // not on disk: the compiler is passed its contents
  const before = prelude.split("\n").length;
  const text = `${prelude}\n${calls.map((call) => `void (async () => { ${call}; });`).join("\n")}\n`;
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), (path) => readFileSync(path, "utf8"));
  const { options } = ts.parseJsonConfigFileContent({ compilerOptions: config.compilerOptions }, ts.sys, root);
  const host = ts.createCompilerHost({ ...options, noEmit: true });
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => name === file || fileExists(name);
  host.getSourceFile = (name, ...rest) =>
    name === file ? ts.createSourceFile(name, text, ts.ScriptTarget.Latest) : getSourceFile(name, ...rest);
  // as in a program that sets only "strict"
  const usual = { noUnusedLocals: false, noPropertyAccessFromIndexSignature: false };
  const compiler = ts.createProgram([file], { ...options, ...usual, noEmit: true }, host);
  const made = compiler.getSourceFile(file);
  return compiler.getSemanticDiagnostics(made).concat(compiler.getSyntacticDiagnostics(made)).map((one) => {
    const line = ts.getLineAndCharacterOfPosition(made ?? ts.createSourceFile("", "", 99), one.start ?? 0).line;
    return `${calls[line - before] ?? "the prelude"}: ${ts.flattenDiagnosticMessageText(one.messageText, "\n")}`;
  });
}

testOnce("every call in the tables compiles, and a missing one would not", patiently, () => {
  const calls = callsOf(readFileSync(join(root, "docs/coming-from.md"), "utf8"));
  assert(calls.length > 80, `${calls.length} calls`);
  const wrong = ["view.astype(1)", "device.createStream({ prio: 1 })", "StridedMemoryView.asarray(x)"];
  const faults = faultsOf([...calls, ...wrong]);
  const isMeant = (fault: string) => wrong.some((call) => fault.startsWith(call));
  assertEquals(faults.filter((fault) => !isMeant(fault)), []);
  assertEquals(faults.filter(isMeant).length, wrong.length);
});
