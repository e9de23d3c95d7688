/**
 * Parses PTX text into a syntax tree. Names are left unresolved: their meaning depends on the scope and is resolved
 * when code is generated.
 *
 * @module
 */
import { PtxError } from "./error.ts";
import type {
  Float,
  FunctionSyntax,
  Initial,
  Instruction,
  ModuleSyntax,
  Operand,
  Statement,
  StateSpace,
  Variable,
} from "./syntax.ts";
import { type Token, tokenize } from "./tokens.ts";
import { type ScalarType, scalarTypes } from "./types.ts";

const spaces: ReadonlyMap<string, StateSpace> = new Map([
  [".global", "global"],
  [".const", "const"],
  [".shared", "shared"],
  [".local", "local"],
  [".param", "param"],
]);

/** Directives of an entry that constrain its launch. Limits on registers and residency have no effect here. */
const launchDirectives = new Set([".minnctapersm", ".maxnreg", ".maxclusterrank", ".noreturn"]);

/** What the variables of one declaration share. */
interface Elements {
  readonly type: ScalarType;
  /** Bytes of each element, of all its lanes. */
  readonly bytes: number;
  readonly align: number;
}

/** Reads a float literal: the bits as written (`0f`, `0d`), or decimal digits. */
function readFloat(text: string): Float {
  const bits = new DataView(new ArrayBuffer(8));
  if (/^0f/i.test(text)) {
    const single = Number.parseInt(text.slice(2), 16);
    bits.setUint32(0, single);
    return { kind: "float", value: bits.getFloat32(0), single, double: null };
  }
  if (/^0d/i.test(text)) {
    const double = BigInt(`0x${text.slice(2)}`);
    bits.setBigUint64(0, double);
    return { kind: "float", value: bits.getFloat64(0), single: null, double };
  }
  return { kind: "float", value: Number(text), single: null, double: null };
}

