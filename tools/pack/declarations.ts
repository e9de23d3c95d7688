/**
 * The types, as the compiler declares them: a program compiled against the sources would compile the sources too, under
 * the program's options.
 *
 * @module
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ts from "typescript";
import { type Entry, root } from "./entries.ts";
import { neededDeclarations } from "./needed_declarations.ts";

const host: ts.FormatDiagnosticsHost = {
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => root,
  getNewLine: () => "\n",
};

/** Leaves out what classes have for the other rooms, marked `@internal`: `stripInternal` would leave out types, too. */
const withoutInternals: ts.TransformerFactory<ts.SourceFile | ts.Bundle> = (context) => {
  const isInternal = (node: ts.Node): boolean =>
    ts.isClassElement(node) &&
    ts.getJSDocTags(ts.getOriginalNode(node)).some(({ tagName }) => tagName.text === "internal");
  const visit = (node: ts.Node): ts.Node | undefined =>
    isInternal(node) ? undefined : ts.visitEachChild(node, visit, context);
  return (file) => ts.visitEachChild(file, visit, context);
};

/**
 * Writes the declarations that the entries need, in the folders of their sources.
 *
 * @throws {Error} if a declaration cannot be made, or needs types beyond the language's and the web's
 */
export function declareTypes(all: readonly Entry[], out: string): void {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile).config,
    ts.sys,
    root,
  );
  const program = ts.createProgram(all.map(({ source }) => join(root, source)), {
    ...options,
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    noCheck: true, // `deno task check` does
    rootDir: root,
  });
  const declared = new Map<string, string>();
  const { diagnostics } = program.emit(
    undefined,
    (file, text) => {
      declared.set(relative(root, file), text);
    },
    undefined,
    true,
    { afterDeclarations: [withoutInternals] },
  );
  if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, host));

  const needed = neededDeclarations(declared, all.map(({ source }) => source.replace(/\.ts$/, ".d.ts")));
  for (const [file, text] of needed) {
    const target = join(out, file);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, text.replace(/(\bfrom |\bimport\()"(\.[^"]+)\.ts"/g, '$1"$2.js"'));
  }
}
