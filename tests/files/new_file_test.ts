/** What is at a path while a file is written, after it was written, and after that has failed. */
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { readNpy, readNpz, StridedMemoryView, SystemError, writeNpy, writeNpz } from "../../mod.ts";
import { createFile } from "../../src/files/new_file.ts";
import { isBun, runScript, runScriptForJson, startScript } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { answering, missingPrompts } from "../support/prompts.ts";
import { check, fc } from "../support/property.ts";
import { scratchFolder } from "../support/scratch.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const view = StridedMemoryView.arange(3);

/** What is at a path before it is written, and what the path is. */
const places = {
  "nothing": (path: string) => path,
  "a file": (path: string) => {
    writeFileSync(path, "before");
    return path;
  },
  "a file of other permissions": (path: string) => {
    writeFileSync(path, "before");
    chmodSync(path, 0o640);
    return path;
  },
  "a link to a file": (path: string) => {
    mkdirSync(`${path}-elsewhere`);
    writeFileSync(`${path}-elsewhere/file`, "before");
    symlinkSync(`${path}-elsewhere/file`, path);
    return path;
  },
  "a file by a relative path": (path: string) => {
    writeFileSync(path, "before");
    return relative(process.cwd(), path);
  },
} as const;

const contentsOf = (path: string) => existsSync(path) ? readFileSync(path, "utf8") : null;

test("what was at a path stays there until the new file is complete, and stays if that fails", async () => {
  const parts = fc.array(fc.string({ unit: "grapheme-ascii", maxLength: 20 }), { maxLength: 4 });
  const names = fc.constantFrom(...Object.keys(places) as (keyof typeof places)[]);
  await check(
    fc.asyncProperty(names, parts, fc.boolean(), fc.boolean(), async (place, written, isUrl, isComplete) => {
      const folder = scratchFolder();
      const path = join(folder, "file.npy");
      const given = places[place](path);
      const [before, mode] = [contentsOf(path), existsSync(path) ? statSync(path).mode : null];
      const link = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : null;
      const entries = readdirSync(folder);
      {
        await using file = createFile(isUrl ? pathToFileURL(given) : given);
        for (const part of written) {
          await file.write(bytes(part));
          assertEquals(contentsOf(path), before);
        }
        if (isComplete) file.commit();
      }
      assertEquals(contentsOf(path), isComplete ? written.join("") : before);
      assertEquals(readdirSync(folder), isComplete && before === null ? ["file.npy"] : entries);
      if (mode !== null) assertEquals(statSync(path).mode, mode);
      if (link !== null) assertEquals(readlinkSync(path), link);
    }),
    100,
  );
});

// A compressed member was still being written when its array could not be read: its last bytes were in the file that
// the program opened next, which had got the same descriptor.
test("a file is closed only when no write to it is under way", async () => {
  let isWritten = false;
  {
    await using file = createFile(join(scratchFolder(), "file.npy"));
    void file.write(new Uint8Array(2 ** 20)).then(() => isWritten = true);
  }
  assert(isWritten);
});

test("a file with several names, and what is no file, is written in place", async () => {
  const path = join(scratchFolder(), "file.npy");
  writeFileSync(path, "before".repeat(100)); // longer than what is written
  linkSync(path, `${path}-too`);
  await writeNpy(path, view);
  using same = await readNpy(`${path}-too`);
  assertEquals([same.toArray(), statSync(path).size], [[0, 1, 2], 128 + view.nbytes]);
  await writeNpy("/dev/null", view);
  assert(statSync("/dev/null").isCharacterDevice());
  const link = join(scratchFolder(), "link.npy");
  symlinkSync(`${link}-target`, link); // which is yet to be made
  await writeNpy(link, view);
  assert(lstatSync(link).isSymbolicLink() && statSync(`${link}-target`).isFile());
});

test("standard output is written where the shell has opened it", async () => {
  const path = join(scratchFolder(), "out.npy");
  const out = openSync(path, "w");
  const { ino } = statSync(path);
  const script = new URL("./write_child.ts", import.meta.url);
  const child = startScript(script, { args: ["/dev/stdout"] }, ["ignore", out, "inherit"]);
  const [code] = await once(child, "close");
  closeSync(out);
  using read = await readNpy(path);
  assertEquals([code, statSync(path).ino, read.toArray()], [0, ino, [0, 1, 2]]);
});

