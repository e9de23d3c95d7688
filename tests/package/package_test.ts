/**
 * The npm package: it has what programs need and no more, and works where nothing else is installed. It is made once,
 * and each program that uses it runs in both runtimes.
 */
import { assert, assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { findBun } from "../../tools/bun.ts";
import { patiently } from "../support/child.ts";
import { assertPrinted, type Example, examplesOf } from "../support/examples.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { type Runtime, runtimes } from "../support/runtimes.ts";
import { scratchFolder } from "../support/scratch.ts";
import { installed, root, run } from "./installed.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const readme = read("README.md");
const publicNames: Readonly<Record<string, readonly string[]>> = JSON.parse(read("tests/data/public_names.json"));
const subpaths = Object.keys(publicNames).map((name) => (name === "." ? "causeway" : `causeway/${name}`));

const present = runtimes.filter(({ missing }) => missing === null);
const deno = runtimes.find(({ name }) => name === "deno");
const [npm, node] = ["npm", "node"].map((program) =>
  spawnSync(program, ["--version"]).status === 0 ? null : `no ${program}: apt-get install ${program}, or nodejs.org`
);

/** Writes a file to the project that has the package installed. */
function write(name: string, text: string): string {
  const file = join(installed().project, name);
  writeFileSync(file, text);
  return file;
}

/** Runs a script in a runtime, in the project's folder unless another is given. */
function runIn({ command }: Runtime, file: string, cwd = installed().project): string {
  return run([...command, file], cwd);
}

testOnce("it has what programs import and run, and nothing else", patiently, () => {
  const folder = join(installed().project, "node_modules/causeway");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name !== ".bun-tag" && statSync(join(folder, name)).isFile()); // Bun's own marker
  const isKnown =
    /^dist\/([^/]+\.js|(node|bun|deno)\/\w+\.js|bun\/causeway_compiled\/\w+\.js(\.jsc)?|types\/.+\.d\.ts)$/;
  const other = files.filter((name) => !isKnown.test(name));
  assertEquals(other.sort(), [
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "dist/digits.npy",
    "examples/digits.md", // whose digits they are
    "package.json",
  ]);
  assertEquals(files.filter((name) => /(^|\/)(tests|bench|tools)\/|\bcli\b.*\.d\.ts/.test(name)), []);
  const manifest: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const named = [...JSON.stringify(manifest).matchAll(/"(?:\.\/)?(?<file>dist\/[^"]+)"/g)]
    .map(({ groups }) => groups?.["file"] ?? "");
  assert(named.length > 3 * subpaths.length);
  assertEquals(named.filter((file) => !files.includes(file)), []);
  const compiled = files.filter((name) => name.startsWith("dist/bun/causeway_compiled/"));
  for (const [some, limit] of [[files.filter((name) => !compiled.includes(name)), 4e6], [compiled, 8e6]] as const) {
    const size = some.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    assert(size < limit, `${size} bytes`);
  }
  const code = compiled.filter((name) => name.endsWith(".js"));
  assertEquals(compiled.filter((name) => !code.includes(name)).sort(), code.map((name) => `${name}.jsc`).sort());
});

testOnce("its types declare nothing that is marked as internal", patiently, () => {
  const folder = join(installed().project, "node_modules/causeway/dist/types");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".d.ts"));
  const texts = files.map((name) => readFileSync(join(folder, name), "utf8"));
  assert(texts.some((text) => /\bcreateEvent\(/.test(text)));
  assertEquals(texts.filter((text) => /\bacquireEvent\(/.test(text)), []);
});

testOnce(...needs(npm ?? null, "npm packs it without a warning"), () => {
  const { folder } = installed();
  const { status, stdout, stderr } = spawnSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: folder,
    encoding: "utf8",
  });
  assertEquals({ status, warnings: stderr.split("\n").filter((line) => /warn|error/i.test(line)) }, {
    status: 0,
    warnings: [],
  });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const there = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile());
  assertEquals(files.map(({ path }) => path).sort(), there.sort());
});

