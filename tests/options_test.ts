/**
 * Every public function that takes options rejects misspelled ones: the functions are read from the sources, so that
 * none can be forgotten here.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import * as root from "../mod.ts";
import * as arrow from "../src/public/arrow.ts";
import * as checker from "../src/public/checker.ts";
import * as cudaApi from "../src/public/cuda.ts";
import * as dlpack from "../src/public/dlpack.ts";
import * as layoutApi from "../src/public/layout.ts";
import * as python from "../src/public/python.ts";
import * as sharing from "../src/public/sharing.ts";
import * as sim from "../src/public/sim.ts";
import * as ucx from "../src/public/ucx.ts";
import { checkOptions } from "../src/layout/options.ts";
import { Progress } from "../src/ucx/progress.ts";
import { Receiver } from "../src/ucx/receiver.ts";
import { scriptedResources, ScriptedUcp } from "./ucx/scripted_ucp.ts";
import { openScriptedWorker, workerParts } from "./ucx/scripted_worker.ts";
import { check, fc } from "./support/property.ts";
import { addPtx } from "./gpu/graph_behaviours.ts";

/** The whole public API, wherever it is exported. */
const api = {
  ...layoutApi,
  ...cudaApi,
  ...sharing,
  ...dlpack,
  ...arrow,
  ...python,
  ...ucx,
  ...sim,
  ...checker,
  ...root,
};

const sourceFolder = fileURLToPath(new URL("../src", import.meta.url));

const sources = readdirSync(sourceFolder, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) =>
    ts.createSourceFile(name, readFileSync(join(sourceFolder, name), "utf8"), ts.ScriptTarget.Latest, true)
  );

const interfaces = new Map(
  sources.flatMap(({ statements }) => statements.filter(ts.isInterfaceDeclaration)).map((one) => [one.name.text, one]),
);

/** The members of an options type; null for any other type. */
function membersOf(type: ts.TypeNode | undefined): readonly ts.TypeElement[] | null {
  if (type === undefined) return null;
  if (ts.isTypeLiteralNode(type)) {
    return type.members.every(({ questionToken }) => questionToken !== undefined) ? type.members : null;
  }
  if (ts.isIntersectionTypeNode(type) || ts.isUnionTypeNode(type)) {
    const parts = type.types.map(membersOf).filter((members) => members !== null);
    return parts.length === 0 ? null : parts.flat();
  }
  if (!ts.isTypeReferenceNode(type) || !/Options$/.test(type.typeName.getText())) return null;
  return membersOfInterface(type.typeName.getText());
}

function membersOfInterface(name: string): readonly ts.TypeElement[] | null {
  const found = interfaces.get(name);
  if (found === undefined) return null; // JavaScript's own: ErrorOptions
  const bases = found.heritageClauses?.flatMap(({ types }) => types) ?? [];
  return [...found.members, ...bases.flatMap((base) => membersOfInterface(base.expression.getText()) ?? [])];
}

/** Whether an option is true or false, or only one of them. */
function isBoolean(member: ts.TypeElement): boolean {
  if (!ts.isPropertySignature(member) || member.type === undefined) return false;
  return /^(boolean|true|false)$/.test(member.type.getText());
}

/** An option of a public function. */
interface Option {
  readonly name: string;
  readonly isBoolean: boolean;
}

/** The public functions that take options, with the options. */
function functionsWithOptions(): Map<string, readonly Option[]> {
  const found = new Map<string, readonly Option[]>();
  const look = (name: string, node: ts.FunctionLikeDeclaration) => {
    if (node.body === undefined) return; // an overload, or abstract
    if (node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)) return;
    for (const { type } of node.parameters) {
      const members = membersOf(type);
      if (members === null) continue;
      found.set(name, members.map((one) => ({ name: one.name?.getText() ?? "", isBoolean: isBoolean(one) })));
    }
  };
  for (const { statements } of sources) {
    for (const node of statements) {
      if (ts.isFunctionDeclaration(node) && node.name !== undefined && isExported(node.name.text)) {
        look(node.name.text, node);
      }
      if (!ts.isClassDeclaration(node) || node.name === undefined || !isExported(node.name.text)) continue;
      for (const member of [...node.members, ...hiddenMembers(node)]) {
        if (ts.isConstructorDeclaration(member)) look(`new ${node.name.text}`, member);
        // What is named by a symbol is for the package's own base classes.
        if (ts.isMethodDeclaration(member) && ts.isIdentifier(member.name)) {
          look(`${node.name.text}.${member.name.getText()}`, member);
        }
      }
    }
  }
  return found;
}