// The file was emptied first, and its remains filled the disk.
test("a write that fails leaves what was there, and nothing else", async () => {
  await assertRejects(() => writeNpy("/dev/full", view), SystemError, "ENOSPC");
  const folder = scratchFolder();
  const [npy, npz] = [join(folder, "a.npy"), join(folder, "b.npz")];
  await writeNpy(npy, view);
  await writeNpz(npz, { view });
  const before = [npy, npz].map((path) => readFileSync(path));
  for (const write of [writeNpy, (path: string, closing: StridedMemoryView) => writeNpz(path, { view, closing })]) {
    const closing = StridedMemoryView.zeros([3_000_000]);
    const failing = write(write === writeNpy ? npy : npz, closing);
    closing.close(); // it must stay open
    await assertRejects(() => failing, TypeError, "closed");
  }
  assertEquals([npy, npz].map((path) => readFileSync(path)), before);
  assertEquals(readdirSync(folder).toSorted(), ["a.npy", "b.npz"]);
});

test("the permissions of a file count when it is replaced, also those that it got meanwhile", async () => {
  const path = join(scratchFolder(), "a.npy");
  writeFileSync(path, "before", { mode: 0o644 });
  const large = StridedMemoryView.zeros([3_000_000]);
  let isFirst = true;
  const makeSecret = () => {
    if (isFirst) chmodSync(path, 0o600);
    isFirst = false;
  };
  await writeNpy(path, large, { onProgress: makeSecret });
  assertEquals([statSync(path).mode & 0o777, statSync(path).size > 6], [0o600, true]);
});

test(
  ...needs(process.getuid?.() === 0 ? null : "it needs root", "a file of another user stays that user's"),
  async () => {
    const folder = scratchFolder();
    const path = join(folder, "a.npy");
    for (const [uid, gid] of [[12345, process.getgid?.() ?? 0], [0, 12345]] as const) {
      writeFileSync(path, "before");
      chownSync(path, uid, gid);
      const before = statSync(path);
      await writeNpy(path, view);
      const after = statSync(path);
      assertEquals([after.ino, after.uid, after.gid], [before.ino, uid, gid]);
      using read = await readNpy(path);
      assertEquals([read.toArray(), readdirSync(folder)], [[0, 1, 2], ["a.npy"]]);
      rmSync(path);
    }
  },
);

test("a program may change its folder while a file is written", async () => {
  const [folder, other, before] = [scratchFolder(), scratchFolder(), process.cwd()];
  try {
    process.chdir(folder);
    await using file = createFile("a.npy");
    await file.write(bytes("new"));
    process.chdir(other);
    file.commit();
  } finally {
    process.chdir(before);
  }
  assertEquals([contentsOf(join(folder, "a.npy")), readdirSync(other)], ["new", []]);
});

test("a folder that goes while a file is written is an error of the system, whichever call notices", async () => {
  const folder = join(scratchFolder(), "folder");
  mkdirSync(folder);
  const path = join(folder, "a.npy");
  const gone = () => rmSync(folder, { recursive: true, force: true });
  await assertRejects(() => writeNpy(path, view, { onProgress: gone }), SystemError, "ENOENT");
});

const mounts = spawnSync("unshare", ["-m", "true"]).status === 0 ? null : "mounting needs root and unshare";
/** Runs a shell script with mounts of its own, in which `write PATH` writes an array. */
function mounted(script: string): string {
  const child = fileURLToPath(new URL("./write_child.ts", import.meta.url));
  const flags = isBun ? "" : "run -A --no-check --quiet --no-lock --node-modules-dir=manual";
  const write =
    `write() { '${process.execPath}' ${flags} '${child}' "$1" 2>&1 | grep -o 'failed with E[A-Z]*' | sort -u; }`;
  const { stdout, stderr } = spawnSync("unshare", ["-m", "bash", "-c", `${write}\n${script}`], { encoding: "utf8" });
  assertEquals(stderr, "");
  return stdout;
}