testOnce(
  "an uncaught error shows the places in the package's files and in the program, and nothing else",
  patiently,
  () => {
    const file = write(
      "uncaught.js",
      `import { slice, StridedMemoryView } from "causeway";\n\nStridedMemoryView.zeros([3]).get(7);\n`,
    );
    for (const { command: [program = "", ...args] } of present) {
      const { status, stderr } = spawnSync(program, [...args, file], { cwd: installed().project, encoding: "utf8" });
      assertEquals(status, 1);
      const text = stripVTControlCharacters(stderr);
      assert(text.includes("RangeError: Index 7 is out of range for axis 0 with extent 3"), text);
      assert(/uncaught\.js:3:\d+/.test(text), text);
      const [, name = "", line = ""] = /dist\/((?:bun\/causeway_compiled\/)?room_layout\.js):(\d+):\d+/.exec(text) ??
        [];
      const lines = readFileSync(join(installed().project, "node_modules/causeway/dist", name), "utf8").split("\n");
      const thrower = lines[Number(line) - 1] ?? "";
      assert(thrower.includes("RangeError(`Index ${index} is out of range"), `${name}:${line}\n${text}`);
      assert(!/note:|warn|sourcemap/i.test(text), text);
    }
  },
);

testOnce("every subpath exports the names that it exports from the sources", patiently, () => {
  const file = write(
    "names.js",
    `const names = {};
    for (const name of ${JSON.stringify(subpaths)}) names[name] = Object.keys(await import(name)).sort();
    console.log(JSON.stringify(names));`,
  );
  const values = Object.values(publicNames).map((names) => names.filter((name) => !name.startsWith("type ")).sort());
  const expected = Object.fromEntries(subpaths.map((name, i) => [name, values[i]]));
  for (const runtime of present) assertEquals(JSON.parse(runIn(runtime, file)), expected, runtime.name);
});

/** README's examples, as in a program that has the package installed from npm. */
const examples: readonly Example[] = [undefined, "torch"].flatMap((need) =>
  examplesOf(`README.md${need === undefined ? "" : ` (${need})`}`, readme, need)
).map(({ name, code }) => ({ name, code: code.replaceAll("@causeway/causeway", "causeway") }));

for (const version of ["typescript-5.9", "typescript-7"]) {
  const { version: number } = JSON.parse(read(`node_modules/${version}/package.json`)) as { version: string };
  testOnce(`README's examples compile in a strict project with TypeScript ${number}, and then run`, patiently, () => {
    const folder = join(installed().project, version);
    mkdirSync(folder);
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
    const tsc = [...present[0]?.command ?? [], join(root, "node_modules", version, "bin/tsc")];
    run([...tsc, "--init", "--outDir", "out"], folder);
    const config = readFileSync(join(folder, "tsconfig.json"), "utf8");
    const checked = config.replace('"skipLibCheck": true', '"skipLibCheck": false');
    assert(checked !== config && checked.includes('"strict": true') && checked.includes('"module": "nodenext"'));
    write("tsconfig.json", checked);
    write("package.json", '{ "type": "module" }');
    examples.forEach(({ code }, i) => write(`example${i}.ts`, code));
    write("all.ts", subpaths.map((name, i) => `export * as part${i} from ${JSON.stringify(name)};`).join("\n"));
    write(
      "typed.ts",
      `import { StridedMemoryView, type Shape } from "causeway";
      import { StridedLayout } from "causeway/layout";
      // @ts-expect-error it is no text, and would be if it were \`any\`
      export const text: string = StridedMemoryView.fromTypedArray(new Float32Array(1));
      // @ts-expect-error
      export const other: number = new StridedLayout([1], null, 1);
      // @ts-expect-error
      export const shape: Shape = "shape";
      // @ts-expect-error it is of float64
      export const view: StridedMemoryView<"float32"> = StridedMemoryView.zeros([1]);
      // @ts-expect-error there is no such dtype
      export const none = () => StridedMemoryView.zeros([1], "flot32");`,
    );
    run(tsc, folder);
    for (const [i, example] of examples.entries()) {
      if (example.name.includes("torch")) continue; // tests/gpu runs it where torch is
      for (const runtime of present) {
        assertPrinted(example, runIn(runtime, join(folder, "out", `example${i}.js`), root));
      }
    }
  });
}