const classes = new Map(
  sources.flatMap(({ statements }) => statements.filter(ts.isClassDeclaration)).map((one) => [one.name?.text, one]),
);

/** Methods that a class inherits from base classes that are not public. */
function hiddenMembers(node: ts.ClassDeclaration): ts.ClassElement[] {
  const [base] = node.heritageClauses?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword)?.types ?? [];
  const name = base?.expression.getText();
  const found = name === undefined || isExported(name) ? undefined : classes.get(name);
  return found === undefined ? [] : [...found.members.filter(ts.isMethodDeclaration), ...hiddenMembers(found)];
}

function isExported(name: string): boolean {
  return Object.hasOwn(api, name);
}

/** The objects that the functions are called on. */
function scene() {
  const cuda = api.Cuda.simulate();
  const device = cuda.device(0);
  const stream = device.createStream();
  const buffer = device.memory.allocate(8, { stream });
  const program = device.loadPtx(addPtx);
  const kernel = program.kernel("add");
  const graph = stream.capture(() => buffer.fill(1, { stream }));
  const pool = new api.DeviceMemoryResource(device, {});
  const host = new api.HostMemoryResource().allocate(8);
  const view = api.StridedMemoryView.fromBuffer(host, { shape: [8], dtype: "uint8" });
  const array = api.ArrowArray.from(view);
  const layout = new api.StridedLayout([2, 4], null, 1);
  const { worker, address } = openScriptedWorker();
  const [socket, other] = api.UnixSocket.pair();
  const channel = new api.MemoryChannel(other, cuda);
  const listener = api.UnixListener.listen(`@causeway-options-${process.pid}`);
  const close = () => {
    for (const one of [listener, socket, channel, graph, program, host, buffer, array, pool, stream]) one.close();
    worker.abort();
    cuda.close();
  };
  return {
    cuda,
    device,
    stream,
    buffer,
    kernel,
    graph,
    pool,
    host,
    view,
    array,
    layout,
    worker,
    address,
    socket,
    channel,
    listener,
    close,
  };
}

type Scene = ReturnType<typeof scene>;

/** A message without data. */
function activeMessage() {
  const resources = scriptedResources(new ScriptedUcp());
  const progress = new Progress(resources, "event", null);
  const context = { resources, cuda: null, progress, deliver: () => true, forget: () => {} };
  const data = { place: "none", data: 0n, bytes: null } as const;
  return new api.UcxActiveMessage(context, new Uint8Array(0), 0, data);
}

/** Options of any type: the compiler would reject wrong ones. */
// deno-lint-ignore no-explicit-any
type Wrong = any;

const interface_ = { data: [64, false] };
const descriptor: Wrong = { kind: "pool", data: "" };

