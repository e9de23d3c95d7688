/**
 * The declarations that a program can reach. A room's door exports what other rooms use; of that, a file here keeps
 * what the package's own types mention, which is a third, and no types of a runtime.
 *
 * @module
 */
import { dirname, join } from "node:path";
import ts from "typescript";

/** Names that a file must export. */
type Names = Set<string>;

/**
 * Follows the names from the entries, which need all that they export.
 *
 * @param declared the texts of all declarations, by file
 * @returns the texts of the needed declarations; re-exports are reduced to the needed names
 * @throws {Error} if one of them refers to another package
 */
export function neededDeclarations(
  declared: ReadonlyMap<string, string>,
  entries: readonly string[],
): ReadonlyMap<string, string> {
  const needed = new Map<string, Names>();
  const sources = new Map<string, ts.SourceFile>();

  function sourceOf(file: string): ts.SourceFile {
    const known = sources.get(file);
    if (known !== undefined) return known;
    const text = declared.get(file);
    if (text === undefined) throw new Error(`The compiler has declared nothing for ${file}`);
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
    sources.set(file, source);
    return source;
  }

  /** Records that a file must export a name, and follows the name. */
  function need(file: string, name: string): void {
    const names = needed.get(file) ?? new Set();
    const isNew = !needed.has(file);
    needed.set(file, names);
    if (names.has(name)) return;
    names.add(name);
    const { statements } = sourceOf(file);
    for (const statement of statements) {
      if (!ts.isExportDeclaration(statement)) continue;
      const elements = passedOn(statement);
      if (elements === null) throw new Error(`${file} exports without names, which this does not follow`);
      for (const { name: own, propertyName } of elements) {
        if (own.text === name) needFrom(file, statement.moduleSpecifier, (propertyName ?? own).text);
      }
    }
    if (isNew) statements.forEach((statement) => needReferences(file, statement));
  }

  function needFrom(file: string, module: ts.Node | undefined, name: string): void {
    if (module === undefined) return; // a local name
    if (!ts.isStringLiteralLike(module)) throw new Error(`${file} imports what is no name`);
    // A program compiled against the package has no types of Node, Deno or Bun.
    if (!module.text.startsWith(".")) {
      throw new Error(`The types of ${file} refer to ${module.text}: declare them here`);
    }
    need(join(dirname(file), module.text.replace(/\.ts$/, ".d.ts")), name);
  }

  /** Follows the names that the statements of a file mention, other than in re-exports. */
  function needReferences(file: string, node: ts.Node): void {
    if (ts.isImportDeclaration(node)) {
      const { name, namedBindings: bindings } = node.importClause ?? {};
      const isList = bindings !== undefined && ts.isNamedImports(bindings);
      if (name !== undefined || !isList) throw new Error(`${file} imports without names, which this does not follow`);
      for (const { name: own, propertyName } of bindings.elements) {
        needFrom(file, node.moduleSpecifier, (propertyName ?? own).text);
      }
    } else if (ts.isImportTypeNode(node)) {
      const first = node.qualifier === undefined ? undefined : leftmost(node.qualifier);
      if (first === undefined) throw new Error(`${file} imports without names, which this does not follow`);
      needFrom(file, ts.isLiteralTypeNode(node.argument) ? node.argument.literal : node.argument, first);
    }
    if (!ts.isExportDeclaration(node)) ts.forEachChild(node, (child) => needReferences(file, child));
  }

  for (const file of entries) {
    for (const statement of sourceOf(file).statements) {
      const elements = ts.isExportDeclaration(statement) ? passedOn(statement) : null;
      if (elements === null) throw new Error(`${file} has more than lists of what it passes on`);
      for (const { name } of elements) need(file, name.text);
    }
  }
  return new Map([...needed].map(([file, names]) => [file, keeping(sourceOf(file), names)]));
}

function leftmost(name: ts.EntityName): string {
  return ts.isIdentifier(name) ? name.text : leftmost(name.left);
}

/** The list of an `export { ... } from`; null for an `export *`. */
function passedOn({ exportClause }: ts.ExportDeclaration): readonly ts.ExportSpecifier[] | null {
  if (exportClause === undefined || !ts.isNamedExports(exportClause)) return null;
  // Names are identifiers here, not string literals.
  return exportClause.elements;
}

/** The text of a file without the re-exports that are not needed. */
function keeping(source: ts.SourceFile, names: Names): string {
  let text = source.text;
  for (const statement of source.statements.toReversed()) {
    if (!ts.isExportDeclaration(statement) || statement.moduleSpecifier === undefined) continue;
    const kept = (passedOn(statement) ?? []).filter(({ name }) => names.has(name.text));
    if (kept.length === passedOn(statement)?.length) continue;
    const list = kept.map((element) => element.getText(source)).join(", ");
    const type = statement.isTypeOnly ? "type " : "";
    const shorter = kept.length === 0
      ? ""
      : `export ${type}{ ${list} } from ${statement.moduleSpecifier.getText(source)};`;
    text = text.slice(0, statement.getStart(source)) + shorter + text.slice(statement.end);
  }
  return text;
}
