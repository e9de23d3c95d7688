import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { FfiError } from "../../src/ffi/errors.ts";
import { libc } from "../../src/ffi/libc.ts";
import { checkMemory } from "../../src/ffi/errors.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { check, fc } from "../support/property.ts";
import { isBun, runScriptForJson, type ScriptOptions } from "../support/child.ts";
import { collectGarbage } from "../support/collect.ts";
import { needs } from "../support/needs.ts";
import { answering, missingPrompts } from "../support/prompts.ts";

/** Runs a script of `children/`. */
function askChild(name: string, args: readonly string[], options: ScriptOptions): Promise<unknown> {
  return runScriptForJson(new URL(`./children/${name}.ts`, import.meta.url), { isBare: true, args, ...options });
}

/** The math library, as the loader opens it. */
function libm(): bigint {
  return libc().loading.dlopen(cString("libm.so.6"), 2);
}

test("the port names its runtime and platform as the process knows them", () => {
  const { runtime, platform } = ffiPort();
  assertEquals(runtime, { name: isBun ? "bun" : "deno", version: process.versions[isBun ? "bun" : "deno"] ?? "" });
  const arch = process.arch === "x64" ? "x86_64" : process.arch === "arm64" ? "aarch64" : "other";
  assertEquals(platform, { os: process.platform, arch });
});

for (const [name, path, open] of [["libc.so.6", "libc.so.6", () => 0n], ["libm.so.6", "libm.so.6", libm]] as const) {
  test(`${name}: an optional symbol that is missing is null, the others work`, () => {
    const { ffs, cos, no_such_symbol } = ffiPort().bind(path, open(), {
      ffs: { args: ["i32"], returns: "i32", optional: true },
      cos: { args: ["f64"], returns: "f64", optional: true },
      no_such_symbol: { args: ["i32"], returns: "i32", optional: true },
    });
    assertEquals(no_such_symbol, null);
    if (name === "libc.so.6") assertEquals(ffs?.(8), 4);
    else assertEquals(cos?.(0), 1);
  });

  test(`${name}: a group in which every symbol is missing and optional is all null`, () => {
    const group = { no_such_symbol: { args: ["i32"], returns: "i32", optional: true } } as const;
    assertEquals(ffiPort().bind(path, open(), group).no_such_symbol, null);
  });

  test(`${name}: a missing symbol that is not optional is named in the error`, () => {
    const error = assertThrows(() =>
      ffiPort().bind(path, open(), {
        abs: { args: ["i32"], returns: "i32", optional: true },
        no_such_symbol: { args: ["i32"], returns: "i32" },
      }), FfiError);
    assertMatch(error.message, new RegExp(`^Cannot bind ${name}: .*no_such_symbol`));
  });
}

/** Grants of less than all FFI. */
const partial = [
  ["--deny-net"],
  ["--deny-ffi"],
  ["--allow-ffi=/usr/lib", "--allow-env"],
  ["--allow-ffi", "--deny-ffi=/nonexistent"],
];

const noFfi =
  /^FfiError: Cannot .*: Deno did not grant FFI in full\. Run with --allow-ffi \(or -A\), without a path or --deny-ffi/;

// Permissions exist only in Deno: there is nothing to test in Bun.
for (const permissions of isBun ? [] : partial) {
  test(`Deno with ${permissions.join(" ")}: every error says which flag to add`, async () => {
    const outcomes = await askChild("permissions", [], { permissions }) as Record<string, string>;
    assertEquals(Object.keys(outcomes).length, 8);
    for (const [name, outcome] of Object.entries(outcomes)) assertMatch(outcome, noFfi, name);
  });
}

// To the first thing that Deno itself would ask, y was an answer after which nothing worked: it granted one library.
test(...needs(missingPrompts, "who is asked is asked once, and y is enough; after n every error says so"), async () => {
  const child = new URL("./children/permissions.ts", import.meta.url);
  for (const permissions of [[], ["--allow-ffi=/usr/lib"]]) {
    const yes = await answering("y", child, [], permissions);
    assertEquals(yes.questions, ["ffi access"]);
    assertEquals(new Set(Object.values(JSON.parse(yes.last))), new Set(["ok"]), yes.last);
    const no = await answering("n", child, [], permissions);
    assertEquals(no.questions, ["ffi access"]);
    for (const outcome of Object.values(JSON.parse(no.last))) assertMatch(String(outcome), noFfi);
  }
});