const calls: Readonly<Record<string, (scene: Scene, wrong: Wrong) => unknown>> = {
  "new StridedLayout": (_, wrong) => new api.StridedLayout([1], null, 1, wrong),
  "StridedLayout.flattened": ({ layout }, wrong) => layout.flattened(wrong),
  "StridedLayout.repacked": ({ layout }, wrong) => layout.repacked(1, wrong),
  "StridedLayout.maxCompatibleItemsize": ({ layout }, wrong) => layout.maxCompatibleItemsize(wrong),
  "Cuda.open": (_, wrong) => api.Cuda.open(wrong),
  "Cuda.over": ({ cuda }, wrong) => api.Cuda.over(cuda.driver, wrong),
  "Cuda.simulate": (_, wrong) => api.Cuda.simulate(wrong),
  "CudaDevice.createStream": ({ device }, wrong) => device.createStream(wrong),
  "CudaDevice.createEvent": ({ device }, wrong) => device.createEvent(wrong),
  "CudaDevice.makeEvent": ({ device }, wrong) => device.makeEvent(wrong),
  "CudaDevice.retained": ({ device }, wrong) => device.retained(wrong),
  "CudaDevice.compile": ({ device }, wrong) => device.compile("", wrong),
  "Program.compile": ({ device }, wrong) => api.Program.compile(device, "", wrong),
  "CudaStream.capture": ({ stream }, wrong) => stream.capture(() => {}, wrong),
  "CudaStream.beginCapture": ({ stream }, wrong) => stream.beginCapture(wrong),
  "new StreamCapture": ({ stream }, wrong) => new api.StreamCapture(stream, wrong),
  "CudaGraph.toDot": ({ graph }, wrong) => graph.toDot(wrong),
  "Kernel.launch": ({ kernel, stream }, wrong) => kernel.launch(stream, 1, 1, [0n, 0n, 0n], wrong),
  "Kernel.occupancy": ({ kernel }, wrong) => kernel.occupancy(wrong),
  "simulateDriver": (_, wrong) => api.simulateDriver(wrong),
  "new SimulatedDriver": (_, wrong) => new api.SimulatedDriver(wrong),
  "checkDriver": ({ cuda }, wrong) => api.checkDriver(cuda.driver, wrong),
  "new CausalityChecker": ({ cuda }, wrong) => new api.CausalityChecker(cuda.driver, wrong),
  "new DeviceMemoryResource": ({ device }, wrong) => new api.DeviceMemoryResource(device, wrong),
  "DeviceMemoryResource.allocate": ({ pool }, wrong) => pool.allocate(8, wrong),
  "DeviceMemoryResource.importBuffer": ({ pool }, wrong) => pool.importBuffer(descriptor, wrong),
  "DriverMemoryResource.allocate": ({ device }, wrong) => new api.PinnedMemoryResource(device).allocate(8, wrong),
  "SynchronousMemoryResource.importBuffer": ({ device }, wrong) =>
    new api.SynchronousMemoryResource(device).importBuffer(descriptor, wrong),
  "new HostMemoryResource": (_, wrong) => new api.HostMemoryResource(wrong),
  "MemoryPool.create": ({ device }, wrong) => api.MemoryPool.create(device, wrong),
  "MemoryBuffer.fromPointer": (_, wrong) => api.MemoryBuffer.fromPointer(64n, 8, wrong),
  "MemoryBuffer.copyFrom": ({ host, buffer }, wrong) => host.copyFrom(buffer, wrong),
  "MemoryBuffer.copyTo": ({ host, buffer }, wrong) => host.copyTo(buffer, wrong),
  "MemoryBuffer.fill": ({ host }, wrong) => host.fill(1, wrong),
  "MemoryChannel.connect": ({ cuda }, wrong) => api.MemoryChannel.connect("@nobody", cuda, wrong),
  "MemoryChannel.receive": ({ channel }, wrong) => channel.receive(wrong),
  "StridedMemoryView.from": ({ view }, wrong) => api.StridedMemoryView.from(view, wrong),
  "StridedMemoryView.fromTypedArray": (_, wrong) => api.StridedMemoryView.fromTypedArray(new Uint8Array(1), wrong),
  "StridedMemoryView.fromBuffer": ({ host }, wrong) =>
    api.StridedMemoryView.fromBuffer(host, { shape: [1], dtype: "uint8", ...asObject(wrong) }),
  "StridedMemoryView.fromDlpack": ({ view }, wrong) => api.StridedMemoryView.fromDlpack(view, wrong),
  "StridedMemoryView.fromCudaArrayInterface": (_, wrong) =>
    api.StridedMemoryView.fromCudaArrayInterface({ __cuda_array_interface__: interface_ }, wrong),
  "StridedMemoryView.fromArrowDevice": ({ view }, wrong) => api.StridedMemoryView.fromArrowDevice(view, wrong),
  "Cuda.device": ({ cuda }, wrong) => cuda.device(0, wrong),
  "HostMemoryResource.allocate": (_, wrong) => new api.HostMemoryResource().allocate(8, wrong),
  "StridedMemoryView.zeros": (_, wrong) => api.StridedMemoryView.zeros([1], wrong),
  "StridedMemoryView.full": (_, wrong) => api.StridedMemoryView.full([1], 1, wrong),
  "StridedMemoryView.fromArray": (_, wrong) => api.StridedMemoryView.fromArray([1], wrong),
  "StridedMemoryView.asTypedArray": ({ view }, wrong) => view.asTypedArray(wrong),
  "StridedMemoryView.toTypedArray": ({ view }, wrong) => view.toTypedArray(wrong),
  "StridedMemoryView.fill": ({ view }, wrong) => view.fill(1, wrong),
  "StridedMemoryView.copy": ({ view }, wrong) => view.copy(wrong),
  "StridedMemoryView.to": ({ view }, wrong) => view.to("host", wrong),
  "StridedMemoryView.view": ({ view }, wrong) => view.view(wrong),
  "StridedMemoryView.copyFrom": ({ view }, wrong) => view.copyFrom(view, wrong),
  "StridedMemoryView.copyTo": ({ view }, wrong) => view.copyTo(view, wrong),
  "StridedMemoryView.explainCopyFrom": ({ view }, wrong) => view.explainCopyFrom(view, wrong),
  "StridedMemoryView.toDlpack": ({ view }, wrong) => view.toDlpack(wrong),
  "StridedMemoryView.__dlpack__": ({ view }, wrong) => view.__dlpack__(wrong),
  "StridedMemoryView.toArrowDevice": ({ view }, wrong) => view.toArrowDevice(wrong),
  "StridedMemoryView.__arrow_c_device_array__": ({ view }, wrong) => view.__arrow_c_device_array__(wrong),
  "StridedMemoryView.__arrow_c_array__": ({ view }, wrong) => view.__arrow_c_array__(wrong),
  "ArrowArray.from": ({ view }, wrong) => api.ArrowArray.from(view, wrong),
  "ArrowArray.to": ({ array }, wrong) => array.to("host", wrong),
  "ArrowArray.toArrowDevice": ({ array }, wrong) => array.toArrowDevice(wrong),
  "ArrowArray.__arrow_c_device_array__": ({ array }, wrong) => array.__arrow_c_device_array__(wrong),
  "ArrowArray.__arrow_c_array__": ({ array }, wrong) => array.__arrow_c_array__(wrong),
  "ArrowStream.from": (_, wrong) => api.ArrowStream.from({ stream: 64n }, wrong),
  "exportArrowStream": ({ array }, wrong) => api.exportArrowStream([array], wrong),
  "arrowField": (_, wrong) => api.arrowField("i", wrong),
  "Python.open": (_, wrong) => api.Python.open(wrong),
  // The options are checked before a Python is needed.
  "Python.async": (_, wrong) => api.Python.prototype.async(undefined as never, wrong),
  "openNpy": (_, wrong) => api.openNpy("/nothing.npy", wrong),
  "readNpy": (_, wrong) => api.readNpy(new Uint8Array(0), wrong),
  "readNpz": (_, wrong) => api.readNpz(new Uint8Array(0), wrong),
  "writeNpy": ({ view }, wrong) => api.writeNpy("/nothing/nothing.npy", view, wrong),
  "writeNpz": ({ view }, wrong) => api.writeNpz("/nothing/nothing.npz", { view }, wrong),
  "Ucx.open": (_, wrong) => api.Ucx.open(wrong),
  "Ucx.createWorker": (_, wrong) => {
    using ucx = api.Ucx.open();
    return ucx.createWorker(wrong);
  },
  "new UcxWorker": (_, wrong) => new api.UcxWorker(workerParts(new ScriptedUcp()), wrong),
  "UcxWorker.flush": ({ worker }, wrong) => worker.flush(wrong),
  "UcxWorker.listen": ({ worker }, wrong) => worker.listen(wrong),
  "UcxListener.accept": ({ worker }, wrong) => worker.listen().accept(wrong),
  "UcxWorker.messages": ({ worker }, wrong) => worker.messages(wrong),
  "UcxEndpoint.messages": async ({ worker, address }, wrong) => (await worker.connect(address)).messages(wrong),
  "UcxEndpoint.recv": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).recv(new Uint8Array(1), wrong),
  "UcxEndpoint.put": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).put(new Uint8Array(1), wrong, 0, wrong),
  "UcxEndpoint.get": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).get(new Uint8Array(1), wrong, 0, wrong),
  "UcxEndpoint.atomic": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).atomic("add", wrong, 0, 1n, wrong),
  "UcxEndpoint.flush": async ({ worker, address }, wrong) => (await worker.connect(address)).flush(wrong),
  "UcxEndpoint.sendMessage": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).sendMessage(new Uint8Array(1), wrong),
  "UcxActiveMessage.recv": (_, wrong) => activeMessage().recv(new Uint8Array(1), wrong),
  "UcxActiveMessage.bytes": (_, wrong) => activeMessage().bytes(wrong),
  "UcxEndpoint.recvSync": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).recvSync(new Uint8Array(1), wrong),
  "UcxMessage.recv": async (_, wrong) => {
    const resources = scriptedResources(new ScriptedUcp());
    const receiver = new Receiver(resources, new Progress(resources, "event", null), null);
    return await new api.UcxMessage(receiver, { handle: 1n, length: 1, tag: 0n }, () => {}).recv(
      new Uint8Array(1),
      wrong,
    );
  },
  "UcxWorker.recvSync": ({ worker }, wrong) => worker.recvSync(new Uint8Array(1), wrong),
  "UcxEndpoint.sendSync": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).sendSync(new Uint8Array(1), wrong),
  "UcxWorker.connect": ({ worker, address }, wrong) => worker.connect(address, wrong),
  "UcxWorker.recv": ({ worker }, wrong) => worker.recv(new Uint8Array(1), wrong),
  "UcxEndpoint.send": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).send(new Uint8Array(1), wrong),
  "UcxEndpoint.sendMany": async ({ worker, address }, wrong) => (await worker.connect(address)).sendMany([], wrong),
  "UcxEndpoint.recvMany": async ({ worker, address }, wrong) => (await worker.connect(address)).recvMany(wrong),
  "UcxEndpoint.sendArray": async ({ worker, address }, wrong) =>
    (await worker.connect(address)).sendArray(new Uint8Array(1), wrong),
  "UcxEndpoint.recvArray": async ({ worker, address }, wrong) => (await worker.connect(address)).recvArray(wrong),
  "UcxWorker.recvArray": ({ worker }, wrong) => worker.recvArray(wrong),
  "UcxWorker.close": ({ worker }, wrong) => worker.close(wrong),
  "UcxWorker.recvMany": ({ worker }, wrong) => worker.recvMany(wrong),
  "UcxEndpoint.close": async ({ worker, address }, wrong) => (await worker.connect(address)).close(wrong),
  "UnixSocket.connect": (_, wrong) => api.UnixSocket.connect("@nobody", wrong),
  "UnixSocket.send": ({ socket }, wrong) => socket.send(new Uint8Array(1), [], wrong),
  "UnixSocket.receive": ({ socket }, wrong) => socket.receive(wrong),
  "UnixListener.listen": (_, wrong) => api.UnixListener.listen(`@causeway-options-${process.pid}-2`, wrong),
  "UnixListener.accept": ({ listener }, wrong) => listener.accept(wrong),
};

