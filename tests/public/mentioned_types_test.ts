/**
 * Every type that a program may have to name can be imported: each type that a public declaration mentions is public
 * itself, at the root or on a subpath, except those that no program is meant to name. An error that is caught can be
 * told by its class, too, with nothing but the subpath that threw it.
 */
import { assert, assertEquals } from "@std/assert";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { patiently } from "../support/child.ts";
import { testOnce } from "../support/once.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const doors = ["mod.ts", ...readdirSync(`${root}/src/public`).map((file) => `src/public/${file}`)];

/** Types that no program names: those the compiler infers, and those only the package passes to its constructors. */
const kept: Readonly<Record<string, readonly string[]>> = {
  "inferred by the compiler from the arguments of functions that make, view and query arrays": [
    "Bounds",
    "DTypeNameOfValue",
    "NestedScalars",
    "NestedTypedArrays",
    "RangeBound",
  ],
  "parts of CudaDriver and SimulateOptions, which are public as a whole": ["DriverGroups", "DriverTraits", "LoadPtx"],
  "given to constructors that only this package calls": [
    "Acceptor",
    "ArgumentSlots",
    "ArrayHome",
    "DTypeSpec",
    "EndpointContext",
    "EndpointOperations",
    "Exception",
    "ExportStates",
    "ExportedStream",
    "GraphResources",
    "MakeMemory",
    "MessageContext",
    "MessageData",
    "Operation",
    "PendingConnections",
    "PoolOfPeers",
    "RawNode",
    "Receiver",
    "Arrived",
    "RegionContext",
    "ReleaseState",
    "RemoteKeys",
    "ReportParts",
    "TensorState",
    "WorkerContext",
  ],
};

/** The modules that programs import, as the compiler sees them. */
function openDoors(): { readonly checker: ts.TypeChecker; readonly modules: ReadonlyMap<string, ts.Symbol> } {
  const program = ts.createProgram(doors.map((door) => root + door), {
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    allowImportingTsExtensions: true,
    noEmit: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const modules = new Map<string, ts.Symbol>();
  for (const door of doors) {
    const file = program.getSourceFile(root + door);
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
    assert(module !== undefined, door);
    modules.set(door, module);
  }
  return { checker, modules };
}

/** The original symbol behind a name, through any re-exports. */
function origin(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol {
  return (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
}

function isHidden(member: ts.ClassElement | ts.TypeElement): boolean {
  const { name } = member;
  if (name !== undefined && (ts.isPrivateIdentifier(name) || ts.isComputedPropertyName(name))) return true;
  if (ts.getJSDocTags(member).some(({ tagName }) => tagName.text === "internal")) return true;
  return (ts.getCombinedModifierFlags(member) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0;
}

/** The parts of a declaration that its user sees: neither function bodies nor private or internal members. */
function partsOf(node: ts.Node): ts.Node[] {
  if (ts.isClassDeclaration(node)) {
    const members = node.members.filter((member) => !isHidden(member)).flatMap(partsOf);
    return [...node.typeParameters ?? [], ...node.heritageClauses ?? [], ...members];
  }
  if (ts.isFunctionLike(node)) {
    const parameters = node.parameters.flatMap(({ type }) => type ?? []);
    return [...node.typeParameters ?? [], ...parameters, ...node.type === undefined ? [] : [node.type]];
  }
  if (ts.isPropertyDeclaration(node) || ts.isVariableDeclaration(node)) {
    return node.type === undefined ? [] : [node.type];
  }
  return ts.isClassStaticBlockDeclaration(node) ? [] : [node];
}

/** The types of this package that a declaration mentions. */
function mentionedBy(checker: ts.TypeChecker, declaration: ts.Node): ts.Symbol[] {
  const found: ts.Symbol[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTypeReferenceNode(node) || ts.isExpressionWithTypeArguments(node)) {
      const symbol = checker.getSymbolAtLocation(ts.isTypeReferenceNode(node) ? node.typeName : node.expression);
      if (symbol !== undefined) found.push(origin(checker, symbol));
    }
    ts.forEachChild(node, visit);
  };
  for (const part of partsOf(declaration)) visit(part);
  return found.filter(({ flags, declarations }) => {
    const file = declarations?.[0]?.getSourceFile().fileName ?? "";
    return (flags & ts.SymbolFlags.TypeParameter) === 0 && file.startsWith(root) && !file.includes("node_modules");
  });
}

testOnce(
  "every type that a public declaration mentions can be imported, or is listed here with a reason",
  patiently,
  () => {
    const { checker, modules } = openDoors();
    const exported = new Map<ts.Symbol, string[]>();
    for (const [door, module] of modules) {
      for (const symbol of checker.getExportsOfModule(module).map((one) => origin(checker, one))) {
        exported.set(symbol, [...exported.get(symbol) ?? [], door]);
      }
    }
    assert(exported.size > 200);
    const missing = new Map<string, string>();
    for (const symbol of exported.keys()) {
      for (const declaration of symbol.declarations ?? []) {
        for (const type of mentionedBy(checker, declaration)) {
          if (!exported.has(type)) missing.set(type.name, symbol.name);
        }
      }
    }
    const where = [...missing].map(([type, by]) => `${type} by ${by}`).join(", ");
    assertEquals([...missing.keys()].sort(), Object.values(kept).flat().sort(), where);
  },
);

/** The names of the classes that a declaration and its members say they throw: `@throws {CudaError} if ...`. */
function thrownBy(declaration: ts.Node): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isBlock(node)) return;
    const comments = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).map((comment) => comment.getText());
    for (const [, classes = ""] of comments.join().matchAll(/@throws \{(\w[^}]*)\}/g)) {
      found.push(...classes.split(" | "));
    }
    ts.forEachChild(node, visit);
  };
  visit(declaration);
  return found;
}

testOnce(
  "a class that a subpath says it throws can be imported from it, unless it is JavaScript's own",
  patiently,
  () => {
    const { checker, modules } = openDoors();
    const missing: string[] = [];
    let count = 0;
    for (const [door, module] of modules) {
      const names = new Set(checker.getExportsOfModule(module).map(({ name }) => name));
      for (const symbol of checker.getExportsOfModule(module).map((one) => origin(checker, one))) {
        const members = checker.getDeclaredTypeOfSymbol(symbol).getProperties(); // those of a class before it, too
        const own = [symbol, ...members].flatMap(({ declarations = [] }) => declarations)
          .filter((one) => one.getSourceFile().fileName.startsWith(`${root}src/`));
        for (const name of own.flatMap(thrownBy).filter((one) => !(one in globalThis))) {
          count++;
          if (!names.has(name)) missing.push(`${door}: ${name}, which ${symbol.name} throws`);
        }
      }
    }
    assert(count > 100, `${count}`);
    assertEquals([...new Set(missing)], []);
  },
);