test("nothing but --allow-ffi is needed", async () => {
  const outcomes = await askChild("permissions", [], { permissions: ["--allow-ffi"] }) as Record<string, string>;
  assertEquals(Object.keys(outcomes).length, 8);
  assertEquals(new Set(Object.values(outcomes)), new Set(["ok"]), JSON.stringify(outcomes));
});

test("files may be used where both reading and writing are permitted, and asking never prompts", async () => {
  const ask = (...permissions: string[]) => askChild("files", [], { permissions });
  assertEquals(await ask("-A"), true);
  assertEquals(await ask("--allow-read", "--allow-write"), true);
  assertEquals(await ask("--allow-read=/tmp/causeway", "--allow-write=/tmp"), true);
  // Bun has no permissions.
  assertEquals(await ask("--allow-ffi"), isBun);
  assertEquals(await ask("--allow-read"), isBun);
  assertEquals(await ask("--allow-write", "--allow-read=/tmp/causeway/a"), isBun);
});

test("network access is requested where needed, and no more of it; the error says which flag to add", async () => {
  const ask = (permission: string, ...ats: string[]) =>
    askChild("network", ats, { permissions: permission.split(" ") });
  const no = (at: string) =>
    isBun ? "ok" : `FfiError: Cannot call home: Deno did not grant the network at ${at}. Run with --allow-net (or -A).`;
  assertEquals(await ask("-A", "127.0.0.1:0", "nonesuch.invalid"), ["ok", "ok"]);
  assertEquals(await ask("--allow-net", "[::1]:5", "[fe80::1%eth0]:5"), ["ok", "ok"]);
  const here = ["127.0.0.1:5", "[::1]:5", "localhost"];
  assertEquals(await ask("--allow-ffi", ...here), here.map(no));
  assertEquals(await ask("--allow-net=127.0.0.1:5", ...here, "127.0.0.1:6"), [
    "ok",
    ...[...here.slice(1), "127.0.0.1:6"].map(no),
  ]);
  // It was an error of getaddrinfo, EPERM.
  assertEquals(await ask("--allow-net --deny-net=localhost", ...here), ["ok", "ok", no("localhost")]);
});

test("env agrees with the environment of the process, and needs nothing but --allow-ffi", async () => {
  const env = {
    CAUSEWAY_PLAIN: "value",
    CAUSEWAY_EMPTY: "",
    CAUSEWAY_EQUALS: "a=b=c",
    CAUSEWAY_UNICODE: "h\u00e9 \u{1f600} \u65e5",
    CAUSEWAY_BOM: "\ufeffx",
    CAUSEWAY_LINES: " a\n\tb ",
    CAUSEWAY_LONG: "x".repeat(100_000),
  };
  const absent = ["CAUSEWAY_ABSENT", "CAUSEWAY_PLAI", "CAUSEWAY_PLAIN=", "toString", "constructor", "__proto__", ""];
  const names = [...Object.keys(env), ...absent];
  const expected = [...Object.values(env), ...absent.map(() => null)];
  assertEquals(await askChild("env", names, { permissions: ["--allow-ffi"], env }), expected);
});

test("env agrees with the environment of this process, whatever the name", () => {
  const own = Object.entries(process.env);
  assert(own.length > 0);
  for (const [name, value] of own) assertEquals(ffiPort().env(name), value, name);
  const known = new Map(own);
  const name = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...own.map(([name]) => `${name}\0x`)));
  check(
    fc.property(name.filter((name) => name.isWellFormed()), (name) => {
      assertEquals(ffiPort().env(name), known.get(name));
    }),
    200,
  );
});

test("env sees what the process sets later", () => {
  process.env["CAUSEWAY_TEST_LATER"] = "now";
  assertEquals(ffiPort().env("CAUSEWAY_TEST_LATER"), "now");
  delete process.env["CAUSEWAY_TEST_LATER"];
  assertEquals(ffiPort().env("CAUSEWAY_TEST_LATER"), undefined);
});