function asObject(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {};
}

const found = functionsWithOptions();

test("every public function that takes options is called here", () => {
  assert(found.size > 50, `${found.size} functions found`);
  assertEquals(Object.keys(calls).toSorted(), [...found.keys()].toSorted());
});

test("an option that is spelled wrong is a TypeError that names the nearest one", async () => {
  const here = scene();
  const wrong: string[] = [];
  for (const [name, call] of Object.entries(calls)) {
    for (const { name: option } of found.get(name) ?? []) {
      for (const spelled of [`${option}x`, option.slice(0, -1), option.toUpperCase(), `_${option}`]) {
        const error = await errorOf(() => call(here, { [spelled]: 1 }));
        const says = `Unknown option "${spelled}": did you mean ${option}?`;
        if (error instanceof TypeError && error.message.startsWith(says)) continue;
        wrong.push(`${name} with ${spelled}: ${error}`);
      }
    }
  }
  assertEquals(wrong, []);
  here.close();
});

// Of rooms that do not check theirs yet.
const unchecked = /Python|Ucx/;

test("an option that is true or false is nothing else", async () => {
  const here = scene();
  const wrong: string[] = [];
  let tried = 0;
  for (const [name, call] of Object.entries(calls)) {
    if (unchecked.test(name)) continue;
    for (const { name: option, isBoolean } of found.get(name) ?? []) {
      if (!isBoolean) continue;
      tried++;
      for (const [given, shown] of [["no", '"no"'], [1, "1"], [null, "null"], [Symbol("x"), "Symbol(x)"]]) {
        const error = await errorOf(() => call(here, { [option]: given }));
        const says = `Expected ${option} to be true or false, got ${String(shown)}`;
        if (error instanceof TypeError && error.message === says) continue;
        wrong.push(`${name} with ${option} ${String(shown)}: ${error}`);
      }
      const error = await errorOf(() => call(here, { [option]: undefined }));
      if (error instanceof TypeError && error.message.includes("true or false")) wrong.push(`${name}: ${error}`);
    }
  }
  assertEquals(wrong, []);
  assert(tried > 15, `${tried} options found`);
  here.close();
});