testOnce("the places of a checker's report are those of the program, not the package's", patiently, () => {
  const file = write(
    "race.js",
    `import { CausalityError, Cuda, DeviceMemoryResource } from "causeway";
    const device = Cuda.simulate({ check: { leaks: false } }).device(0);
    const [one, other] = [device.createStream(), device.createStream()];
    const buffer = new DeviceMemoryResource(device).allocate(64, { stream: one });
    buffer.fill(1, { stream: one });
    try {
      buffer.fill(2, { stream: other });
    } catch (error) {
      if (!(error instanceof CausalityError)) throw error;
      console.log(error.message);
    }
    process.exit(0);`,
  );
  for (const runtime of present) {
    const message = runIn(runtime, file);
    assert(message.includes("race.js:5:12") && message.includes("race.js:7:14"), message);
    assert(!message.includes("dist/"), message);
  }
});

/** A folder with some programs, for use as a PATH without others. */
function pathOf(...programs: readonly string[]): string {
  const folder = scratchFolder();
  for (const name of ["readlink", ...programs]) {
    const file = name === "bun"
      ? findBun()
      : name === "deno"
      ? runtimes.find((one) => one.name === name)?.command[0] ?? ""
      : name;
    const found = file.startsWith("/") ? file : run(["/bin/sh", "-c", `command -v ${file}`], root).trim();
    symlinkSync(found, join(folder, name));
  }
  return folder;
}

/** Runs the project's program `causeway` with a given PATH. */
function causeway(path: string, ...args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  const { project } = installed();
  const program = join(project, "node_modules/.bin/causeway");
  // From a shell, which keeps running: a program whose parent is Bun uses that Bun.
  return spawnSync("/bin/sh", ["-c", '"$0" "$@"; exit $?', program, ...args], {
    cwd: project,
    env: { ...process.env, npm_execpath: "", PATH: path }, // Deno's children inherit omitted variables all the same
    encoding: "utf8",
    timeout: 60_000,
  });
}

testOnce("bunx starts causeway in Bun, also where Bun is on no PATH and Node is", patiently, () => {
  const { project } = installed();
  const path = pathOf(...node === null ? ["node"] : []);
  // In an npm script the variable names npm, and bunx leaves it unchanged.
  for (const npm of ["", "/usr/lib/node_modules/npm/bin/npm-cli.js"]) {
    const env = { ...process.env, npm_execpath: npm, PATH: path };
    const out = run([findBun(), "x", "causeway", "doctor"], project, env);
    assert(out.startsWith("Bun "), out);
  }
});

for (const { name, missing } of runtimes) {
  testOnce(...needs(missing, `causeway runs in ${name} where that is on PATH, and starts its second process`), () => {
    const { status, stdout, stderr } = causeway(pathOf(name), "demo");
    assertEquals(status, 0, stderr);
    assert(stdout.toLowerCase().startsWith(`causeway on ${name}`), stdout);
  });
}

testOnce(...needs(node ?? null, "where there is only Node causeway says what to use instead"), () => {
  const { status, stdout, stderr } = causeway(pathOf("node"), "doctor", "--json");
  assertEquals({ status, stdout }, { status: 1, stdout: "" });
  assert(/Deno or Bun.*bunx causeway doctor --json/s.test(stderr), stderr);
});

testOnce(
  ...needs(node ?? null, "where Node is asked to run causeway it names the runtime to use, with the arguments"),
  () => {
    const { project } = installed();
    const file = join(project, "node_modules/causeway/dist/bin.js");
    const ways: readonly (readonly [programs: readonly string[], says: RegExp])[] = [
      [[], /this is Node\. Neither is on PATH\. Install Bun 1\.4 .* and type: bunx causeway$/],
      [["bun", "deno"], /this is Node\. Type: bunx causeway$/],
      [["deno"], /this is Node\. Type: deno run -A .*\/bin\.js$/],
    ];
    for (const [programs, says] of ways) {
      const path = pathOf("node", ...programs);
      const { status, stderr } = spawnSync(join(path, "node"), [file], {
        env: { ...process.env, PATH: path },
        encoding: "utf8",
      });
      assertEquals(status, 1);
      assert(says.test(stderr.replace(/\n$/, "")), stderr);
    }
  },
);

