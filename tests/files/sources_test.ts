/** Sources of array files, and the error if a file does not exist: the same for every call. */
import { assertEquals, assertInstanceOf, assertRejects } from "@std/assert";
import { mkdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { NpyError, openNpy, readNpy, readNpz, StridedMemoryView, SystemError, writeNpy, writeNpz } from "../../mod.ts";
import type { FileContents } from "../../src/public/files.ts";
import { openVortex, VortexError } from "../../src/public/vortex.ts";
import { check, fc } from "../support/property.ts";
import { scratchFolder } from "../support/scratch.ts";

const folder = scratchFolder();

/** `Bun.file`, where it exists: a Blob that has not been read yet. */
const bun: { file(path: string): Blob } | undefined = Reflect.get(globalThis, "Bun");

/** A file in every form in which it may be passed. */
function formsOf(path: string): Map<string, FileContents> {
  const bytes = new Uint8Array(readFileSync(path));
  const forms = new Map<string, FileContents>([
    ["a path", path],
    ["a file: URL", pathToFileURL(path)],
    ["bytes", bytes],
    ["an ArrayBuffer", bytes.slice().buffer],
    ["a Blob", new Blob([bytes])],
    ["a File", new File([bytes], "numbers.npy")],
    ["a Blob of several parts", new Blob([bytes.subarray(0, 7), new Blob([bytes.subarray(7)])])],
    ["a part of a Blob", new Blob([new Uint8Array(5), bytes, new Uint8Array(3)]).slice(5, 5 + bytes.length)],
  ]);
  if (bun !== undefined) forms.set("Bun.file", bun.file(path));
  return forms;
}

test("an array is the same, whatever its file is read from", async () => {
  const [npy, npz] = [`${folder}/numbers.npy`, `${folder}/numbers.npz`];
  await check(
    fc.asyncProperty(fc.array(fc.double(), { maxLength: 40 }), fc.boolean(), async (numbers, compressed) => {
      const written = Float64Array.from(numbers);
      const view = StridedMemoryView.fromTypedArray(written);
      await writeNpy(npy, view);
      await writeNpz(npz, { a: view, b: view }, { compressed });
      for (const [form, contents] of formsOf(npy)) {
        using back = await readNpy(contents);
        assertEquals(back.toArray(), [...written], form);
      }
      for (const [form, contents] of formsOf(npz)) {
        using back = await readNpz(contents);
        assertEquals(back.get("b")?.toArray(), [...written], form);
      }
    }),
    10,
  );
});

test("a Blob larger than a block is read block by block", async () => {
  const path = `${folder}/large.npy`;
  const large = Int32Array.from({ length: 3 << 20 }, (_, at) => at * 7919);
  await writeNpy(path, StridedMemoryView.fromTypedArray(large));
  const steps: number[] = [];
  using back = await readNpy(new Blob([readFileSync(path)]), { onProgress: (done) => steps.push(done) });
  assertEquals(steps, [0, 8 << 20, 12 << 20]);
  assertEquals(Buffer.compare(back.buffer.bytes(), new Uint8Array(large.buffer)), 0);
});

/** Every call that opens a file. */
const calls: Record<string, (path: string) => unknown> = {
  readNpy,
  "readNpy of a URL": (path) => readNpy(pathToFileURL(path)),
  readNpz,
  openNpy: (path) => Promise.resolve().then(() => openNpy(path)),
  openVortex,
  "openVortex of a URL": (path) => openVortex(pathToFileURL(path)),
  ...bun === undefined ? {} : {
    "readNpy of Bun.file": (path) => readNpy(bun.file(path)),
    "openVortex of Bun.file": (path) => openVortex(bun.file(path)),
  },
};

for (const [name, call] of Object.entries(calls)) {
  test(`${name}: no such file, a folder and a path through a file are a SystemError with the system's code`, async () => {
    mkdirSync(`${folder}/folder`, { recursive: true });
    const wrong = { [`${folder}/none`]: "ENOENT", [`${folder}/folder`]: "EISDIR", "/dev/null/x": "ENOTDIR" };
    for (const [path, code] of Object.entries(wrong)) {
      const error = await assertRejects(async () => await call(path), SystemError, path);
      assertEquals(error.code, code);
    }
  });
}

test("the error for a path that does not exist says what was most likely meant", async () => {
  const view = StridedMemoryView.fromTypedArray(Int8Array.of(1));
  const acts: readonly ((path: string | URL) => unknown)[] = [
    readNpy,
    readNpz,
    openNpy,
    (path) => writeNpy(path, view),
  ];
  const hints: readonly (readonly [path: string | URL, hint: string])[] = [
    [
      "s3://bucket/x.npy",
      "ENOENT. It is not a path. Fetch it first, and pass the bytes: await (await",
    ],
    ["https://example.org/x.npy", "ENOENT. It is not a path. Fetch it first"],
    ["~/causeway/none/x.npy", "ENOENT. Only a shell expands ~ to the home folder: write it out"],
    [
      new URL("https://example.org/x.npy"),
      "https://example.org/x.npy: expected a path or a file: URL. Fetch it first",
    ],
    ...[{}, 5].map((other) => [other as unknown as string, "path"] as const), // some take bytes
  ];
  for (const act of acts) {
    for (const [path, hint] of hints) await assertRejects(async () => await act(path), Error, hint);
    const missing = act === acts[3]
      ? "ENOENT. Its folder does not exist: make it first"
      : "ENOENT. There is no such file";
    for (const path of [`${folder}/none/x`, pathToFileURL(`${folder}/none/x`)]) {
      await assertRejects(async () => await act(path), SystemError, missing);
    }
  }
  await assertRejects(
    () => openVortex("s3://bucket/x.vortex"),
    SystemError,
    "It is not a path. Fetch it first",
  );
});

test("the error for a file of the other kind names what reads it", async () => {
  const view = StridedMemoryView.fromTypedArray(Int8Array.of(1));
  const [one, many] = [`${folder}/kind.npy`, `${folder}/kind.npz`];
  await writeNpy(one, view);
  await writeNpz(many, { view });
  await assertRejects(
    () => readNpy(many),
    NpyError,
    "it is not a .npy file: it is a zip file, as .npz is. Use readNpz",
  );
  await assertRejects(async () => await openNpy(many), NpyError, "Use readNpz");
  await assertRejects(() => readNpz(one), NpyError, "it is not a .npz file: it is a .npy file. Use readNpy");
  await assertRejects(() => readNpz(new Uint8Array(100)), NpyError, "no zip directory at its end");
  await assertRejects(() => readNpy(new Uint8Array(100)), NpyError, "it does not begin with \\x93NUMPY");
  await assertRejects(() => openVortex(one), VortexError, "it is another format, or truncated");
});

test("a file that cannot be made is a SystemError, too", async () => {
  const view = StridedMemoryView.fromTypedArray(Int8Array.of(1));
  const path = `${folder}/none/x`;
  const errors = [
    await assertRejects(() => writeNpy(path, view), SystemError, `Cannot write ${path}: open failed with ENOENT`),
    await assertRejects(() => writeNpz(path, { view }), SystemError, `Cannot write ${path}: open failed with ENOENT`),
  ];
  const none = StridedMemoryView.fromTypedArray(new Int8Array(100)); // Deno's error did not say that it is the system's
  for (const write of [() => writeNpy("/dev/full", none), () => writeNpz("/dev/full", { none })]) {
    errors.push(await assertRejects(write, SystemError, "Cannot write /dev/full: write failed with ENOSPC"));
  }
  for (const { cause } of errors) assertInstanceOf(cause, Error); // the runtime's own error
});

test("anything else is refused with what is expected", async () => {
  for (const wrong of [17, null, undefined, {}, [1, 2], new Float32Array(2)]) {
    await assertRejects(() => readNpy(wrong as never), TypeError, "expected a path, a URL, a Blob, or its bytes");
  }
  await assertRejects(() => readNpy(new URL("https://example.org/a.npy")), TypeError);
  for (const given of [new Response("x"), new Response("x").body]) {
    await assertRejects(() => readNpy(given as never), TypeError, "`await response.bytes()` reads those of a response");
  }
});