test("memory shows what C writes, and C sees what JavaScript writes", () => {
  const port = ffiPort();
  const { loading, memory } = libc();
  check(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 20_000 }), fc.integer({ min: 0, max: 255 }), (bytes, fill) => {
      const size = BigInt(bytes.length);
      const source = loading.malloc(size);
      const target = loading.malloc(size);
      try {
        const seen = new Uint8Array(port.memory(target, bytes.length));
        assertEquals(seen.length, bytes.length);
        memory.memset(target, fill, size);
        assertEquals(seen, new Uint8Array(bytes.length).fill(fill));
        new Uint8Array(port.memory(source, bytes.length)).set(bytes);
        memory.memcpy(target, source, size);
        assertEquals(seen, new Uint8Array(bytes));
        // A second view of the same memory shares it.
        new Uint8Array(port.memory(target, bytes.length)).fill(fill);
        assertEquals(seen, new Uint8Array(bytes.length).fill(fill));
      } finally {
        loading.free(source);
        loading.free(target);
      }
    }),
    100,
  );
});

test("memory of length 0 is an empty buffer, at any address", () => {
  const port = ffiPort();
  assertEquals(port.memory(0n, 0).byteLength, 0);
  const block = libc().loading.malloc(8n);
  assertEquals(port.memory(block, 0).byteLength, 0);
  libc().loading.free(block);
});

test("memory that cannot be viewed is refused", () => {
  assertThrows(() => ffiPort().memory(0n, 8), RangeError, "Cannot view 8 bytes of memory at NULL");
  for (const length of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(() => ffiPort().memory(4096n, length), RangeError, `Cannot view ${length} bytes`);
  }
});

test("as much memory can be viewed at once as the port says, and no more", () => {
  const port = ffiPort();
  const most = Math.min(port.maxArrayBytes, 2 ** 33);
  assertEquals(port.memory(4096n, most).byteLength, most);
  assertThrows(() => port.memory(4096n, port.maxArrayBytes + 1), RangeError, "Cannot view");
  assertThrows(() => checkMemory(4096n, 9, 8), RangeError, "Cannot view 9 bytes of memory as one array");
});

test("memory() neither owns nor keeps alive: C's block outlives every view of it", async () => {
  const { loading } = libc();
  const block = loading.malloc(4096n);
  for (let i = 0; i < 2000; i++) new Uint8Array(ffiPort().memory(block, 4096))[i] = i % 251;
  await collectGarbage();
  const seen = new Uint8Array(ffiPort().memory(block, 4096));
  for (let i = 0; i < 2000; i++) assertEquals(seen[i], i % 251);
  loading.free(block);
});

test("a function and a callback live as long as they are used, whatever the garbage collector does", async () => {
  const port = ffiPort();
  const description = { args: ["i32"], returns: "i32" } as const;
  // Like the release callbacks, keep only the addresses.
  const addresses = Array.from({ length: 50 }, (_, i) => port.callback(description, (x) => x + i).address);
  const functions = addresses.map((address) => port.functionAt(address, description));
  await collectGarbage();
  for (let i = 0; i < 200; i++) port.callback(description, (x) => -x).close(); // reuses whatever was freed
  await collectGarbage();
  for (const [i, f] of functions.entries()) assertEquals(f(1000), 1000 + i);
});

test("an address that is bound repeatedly is one function for each of its types, and works by that type", () => {
  const port = ffiPort();
  const address = libc().loading.dlsym(0n, cString("labs"));
  const bind = () => port.functionAt(address, { args: ["i64"], returns: "i64" });
  const bindAsOther = () => port.functionAt(address, { args: ["i32"], returns: "i64" });
  const different = new Set(Array.from({ length: 50 }, (_, i) => i % 2 === 0 ? bind() : bindAsOther())).size;
  // Bun never frees the code of a function: each wait for a simulated stream leaked 500 bytes. Deno compiles nothing.
  if (isBun) assertEquals(different, 2);
  assertEquals([bind()(-3n), bindAsOther()(5)].map(BigInt), [3n, 5n]);
  const other = libc().loading.dlsym(0n, cString("toupper"));
  assertEquals(port.functionAt(other, { args: ["i32"], returns: "i32" })(97), 65);
});

test("a function at NULL is refused when it is bound, not when it is called", () => {
  const nowhere = () => ffiPort().functionAt(0n, { args: [], returns: "void" });
  assertThrows(nowhere, RangeError, "Cannot call a function at NULL");
});