testOnce(
  ...needs(node ?? null, "in Node layouts work, and everything else is an FfiError that says Deno or Bun"),
  () => {
    const file = write(
      "on_node.js",
      `import { DType, FfiError, slice, StridedLayout } from "causeway";
    import * as layout from "causeway/layout";
    const reversed = new StridedLayout([3, 4], null, 4).sliced(slice(null, null, -1), 2);
    const works = [layout.StridedLayout === StridedLayout, layout.DType === DType, reversed.shape, reversed.strides];
    const uses = {
      "a static method": (value) => value.open(),
      "a static property": (value) => value.name,
      "a construction": (value) => new value(),
      "a call": (value) => value(),
      "instanceof": (value) => ({}) instanceof value,
      "a subclass": (value) => new class extends value {}(),
    };
    const wrong = [];
    for (const name of ${JSON.stringify(subpaths)}) {
      for (const [exported, value] of Object.entries(await import(name))) {
        if (exported in layout || exported === "FfiError" || exported === "LibraryNotFoundError") continue;
        for (const [use, act] of Object.entries(uses)) {
          try {
            act(value);
            wrong.push([name, exported, use, "no error"]);
          } catch (error) {
            const { message } = error;
            const isRight = error instanceof FfiError && message.includes(exported) && message.includes("Deno or Bun");
            if (!isRight) wrong.push([name, exported, use, String(error)]);
          }
        }
      }
    }
    const count = Object.keys(await import("causeway")).length;
    console.log(JSON.stringify({ works, wrong, count }));`,
    );
    const names = publicNames["."]?.filter((name) => !name.startsWith("type "));
    assertEquals(JSON.parse(run(["node", file], installed().project)), {
      works: [true, true, [3], [-4]],
      wrong: [],
      count: names?.length,
    });
  },
);

// Deno's own types of node: are not those of @types/node, which the repository uses, also when it is published: they
// lacked an option.
testOnce(
  ...needs(deno?.missing ?? null, "a Deno project with a link to the repository checks every subpath, and runs"),
  () => {
    const folder = scratchFolder();
    const [program = ""] = deno?.command ?? [];
    writeFileSync(join(folder, "deno.json"), JSON.stringify({ links: [root] }));
    const names = subpaths.map((name) => `@causeway/${name.startsWith("causeway/") ? name : "causeway"}`);
    const lines = names.map((name, i) => `import * as part${i} from ${JSON.stringify(name)};`);
    lines.push(`console.log([${names.map((_, i) => `part${i}`)}].map((part) => Object.keys(part).length));`);
    writeFileSync(join(folder, "all.ts"), lines.join("\n"));
    run([program, "check", "--quiet", "all.ts"], folder);
    const counts: unknown = JSON.parse(run([program, "run", "--allow-ffi", "--quiet", "all.ts"], folder));
    const expected = Object.values(publicNames).map((all) => all.filter((name) => !name.startsWith("type ")).length);
    assertEquals(counts, expected);
  },
);

testOnce("a program that Bun compiles into one file runs where there is nothing else", patiently, () => {
  const source = write(
    "alone.ts",
    `import { Cuda, slice, StridedMemoryView } from "causeway";
using cuda = Cuda.simulate();
const [device] = cuda.devices;
using there = StridedMemoryView.arange(6, { dtype: "float32", device });
using back = there.reshaped([2, 3]).T.sliced(slice(1, 3)).to("host");
console.log(JSON.stringify(back.toArray()));
`,
  );
  const alone = join(scratchFolder(), "alone");
  run([findBun(), "build", "--compile", source, `--outfile=${alone}`], installed().project);
  assertEquals(run([alone], scratchFolder(), {}), "[[1,4],[2,5]]\n");
});