test("the error for an option unlike any other lists the options, without a guess", () => {
  const known = { host: true, port: true, backlog: true };
  assertThrows(
    () => checkOptions({ tls: true }, known as never),
    TypeError,
    'Unknown option "tls". The options are host, port, backlog.',
  );
  assertThrows(() => checkOptions({ prt: 1 }, known as never), TypeError, "did you mean port?");
  assertThrows(() => checkOptions({ zzz: 1 }, { host: true } as never), TypeError, "The only one is host.");
});

test("options that are not an object are refused", async () => {
  const here = scene();
  // The Arrow protocol's methods ignore a value without members, and the others destructure the options to add more.
  const lenient = /[aA]rrow(Device|_c_)|fromBuffer|new DeviceMemoryResource/;
  for (const [name, call] of Object.entries(calls)) {
    if (lenient.test(name) && name !== "StridedMemoryView.fromArrowDevice") continue;
    const error = await errorOf(() => call(here, 1024));
    assert(error instanceof TypeError, `${name}: ${error}`);
    assert(error.message.startsWith("Expected an object of options ("), `${name}: ${error}`);
  }
  here.close();
});

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
    return null;
  } catch (error) {
    return error;
  }
}

test("options are accepted exactly if all of them are known, whatever they are", () => {
  const known = { stream: true, tag: true, signal: true } as const;
  const name = fc.oneof(
    fc.constantFrom("stream", "tag", "signal", "toString", "__proto__", "constructor"),
    fc.string(),
  );
  check(
    fc.property(fc.uniqueArray(name), fc.anything(), (names, value) => {
      const options = Object.fromEntries(names.map((name) => [name, value]));
      const error = (() => {
        try {
          checkOptions<object>(options, known);
          return null;
        } catch (error) {
          return error;
        }
      })();
      const areKnown = names.every((name) => Object.hasOwn(known, name));
      assertEquals(error instanceof TypeError, !areKnown);
    }),
    1000,
  );
});
