import { assert, assertEquals, assertMatch } from "@std/assert";
import { copyFileSync, linkSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { openLibrary } from "../../src/ffi/library.ts";
import { check, fc } from "../support/property.ts";
import { needs } from "../support/needs.ts";
import { compiled, missingCompiler } from "../support/compiled.ts";
import { openInChild, type OpenOutcome, type OpenStep } from "./open.ts";
import { scratchFolder } from "../support/scratch.ts";

type Opened = Extract<OpenOutcome, { path: string }>;
type Failed = Extract<OpenOutcome, { error: unknown }>;

const plain = { name: "libtest", override: "CAUSEWAY_LIBTEST", remedy: "Install libtest.", symbols: {} } as const;

/** Real libraries to copy. libdl has been a 14 kB stub since glibc 2.34: cheap to copy, real to load. */
const libm = openLibrary({ ...plain, sonames: ["libm.so.6"] }).path;
const libdl = join(dirname(libm), "libdl.so.2");

/** Copies a library to a path, creating the folders. */
function put(library: string, path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync(library, path);
  return path;
}

function step(
  sonames: readonly string[],
  rest: Partial<OpenStep["description"]> = {},
  env: OpenStep["env"] = {},
): OpenStep {
  const { symbols: _, ...known } = plain;
  return { env, description: { ...known, sonames, ...rest } };
}

function opened(outcome: OpenOutcome | undefined): Opened {
  assert(outcome !== undefined && "path" in outcome, JSON.stringify(outcome));
  assert(outcome.mapped, `${outcome.path} is not in /proc/self/maps`);
  return outcome;
}

function failed(outcome: OpenOutcome | undefined): Failed["error"] {
  assert(outcome !== undefined && "error" in outcome, JSON.stringify(outcome));
  assertEquals(outcome.error.name, "LibraryNotFoundError");
  return outcome.error;
}

test("the place that wins is the first in the documented order, and everything before it was tried", async () => {
  // Cases run in one child, each with its own sonames: a loaded library stays loaded.
  const places = fc.array(fc.record({ place: fc.nat(11), soname: fc.nat(1) }), { maxLength: 5 });
  await check(
    fc.asyncProperty(fc.noShrink(fc.array(places, { minLength: 40, maxLength: 40 })), async (cases) => {
      const root = realpathSync(scratchFolder());
      const [venv, conda, system] = [join(root, "venv"), join(root, "conda"), join(root, "system")];
      const [home1, home2] = [join(root, "home1"), join(root, "home2")];
      mkdirSync(system);
      const site = "lib/python3.12/site-packages";
      /** The folder of each place, and how the place appears in the list of attempts. */
      const order: readonly (readonly [folder: string, tried: string])[] = [
        [`${venv}/${site}/nvidia/cu13/lib`, `${venv}/lib/python3*/site-packages/nvidia/*/lib/`],
        [`${venv}/${site}/libucx/lib`, `${venv}/lib/python3*/site-packages/libucx/lib/`],
        [`${conda}/${site}/nvidia/cu13/lib`, `${conda}/lib/python3*/site-packages/nvidia/*/lib/`],
        [`${conda}/${site}/libucx/lib`, `${conda}/lib/python3*/site-packages/libucx/lib/`],
        [`${conda}/lib`, `${conda}/lib/`],
        [system, ""],
        [`${home1}/lib64`, `${home1}/lib64/`],
        [`${home1}/lib`, `${home1}/lib/`],
        [`${home1}/targets/sbsa-linux/lib`, `${home1}/targets/*/lib/`],
        [`${home2}/lib64`, `${home2}/lib64/`],
        [`${root}/last`, `${root}/last/`],
        [`${root}/very last`, `${root}/very last/`],
      ];
      // The second home's places after lib64 stay empty here.
      const triedOnly = [`${home2}/lib/`, `${home2}/targets/*/lib/`];
      const steps = cases.map((files, i) => {
        for (const { place, soname } of files) {
          put(libdl, join(order[place]?.[0] ?? "", `libcase${i}.so.${2 - soname}`));
        }
        return step([`libcase${i}.so.2`, `libcase${i}.so.1`], {
          wheels: ["nvidia/*/lib", "libucx/lib"],
          homes: ["TEST_HOME", "TEST_UNSET_HOME", "TEST_PATH"],
          folders: [`${root}/last`, `${root}/very last`],
        });
      });
      const outcomes = await openInChild(steps, {
        env: { VIRTUAL_ENV: venv, CONDA_PREFIX: conda, TEST_HOME: home1, TEST_PATH: home2, LD_LIBRARY_PATH: system },
      });
      for (const [i, files] of cases.entries()) {
        const first = Math.min(...files.map(({ place, soname }) => 2 * place + soname));
        const outcome = outcomes[i];
        if (files.length > 0) {
          const [folder = ""] = order[Math.floor(first / 2)] ?? [];
          assertEquals(opened(outcome).path, `${folder}/libcase${i}.so.${2 - first % 2}`);
        } else {
          const tried = [
            ...order.slice(0, 10).map(([, tried]) => tried),
            ...triedOnly,
            ...order.slice(10).map(([, t]) => t),
          ]
            .flatMap((tried) => [`${tried}libcase${i}.so.2`, `${tried}libcase${i}.so.1`]);
          assertEquals(failed(outcome).attempts.map(({ path }) => path), tried);
        }
      }
    }),
    3,
  );
});

test("a folder is found by its name, whatever characters are in it", async () => {
  const root = realpathSync(scratchFolder());
  const folders = ["plain", "with [1]", "[ab]", "star*", "what?", "back\\slash"];
  const files = folders.map((name, i) =>
    put(libdl, join(root, name, "lib/python3.12/site-packages/own", `libname${i}.so`))
  );
  put(libdl, join(root, "a", "lib/python3.12/site-packages/own", "libname2.so")); // which [ab] would match
  const found = await openInChild(
    folders.map((name, i) => step([`libname${i}.so`], { wheels: ["own"] }, { VIRTUAL_ENV: join(root, name) })),
  );
  assertEquals(found.map((one) => opened(one).path), files);
});

test("nothing found: the error lists every path with what the linker said, and what to do", async () => {
  const root = realpathSync(scratchFolder());
  const broken = join(root, "broken.so");
  writeFileSync(broken, "This is no library.");
  const found = await openInChild([
    step(["libnowhere.so.9"], { folders: [root, "/nowhere"], homes: ["TEST_HOME"] }, { TEST_HOME: "/opt/test" }),
    step(["broken.so"], { folders: [root] }),
    step([]),
  ]);
  assertEquals(failed(found[0]), {
    name: "LibraryNotFoundError",
    library: "libtest",
    remedy: "Install libtest. To open a file of your choice, set CAUSEWAY_LIBTEST to its path.",
    attempts: [
      {
        path: "libnowhere.so.9",
        error: "cannot open shared object file: No such file or directory",
      },
      { path: "/opt/test/lib64/libnowhere.so.9", error: "no such file" },
      { path: "/opt/test/lib/libnowhere.so.9", error: "no such file" },
      { path: "/opt/test/targets/*/lib/libnowhere.so.9", error: "no such file" },
      { path: `${root}/libnowhere.so.9`, error: "no such file" },
      { path: "/nowhere/libnowhere.so.9", error: "no such file" },
    ],
    message: [
      "Cannot open libtest. Install libtest. To open a file of your choice, set CAUSEWAY_LIBTEST to its path.",
      "Tried, in this order:",
      "  libnowhere.so.9: cannot open shared object file: No such file or directory",
      "  /opt/test/lib64/libnowhere.so.9: no such file",
      "  /opt/test/lib/libnowhere.so.9: no such file",
      "  /opt/test/targets/*/lib/libnowhere.so.9: no such file",
      `  ${root}/libnowhere.so.9: no such file`,
      "  /nowhere/libnowhere.so.9: no such file",
    ].join("\n"),
  });
  assertEquals(failed(found[1]).attempts, [
    { path: "broken.so", error: "cannot open shared object file: No such file or directory" },
    { path: broken, error: "file too short" },
  ]);
  assertEquals(failed(found[2]).attempts, []);
});

test("a place that is named twice is tried once", async () => {
  const env = { VIRTUAL_ENV: "/opt/env", CONDA_PREFIX: "/opt/env", TEST_HOME: "/opt/env", TEST_PATH: "/opt/env" };
  const both = step(
    ["a.so", "a.so"],
    { wheels: ["w"], homes: ["TEST_HOME", "TEST_PATH"], folders: ["/opt/env/lib"] },
    env,
  );
  assertEquals(failed((await openInChild([both]))[0]).attempts.map(({ path }) => path), [
    "/opt/env/lib/python3*/site-packages/w/a.so",
    "/opt/env/lib/a.so",
    "a.so",
    "/opt/env/lib64/a.so",
    "/opt/env/targets/*/lib/a.so",
  ]);
});

test("a file that cannot be loaded does not end the search", async () => {
  const root = realpathSync(scratchFolder());
  mkdirSync(join(root, "a"));
  writeFileSync(join(root, "a/libcw.so.1"), "x".repeat(5000));
  const good = put(libdl, join(root, "b/libcw.so.1"));
  assertEquals(
    opened((await openInChild([step(["libcw.so.1"], { folders: [`${root}/a`, `${root}/b`] })]))[0]).path,
    good,
  );
});

test("the override wins over every place, and nothing else is tried", async () => {
  const root = realpathSync(scratchFolder());
  put(libdl, join(root, "libcw.so.1"));
  const chosen = put(libdl, join(root, "my choice/any name at all"));
  const wrong = join(root, "missing.so");
  const outcomes = await openInChild([
    step(["libcw.so.1"], { folders: [root] }, { CAUSEWAY_LIBTEST: wrong }),
    step(["libcw.so.1"], { folders: [root] }, { CAUSEWAY_LIBTEST: chosen }),
    step(["libcw.so.1"], { folders: [root] }, { CAUSEWAY_LIBTEST: "" }), // an empty override counts as none
    step(["libcw.so.1"], { folders: [root] }, { CAUSEWAY_LIBTEST: null }),
  ]);
  const { attempts, remedy, message } = failed(outcomes[0]);
  assertEquals(attempts, [{
    path: wrong,
    error: "cannot open shared object file: No such file or directory",
  }]);
  assertEquals(remedy, "CAUSEWAY_LIBTEST is set, so nothing else was tried: correct it or unset it.");
  assertMatch(message, /^Cannot open libtest\. CAUSEWAY_LIBTEST is set/);
  assertEquals(opened(outcomes[1]).path, chosen);
  assertEquals(opened(outcomes[2]).path, join(root, "libcw.so.1"));
  assertEquals(opened(outcomes[3]).sameAs, 2);
});

// To the dynamic linker an empty path names the program itself: what was asked about that library ended the process.
test("an empty path names no library", async () => {
  const { attempts, message } = failed((await openInChild([step(["libc.so.6"], { path: "" })]))[0]);
  assertEquals(attempts, [{ path: "", error: "no such file" }]);
  assertMatch(
    message,
    /^Cannot open libtest\. An empty path was given, so nothing else was tried\.\n.*\n {2}"": no such/,
  );
});

test("the override may be a soname, for the linker to find", async () => {
  const root = realpathSync(scratchFolder());
  const path = put(libdl, join(root, "libother.so.3"));
  const steps = [step(["libcw.so.1"], {}, { CAUSEWAY_LIBTEST: "libother.so.3" })];
  assertEquals(opened((await openInChild(steps, { env: { LD_LIBRARY_PATH: root } }))[0]).path, path);
});

test("a library that is found through a relative path has an absolute one, and binds after the folder changed", async () => {
  const root = realpathSync(scratchFolder());
  const paths = ["one/libm.so", "venv/lib/python3.9/site-packages/w/libcw.so.1", "system/libsys.so.1"]
    .map((path) => put(libm, join(root, path)));
  const [override, wheel, system] = [
    await openInChild([{ ...step([], {}, { CAUSEWAY_LIBTEST: "./one/../one/libm.so" }), chdir: "/" }], { cwd: root }),
    await openInChild([{ ...step(["libcw.so.1"], { wheels: ["w"] }, { VIRTUAL_ENV: "venv" }), chdir: "/" }], {
      cwd: root,
    }),
    await openInChild([{ ...step(["libsys.so.1"]), chdir: "/" }], { cwd: root, env: { LD_LIBRARY_PATH: "system" } }),
  ].map(([outcome]) => opened(outcome));
  for (const [i, outcome] of [override, wheel, system].entries()) {
    assert(outcome !== undefined && outcome.path.startsWith("/"), outcome?.path);
    assertEquals(realpathSync(outcome.path), paths[i]);
    assertEquals(outcome.cosOf0, 1); // bound by path, in another folder
  }
});

test("a prefix that contains characters of a pattern is taken literally", async () => {
  const root = realpathSync(scratchFolder());
  const names = ["we[ir]d", "a*b", "q?", "back\\slash", "{a,b}", "~", "$HOME", "spa ce", "[!x]", "h\u00e9"];
  const decoys = ["wed", "aXb", "qq", "backslash", "a", "y"];
  for (const decoy of decoys) put(libdl, join(root, decoy, "lib/libdecoy.so.1"));
  const steps = names.flatMap((name, i) => {
    put(libdl, join(root, name, `lib/libcw${i}.so.1`));
    const env = { CONDA_PREFIX: join(root, name) };
    const home = { TEST_HOME: join(root, name), CONDA_PREFIX: null };
    return [
      step([`libcw${i}.so.1`], {}, env),
      step([`libcw${i}.so.1`], { homes: ["TEST_HOME"] }, home),
      step(["libdecoy.so.1"], { homes: ["TEST_HOME"] }, home),
    ];
  });
  const outcomes = await openInChild(steps);
  for (const [i, name] of names.entries()) {
    assertEquals(opened(outcomes[3 * i]).path, join(root, name, `lib/libcw${i}.so.1`));
    assertEquals(opened(outcomes[3 * i + 1]).sameAs, 3 * i);
    failed(outcomes[3 * i + 2]);
  }
});

test("of several wheels the first by name wins, and all are tried", async () => {
  const root = realpathSync(scratchFolder());
  const wheels = ["lib/python3.10/site-packages/nvidia/a/lib", "lib/python3.10/site-packages/nvidia/b/lib"];
  mkdirSync(join(root, wheels[0] ?? ""), { recursive: true });
  writeFileSync(join(root, wheels[0] ?? "", "libcw.so.1"), "");
  const second = put(libdl, join(root, wheels[1] ?? "", "libcw.so.1"));
  const env = { VIRTUAL_ENV: root };
  assertEquals(opened((await openInChild([step(["libcw.so.1"], { wheels: ["nvidia/*/lib"] }, env)]))[0]).path, second);
  const third = put(libdl, join(root, wheels[0] ?? "", "libcx.so.1"));
  put(libdl, join(root, wheels[1] ?? "", "libcx.so.1"));
  assertEquals(opened((await openInChild([step(["libcx.so.1"], { wheels: ["nvidia/*/lib"] }, env)]))[0]).path, third);
});

test("a library is opened and bound once, from however many places and by whatever name it is reached", async () => {
  const root = realpathSync(scratchFolder());
  const path = put(libm, join(root, "libcw.so.1"));
  symlinkSync("libcw.so.1", join(root, "libalias.so"));
  linkSync(path, join(root, "libhard.so"));
  const other = put(libm, join(root, "other/libcw.so.1"));
  const outcomes = (await openInChild([
    step(["libcw.so.1"], { folders: [root] }),
    step(["libcw.so.1"], { folders: [root] }),
    step(["libalias.so"], { folders: [root] }),
    step([], {}, { CAUSEWAY_LIBTEST: join(root, "libhard.so") }),
    step([], {}, { CAUSEWAY_LIBTEST: other }),
    step([], { name: "libother" }, { CAUSEWAY_LIBTEST: path }), // its symbols may differ
  ])).map(opened);
  assertEquals(outcomes.map(({ sameAs }) => sameAs), [null, 0, 0, 0, null, null]);
  assertEquals(outcomes.map(({ path }) => path), [path, path, path, path, other, path]);
  assertEquals(new Set(outcomes.map(({ handle }) => handle)).size, 2);
  assertEquals(new Set(outcomes.map(({ cosOf0 }) => cosOf0)), new Set([1]));
});

test("the system's own libraries are found by soname, at the absolute path that is loaded", async () => {
  const { path, cosOf0 } = opened((await openInChild([step(["libm.so.99", "libm.so.6"])]))[0]);
  assertEquals(path, libm);
  assert(path.startsWith("/"));
  assertEquals(cosOf0, 1);
});

test(...needs(missingCompiler, "only a library that is opened as global shows its symbols to others"), async () => {
  const path = compiled("int causeway_test_symbol(void) { return 7; }", "libglobal.so");
  const env = { CAUSEWAY_LIBTEST: path };
  assertEquals(opened((await openInChild([step([], {}, env)]))[0]).isGlobal, false);
  assertEquals(opened((await openInChild([step([], { global: true }, env)]))[0]).isGlobal, true);
});