const bundled = `import { Cuda, slice, StridedMemoryView } from "causeway";
import { CudaDevice } from "causeway/cuda";
using cuda = Cuda.simulate({ check: true });
const [device] = cuda.devices;
using there = StridedMemoryView.arange(6, { dtype: "float32", device });
using back = there.reshaped([2, 3]).T.sliced(slice(1, 3)).to("host");
console.log(JSON.stringify(back.toArray()), device instanceof CudaDevice);
`;

testOnce("a program that Bun bundles, in any of its ways, runs where there is nothing else", patiently, () => {
  const source = write("bundled.ts", bundled);
  for (const options of [[], ["--minify", "--production"], ["--format=cjs"], ["--format=cjs", "--bytecode"]]) {
    const out = scratchFolder();
    run([findBun(), "build", "--target=bun", ...options, source, `--outdir=${out}`], installed().project);
    assertEquals(run([findBun(), join(out, "bundled.js")], out, {}), "[[1,4],[2,5]] true\n", options.join(" "));
  }
});

const races = `import { Cuda, DeviceMemoryResource } from "causeway";
using cuda = Cuda.simulate({ check: { leaks: false, onReport: () => {} } });
const device = cuda.device(0);
const [one, other] = [device.createStream(), device.createStream()];
const memory = new DeviceMemoryResource(device);
function race(): void {
  const buffer = memory.allocate(8, { stream: one });
  buffer.fill(1, { stream: one });
  buffer.fill(2, { stream: other });
}
race();
race();
const buffer = memory.allocate(8, { stream: one });
buffer.fill(1, { stream: one });
buffer.fill(2, { stream: other });
console.log(JSON.stringify(cuda.reports.map((report) => report.second?.stack[0]?.match(/\\w+\\.ts:\\d+/)?.[0])));
`;

// Of several races, all of which the package finds at the same line, only the first was reported.
testOnce("in a bundle the checker reports each race, with its places if a source map tells them", patiently, () => {
  const source = write("races.ts", races);
  const [inFunction, last] = ["races.ts:9", "races.ts:15"];
  assertEquals(JSON.parse(run([findBun(), source], installed().project)), [inFunction, last]); // one for each two places
  for (
    const [options, places] of [[[], Array(3).fill(null)], [["--sourcemap=inline"], [inFunction, inFunction, last]]]
  ) {
    const out = scratchFolder();
    run([findBun(), "build", "--target=bun", ...options ?? [], source, `--outdir=${out}`], installed().project);
    assertEquals(JSON.parse(run([findBun(), join(out, "races.js")], out)), places);
  }
});

/** Why Deno cannot bundle here: it fetches its bundler when it is first used. Null if it can. */
function missingBundler(): string | null {
  if (deno === undefined || deno.missing !== null) return deno?.missing ?? "no Deno";
  const folder = scratchFolder();
  writeFileSync(join(folder, "nothing.js"), "");
  const [program = ""] = deno.command;
  const { status, stderr } = spawnSync(program, ["bundle", "--quiet", "nothing.js", "-o", "out.js"], { cwd: folder });
  return status === 0 ? null : `deno bundle cannot run: ${stderr}`;
}

const [bundling, bundlingOptions] = needs(
  missingBundler(),
  "a program that Deno bundles runs where there is nothing else",
);
testOnce(bundling, { ...patiently, ...bundlingOptions }, () => {
  write("bundled.ts", bundled);
  const [out, [program = ""]] = [scratchFolder(), deno?.command ?? []];
  run([program, "bundle", "--quiet", "bundled.ts", "-o", join(out, "bundled.js")], installed().project);
  assertEquals(run([program, "run", "-A", join(out, "bundled.js")], out), "[[1,4],[2,5]] true\n");
});