function readInteger(text: string): bigint {
  const digits = text.replace(/U$/, "");
  return /^0[0-7]+$/.test(digits) ? BigInt(`0o${digits.slice(1)}`) : BigInt(digits);
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  get #token(): Token {
    const token = this.#tokens[Math.min(this.#at, this.#tokens.length - 1)];
    if (token === undefined) throw new PtxError(1, "the text is empty");
    return token;
  }

  #next(): Token {
    const token = this.#token;
    this.#at++;
    return token;
  }

  #is(text: string): boolean {
    return this.#token.text === text;
  }

  #take(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#at++;
    return true;
  }

  #expect(text: string): Token {
    if (!this.#is(text)) this.#fail(`expected "${text}", got "${this.#token.text}"`);
    return this.#next();
  }

  #kind(kind: Token["kind"], what: string): string {
    if (this.#token.kind !== kind) this.#fail(`expected ${what}, got "${this.#token.text}"`);
    return this.#next().text;
  }

  #fail(what: string): never {
    throw new PtxError(this.#token.line, what);
  }

  /** Parses an integer with its sign. */
  #integer(): bigint {
    const negative = this.#take("-");
    const value = readInteger(this.#kind("integer", "an integer"));
    return negative ? -value : value;
  }

  module(): ModuleSyntax {
    const variables: Variable[] = [];
    const functions: FunctionSyntax[] = [];
    while (this.#token.kind !== "end") {
      if (this.#skipped()) continue;
      let external = false;
      for (;;) {
        if (this.#take(".extern")) external = true;
        else if (!this.#take(".visible") && !this.#take(".weak") && !this.#take(".common")) break;
      }
      if (this.#is(".entry") || this.#is(".func")) functions.push(this.#function());
      else if (spaces.has(this.#token.text)) variables.push(...this.#variables(external));
      else this.#fail(`the directive ${this.#token.text} is not understood`);
    }
    return { variables, functions };
  }

  /** Skips a directive that does not affect results: versions, source locations. Returns whether there was one. */
  #skipped(): boolean {
    const { text, line } = this.#token;
    switch (text) {
      case ".version":
      case ".target":
      case ".file":
      case ".loc":
        // These have no terminator: they end with the line.
        this.#next();
        while (this.#token.line === line && this.#token.kind !== "end") this.#next();
        return true;
      case ".address_size": {
        this.#next();
        const bits = this.#integer();
        if (bits !== 64n) throw new PtxError(line, `addresses of ${bits} bits are not supported, only 64`);
        return true;
      }
      case ".pragma":
        this.#next();
        do this.#kind("string", "a string"); while (this.#take(","));
        this.#expect(";");
        return true;
      case ".section":
        this.#next();
        while (!this.#is("{") && this.#token.kind !== "end") this.#next();
        while (!this.#is("}") && this.#token.kind !== "end") this.#next();
        this.#expect("}");
        return true;
    }
    return false;
  }

  #function(): FunctionSyntax {
    const { text: keyword, line } = this.#next();
    const isEntry = keyword === ".entry";
    const results = !isEntry && this.#is("(") ? this.#params() : [];
    const name = this.#kind("word", "the name of a function");
    const params = this.#is("(") ? this.#params() : [];
    let maxThreads: number | null = null;
    while (this.#token.kind === "dot") {
      const { text: directive } = this.#token;
      if (directive === ".maxntid" || directive === ".reqntid") {
        this.#next();
        maxThreads = this.#integers().reduce((product, value) => product * Number(value), 1);
      } else if (directive === ".pragma") {
        this.#skipped();
      } else if (launchDirectives.has(directive)) {
        this.#next();
        if (/^[0-9]/.test(this.#token.text)) this.#integers();
      } else {
        this.#fail(`the directive ${directive} is not understood`);
      }
    }
    const body = this.#take(";") ? null : this.#block();
    return { line, name, isEntry, results, params, maxThreads, body };
  }

  #integers(): bigint[] {
    const values = [this.#integer()];
    while (this.#take(",")) values.push(this.#integer());
    return values;
  }

  #params(): Variable[] {
    const params: Variable[] = [];
    this.#expect("(");
    while (!this.#is(")")) {
      if (!this.#is(".param")) this.#fail(`expected .param, got "${this.#token.text}"`);
      const { line } = this.#next();
      params.push(this.#named("param", false, line, this.#elements()));
      if (!this.#take(",")) break;
    }
    this.#expect(")");
    return params;
  }

  #type(): ScalarType {
    const { text } = this.#token;
    const type = scalarTypes.get(text.slice(1));
    if (!text.startsWith(".") || type === undefined) this.#fail(`expected a type, got "${text}"`);
    this.#next();
    return type;
  }

  /** Parses a declaration of one or more variables, with its semicolon. */
  #variables(external: boolean): Variable[] {
    const { text, line } = this.#next();
    const space = spaces.get(text);
    if (space === undefined) throw new PtxError(line, `expected a state space, got "${text}"`);
    const elements = this.#elements();
    const variables: Variable[] = [];
    do variables.push(this.#named(space, external, line, elements)); while (this.#take(","));
    this.#expect(";");
    return variables;
  }

  /** Parses what precedes the names of variables: alignment, lanes and type. */
  #elements(): Elements {
    let align: number | null = null;
    let lanes = 1;
    for (;;) {
      if (this.#take(".align")) align = Number(this.#integer());
      else if (this.#take(".v2")) lanes = 2;
      else if (this.#take(".v4")) lanes = 4;
      else if (this.#token.kind === "dot" && scalarTypes.has(this.#token.text.slice(1))) {
        const type = this.#type();
        if (this.#take(".ptr")) {
          // The pointee's space and alignment: a hint to the compiler.
          for (const hint of [".global", ".const", ".shared", ".local"]) this.#take(hint);
          if (this.#take(".align")) this.#integer();
        }
        return { type, bytes: type.bytes * lanes, align: align ?? type.bytes * lanes };
      } else this.#fail(`${this.#token.text} is not understood in a declaration`);
    }
  }

  /** Parses a variable's name, lengths and initialiser. */
  #named(space: StateSpace, external: boolean, line: number, { type, bytes, align }: Elements): Variable {
    const name = this.#kind("word", "the name of a variable");
    let size: number | null = bytes;
    while (this.#take("[")) {
      if (this.#take("]")) {
        size = null;
      } else {
        const length = this.#integer();
        if (size !== null) size *= Number(length);
        this.#expect("]");
      }
    }
    const initial = this.#take("=") ? this.#initial() : [];
    if (size === null && initial.length > 0) size = initial.length * type.bytes;
    return { line, space, name, type, align, size, external, initial };
  }

  #initial(): Initial[] {
    if (!this.#take("{")) return [this.#initialValue()];
    const values: Initial[] = [];
    while (!this.#is("}")) {
      values.push(...(this.#is("{") ? this.#initial() : [this.#initialValue()]));
      if (!this.#take(",")) break;
    }
    this.#expect("}");
    return values;
  }

  #initialValue(): Initial {
    if (this.#token.kind === "integer" && this.#tokens[this.#at + 1]?.text === "(") {
      const mask = this.#integer();
      this.#expect("(");
      const { line } = this.#token;
      const address = this.#initialValue();
      if (address.kind !== "symbol" || address.mask !== null) throw new PtxError(line, "expected a variable's name");
      this.#expect(")");
      return { ...address, mask };
    }
    if (this.#token.kind !== "word") return this.#number();
    const text = this.#next().text;
    const generic = text === "generic" && this.#take("(");
    const name = generic ? this.#kind("word", "the name of a variable") : text;
    if (generic) this.#expect(")");
    return { kind: "symbol", name, offset: this.#offset(), mask: null };
  }

  /** Parses a number with its sign. */
  #number(): Float | { kind: "integer"; value: bigint } {
    const { kind, text } = this.#token;
    if (kind === "float") return readFloat(this.#next().text);
    if (text !== "-" || this.#tokens[this.#at + 1]?.kind !== "float") {
      return { kind: "integer", value: this.#integer() };
    }
    this.#next();
    return { kind: "float", value: -readFloat(this.#next().text).value, single: null, double: null };
  }

  /** Parses what may follow a name: an offset. */
  #offset(): bigint {
    return this.#take("+") ? this.#integer() : 0n;
  }

  #block(): Statement[] {
    this.#expect("{");
    const statements: Statement[] = [];
    while (!this.#take("}")) {
      if (this.#token.kind === "end") this.#fail("the body of a function does not end");
      if (!this.#skipped()) statements.push(...this.#statement());
    }
    return statements;
  }

  #statement(): Statement[] {
    const { kind, text, line } = this.#token;
    if (text === "{") return [{ kind: "block", statements: this.#block() }];
    if (text === ";") {
      this.#next();
      return [];
    }
    if (text === ".reg") return this.#registers();
    if (spaces.has(text)) return this.#variables(false).map((variable) => ({ kind: "variable", variable }));
    if (kind === "word" && this.#tokens[this.#at + 1]?.text === ":") {
      this.#next();
      this.#next();
      if (this.#is(".callprototype")) this.#fail("calls through pointers (.callprototype) are not supported");
      if (!this.#take(".branchtargets")) return [{ kind: "label", line, name: text }];
      const labels = [this.#kind("word", "a label")];
      while (this.#take(",")) labels.push(this.#kind("word", "a label"));
      this.#expect(";");
      return [{ kind: "targets", line, name: text, labels }];
    }
    if (kind === "dot") this.#fail(`the directive ${text} is not understood`);
    return [{ kind: "instruction", instruction: this.#instruction() }];
  }

  #registers(): Statement[] {
    const { line } = this.#expect(".reg");
    const type = this.#type();
    const statements: Statement[] = [];
    do {
      const name = this.#kind("word", "the name of a register");
      let count: number | null = null;
      if (this.#take("<")) {
        count = Number(this.#integer());
        this.#expect(">");
      }
      statements.push({ kind: "registers", line, type, name, count });
    } while (this.#take(","));
    this.#expect(";");
    return statements;
  }

  #instruction(): Instruction {
    const { line } = this.#token;
    let guard: Instruction["guard"] = null;
    if (this.#take("@")) {
      const negated = this.#take("!");
      guard = { negated, name: this.#kind("word", "a predicate") };
    }
    const [opcode = "", ...modifiers] = this.#kind("word", "an instruction").split(".");
    const operands: Operand[] = [];
    if (!this.#is(";")) {
      do operands.push(this.#operand()); while (this.#take(","));
    }
    this.#expect(";");
    return { line, guard, opcode, modifiers, operands };
  }

  #operand(): Operand {
    const first = this.#single();
    return this.#take("|") ? { kind: "pair", first, second: this.#single() } : first;
  }

  #single(): Operand {
    const { kind, text } = this.#token;
    if (text === "{" || text === "(") {
      this.#next();
      const end = text === "{" ? "}" : ")";
      const items: Operand[] = [];
      while (!this.#is(end)) {
        items.push(this.#operand());
        if (!this.#take(",")) break;
      }
      this.#expect(end);
      return { kind: text === "{" ? "vector" : "list", items };
    }
    if (text === "[") return this.#address();
    if (text === "!") {
      this.#next();
      return { kind: "not", name: this.#kind("word", "a predicate") };
    }
    if (kind === "word") {
      this.#next();
      return { kind: "name", name: text, offset: this.#offset() };
    }
    return this.#number();
  }

  #address(): Operand {
    this.#expect("[");
    const base = this.#token.kind === "word" ? this.#next().text : null;
    const offset = base === null || this.#is("-") ? this.#integer() : this.#offset();
    if (base !== null && this.#is(",")) {
      // A texture or surface and coordinates, for instructions that are not understood, and named when refused.
      const items: Operand[] = [{ kind: "name", name: base, offset }];
      while (this.#take(",")) items.push(this.#operand());
      this.#expect("]");
      return { kind: "list", items };
    }
    this.#expect("]");
    return { kind: "address", base, offset };
  }
}

/**
 * Parses a module.
 *
 * @throws {PtxError} for an unsupported directive or a syntax error
 */
export function parse(text: string): ModuleSyntax {
  return new Parser(text).module();
}