test(...needs(mounts, "where the disk has no room for another file nothing is written"), () => {
  const folder = scratchFolder();
  const script = `mount -t tmpfs -o nr_inodes=2 none ${folder} && cd ${folder} && echo before > a && write a && cat a`;
  assertEquals(mounted(script), "failed with ENOSPC\nbefore\n");
});

test(...needs(mounts, "a file that is mounted by itself is written, although it cannot be replaced"), () => {
  const folder = scratchFolder();
  writeFileSync(join(folder, "host"), "before");
  writeFileSync(join(folder, "a.npy"), "");
  const script =
    `cd ${folder}\nmount --bind host a.npy\nwrite a.npy\ncmp host a.npy && head -c 6 host | tail -c 5\nls -A`;
  assertEquals(mounted(script), "NUMPYa.npy\nhost\n");
});

test("who reads while others write reads one of their arrays, whole", async () => {
  const folder = scratchFolder();
  const [npy, npz] = ["a.npy", "a.npz"].map((name) => join(folder, name));
  assert(npy !== undefined && npz !== undefined);
  const arrays = [1, 2, 3].map((value) => StridedMemoryView.full([100_000], value));
  const write = async () => {
    for (let i = 0; i < 10; i++) {
      await Promise.all(arrays.flatMap((array) => [writeNpy(npy, array), writeNpz(npz, { array })]));
    }
  };
  await Promise.all(arrays.slice(0, 1).flatMap((array) => [writeNpy(npy, array), writeNpz(npz, { array })]));
  let isOver = false;
  const reads = (async () => {
    for (let i = 0; !isOver; i++) {
      using one = i % 2 === 0 ? await readNpy(npy) : (await readNpz(npz)).get("array");
      const values = new Set(one?.toArray() as number[]);
      assertEquals([values.size, one?.size], [1, 100_000]);
    }
  })();
  await write().finally(() => isOver = true);
  await reads;
  assertEquals(readdirSync(folder).toSorted(), ["a.npy", "a.npz"]);
});

test(
  ...needs(isBun ? "Bun has no permissions" : null, "where only the file may be written it is written in place"),
  async () => {
    const folder = scratchFolder();
    const path = join(folder, "a.npy");
    writeFileSync(path, "before");
    const { ino } = statSync(path);
    for (const [allowed, isSame] of [[path, true], [folder, false]] as const) {
      const files = [`--allow-read=${allowed}`, `--allow-write=${allowed}`];
      const permissions = ["--allow-ffi", ...files];
      const script = new URL("./write_child.ts", import.meta.url);
      const { code, stderr } = await runScript(script, { args: [path], permissions });
      assertEquals(code, 0, stderr);
      using read = await readNpy(path);
      assertEquals([read.toArray(), statSync(path).ino === ino], [[0, 1, 2], isSame]);
    }
  },
);

// Without the permission to look whether it is mapped, the file was truncated: SIGBUS ended the process.
test(
  ...needs(isBun ? "Bun has no permissions" : null, "a mapped file is not written, whatever else Deno permits"),
  async () => {
    const folder = scratchFolder();
    const path = join(folder, "a.npy");
    const script = new URL("./write_mapped_child.ts", import.meta.url);
    const grants = [
      [`--allow-write=${path}`],
      [`--allow-write=${path}`, `--allow-read=${path}`],
      [`--allow-write=${folder}`, `--allow-read=${folder}`],
      ["--allow-write", "--allow-read"],
    ];
    const array = StridedMemoryView.arange(10_000);
    for (const grant of grants) {
      await writeNpy(path, array);
      const permissions = ["--allow-ffi", ...grant];
      const [error, values] = await runScriptForJson(script, { args: [path], permissions }) as [string, number[]];
      assertStringIncludes(error, "a view of it is open", `${grant}`);
      assertEquals(values, array.toArray());
    }
  },
);

test(
  ...needs(missingPrompts, "to write a file, Deno asks for that file alone, whether it is there or not"),
  async () => {
    const path = join(scratchFolder(), "a.npy");
    const script = new URL("./write_child.ts", import.meta.url);
    for (let i = 0; i < 2; i++) {
      const { questions } = await answering("y", script, [path], ["--allow-ffi"]);
      assertEquals(questions, [`write access to "${path}"`]);
      using read = await readNpy(path);
      assertEquals(read.toArray(), [0, 1, 2]);
    }
  },
);