testOnce(
  ...needs(deno?.missing ?? null, "Deno loads a simulator and a checker when they are used"),
  () => {
    const [project, [program = ""]] = [scratchFolder(), deno?.command ?? []];
    cpSync(installed().project, project, { recursive: true });
    for (const room of ["simulator", "checker"]) {
      const text = `console.log("${room}"); throw new Error();`;
      writeFileSync(join(project, `node_modules/causeway/dist/room_${room}.js`), text);
    }
    writeFileSync(
      join(project, "uses.js"),
      `import { Cuda, StridedMemoryView } from "causeway";
      import { Cuda as same } from "causeway/cuda";
      const attempt = (act) => { try { act(); } catch { console.log("loaded"); } };
      console.log(StridedMemoryView.zeros([3]).shape.length, Cuda === same);
      attempt(() => Cuda.simulate());
      attempt(() => Cuda.over({ opening: {} }, { check: true }));`,
    );
    assertEquals(run([program, "run", "-A", "uses.js"], project), "1 true\nsimulator\nloaded\nchecker\nloaded\n");
  },
);

// "Cannot find module '../room_simulator.js'": it was looked for beside the Worker's own file.
testOnce(
  ...needs(deno?.missing ?? null, "Deno loads a simulator and a checker in Workers of either kind, too"),
  () => {
    const [program = ""] = deno?.command ?? [];
    write(
      "worker.js",
      `import { Cuda } from "causeway";
      import { parentPort } from "node:worker_threads";
      using cuda = Cuda.simulate({ check: true });
      const post = parentPort === null ? postMessage : (message) => parentPort.postMessage(message);
      post(cuda.devices.length);`,
    );
    const main = write(
      "workers.js",
      `import { Worker as NodeWorker } from "node:worker_threads";
      const url = new URL("worker.js", import.meta.url);
      const threads = [new NodeWorker(url), new Worker(url, { type: "module" })];
      threads[0].on("message", (count) => console.log(count));
      threads[1].onmessage = ({ data }) => (console.log(data), threads[1].terminate());`,
    );
    const printed = run([program, "run", "--allow-ffi", "--allow-read", "--no-prompt", main], installed().project);
    assertEquals(printed, "1\n1\n");
  },
);

/** The package's files that a program has loaded in Bun at two times: before and after it used a simulated GPU. */
const loading = `import { Cuda, StridedMemoryView } from "causeway";
import { createRequire } from "node:module";
const { cache } = createRequire(import.meta.url);
const loaded = () => Object.keys(cache).flatMap((path) => path.match(/(?<=causeway\\/dist\\/).*/) ?? []);
StridedMemoryView.zeros([3]);
const first = loaded();
Cuda.simulate().close();
const second = loaded();
Cuda.simulate({ check: true }).close();
console.log(JSON.stringify([first, second, loaded()]));
`;

testOnce("Bun loads compiled code, and a simulator and a checker when they are used", patiently, () => {
  const [first = [], ...later] = JSON.parse(
    run([findBun(), write("loading.js", loading)], installed().project),
  ) as string[][];
  assertEquals(first.filter((path) => !path.startsWith("bun/")), []);
  const rooms = (paths: readonly string[]) =>
    paths.filter((path) => path.startsWith("bun/causeway_compiled/room_")).sort();
  const more = later.map((paths) => rooms(paths).filter((path) => !first.includes(path)));
  assert(rooms(first).includes("bun/causeway_compiled/room_view.js"), first.join(" "));
  const [checker, simulator] = ["checker", "simulator"].map((name) => `bun/causeway_compiled/room_${name}.js`);
  assertEquals(more, [[simulator], [checker, simulator]]);
});

testOnce("the compiled code is strict, as modules are", patiently, () => {
  const file = write(
    "strict.js",
    `import { slice } from "causeway";
    try {
      slice.caller; // code that is not strict has it
      console.log("sloppy");
    } catch {
      console.log("strict");
    }`,
  );
  for (const runtime of present) assertEquals(runIn(runtime, file), "strict\n", runtime.name);
});

/** Another folder with the package installed, which was made with another version of Bun. */
function madeElsewhere(): string {
  const project = scratchFolder();
  cpSync(installed().project, project, { recursive: true });
  const loader = join(project, "node_modules/causeway/dist/bun/load.js");
  const text = readFileSync(loader, "utf8");
  const other = text.replace(/(?<=revision === ")\w+/, "other");
  assert(other !== text);
  writeFileSync(loader, other);
  return project;
}

testOnce("a Bun of another version loads code that it compiles itself, with the same names", patiently, () => {
  const project = madeElsewhere();
  const names = `const names = ${JSON.stringify(subpaths)};
    console.log(JSON.stringify(await Promise.all(names.map(async (name) => Object.keys(await import(name)).sort()))));`;
  for (const [name, program] of Object.entries({ names, loading })) writeFileSync(join(project, `${name}.js`), program);
  const values = Object.values(publicNames).map((all) => all.filter((name) => !name.startsWith("type ")).sort());
  assertEquals(JSON.parse(run([findBun(), "names.js"], project)), values);
  const [loaded] = JSON.parse(run([findBun(), "loading.js"], project)) as string[][];
  assertEquals([loaded?.includes("mod.js"), loaded?.some((path) => path.includes("compiled/"))], [true, false]);
});

// Bun 1.3.11 does not parse the files of the package for other versions: it must not load them.
testOnce("in a Bun that is too old every export says which is needed, causeway too; layouts work", patiently, () => {
  const project = madeElsewhere();
  const programs = {
    "old.js": `Object.defineProperty(process.versions, "bun", { value: "1.3.11" });`,
    "uses.js": `import { FfiError, Ucx } from "causeway";
      import * as layout from "causeway/layout";
      const message = (use) => {
        try {
          return use();
        } catch (error) {
          return error instanceof FfiError ? error.message : error;
        }
      };
      const wrong = [];
      for (const name of ${JSON.stringify(subpaths)}) {
        for (const [exported, value] of Object.entries(await import(name))) {
          if (exported in layout || exported === "FfiError" || exported === "LibraryNotFoundError") continue;
          const said = message(() => value.open());
          if (!String(said).startsWith("Cannot use " + exported)) wrong.push([name, exported, String(said)]);
        }
      }
      const loaded = Object.keys(require.cache).map((path) => path.split("/dist/")[1]);
      const rooms = loaded.filter((name) => name?.includes("room_"));
      const { strides } = layout.StridedLayout.dense([2, 3], 1);
      console.log(JSON.stringify({ wrong, said: message(() => Ucx.open()), strides, rooms }));`,
  };
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(project, name), text);
  const problem = "Bun 1.4 or newer is needed, and this is Bun 1.3.11. Run bun upgrade.";
  assertEquals(JSON.parse(run([findBun(), "--preload", "./old.js", "uses.js"], project)), {
    wrong: [],
    said: `Cannot use Ucx: ${problem}`,
    strides: [3, 1],
    rooms: ["room_layout.js"],
  });
  const bin = "node_modules/causeway/dist/bin.js";
  const { status, stderr } = spawnSync(findBun(), ["--preload", "./old.js", bin, "doctor"], {
    cwd: project,
    encoding: "utf8",
  });
  assertEquals({ status, stderr }, { status: 1, stderr: `causeway: ${problem}\n` });
});

test("build output is not part of the tree", () => {
  const ignored = read(".gitignore").split("\n");
  assertEquals(["/api/", "/dist/"].filter((folder) => !ignored.includes(folder)), []);
});

testOnce(
  ...needs(deno?.missing ?? null, "deno task docs writes a page for every subpath and every public name"),
  () => {
    const out = scratchFolder();
    const { tasks: { docs } } = JSON.parse(read("deno.json")) as { tasks: { docs: string } };
    assert(docs.startsWith("deno doc ") && docs.includes("--output=api "), docs);
    const command = docs.replace("deno", deno?.command[0] ?? "").replace("--output=api", `--output=${out}`);
    run(["/bin/sh", "-c", command], root);
    const symbols = readFileSync(join(out, "all_symbols.html"), "utf8");
    const names = Object.values(publicNames).flat().map((name) => name.replace(/^type /, ""));
    assert(names.length > 200);
    assertEquals(names.filter((name) => !symbols.includes(`>${name}<`)), []);
    assertEquals(subpaths.filter((name) => !existsSync(join(out, name.replace(/^causeway/, ""), "index.html"))), []);
  },
);
