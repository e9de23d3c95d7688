/** NumPy as the oracle, in a separate process: we read what it writes, and it reads what we write. */
import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { NpyError, openNpy, readNpy, readNpz, slice, StridedMemoryView, writeNpy, writeNpz } from "../../mod.ts";
import { patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";
import { scratchFolder } from "../support/scratch.ts";

const found = findPython("numpy");
const missing = typeof found === "string" ? found : null;

/** An array: values are random bits, so that they include NaN, infinities and denormals. */
interface Spec {
  readonly descr: string;
  readonly shape: readonly number[];
  readonly order: "C" | "F";
  readonly version: 1 | 2 | 3;
  readonly seed: number;
}

const codes = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"];
const spec: fc.Arbitrary<Spec> = fc.record({
  descr: fc.tuple(fc.constantFrom("<", ">"), fc.constantFrom(...codes)).map(([order, code]) => order + code),
  shape: fc.array(fc.nat(4), { maxLength: 4 }),
  order: fc.constantFrom("C", "F"),
  version: fc.constantFrom(1, 2, 3),
  seed: fc.nat(1e9),
});

const common = `
import json, sys, hashlib, numpy as np
folder, specs = sys.argv[1], json.load(sys.stdin)
def array(s):
    n = int(np.prod(s["shape"], dtype=np.int64)); d = np.dtype(s["descr"])
    raw = np.random.default_rng(s["seed"]).bytes(n * d.itemsize)
    flat = (np.frombuffer(raw, "u1") & 1).view(d) if d.kind == "b" else np.frombuffer(raw, d)
    return np.array(flat.reshape(s["shape"]), order=s["order"])
def bits(a): # C order, little-endian
    a = np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<"), copy=False) if a.dtype.itemsize > 1 else np.ascontiguousarray(a)
    return a.tobytes().hex()
`;
const writes = `${common}
for i, s in enumerate(specs):
    with open(f"{folder}/{i}.npy", "wb") as f: np.lib.format.write_array(f, array(s), version=(s["version"], 0))
arrays = {f"a{i}": array(s) for i, s in enumerate(specs)}
np.savez(f"{folder}/plain.npz", **arrays); np.savez_compressed(f"{folder}/deflated.npz", **arrays)
print(json.dumps([[bits(array(s)), array(s).dtype.newbyteorder("<").str, list(array(s).shape)] for s in specs]))
`;
const reads = `${common}
zips = [np.load(f"{folder}/{name}.npz") for name in ["plain", "deflated", "sent", "sent_deflated"]]
def info(a): return [bits(a), a.dtype.str, list(a.shape)]
print(json.dumps([[info(np.load(f"{folder}/out{i}.npy"))] + [info(z[f"a{i}"]) for z in zips] for i in range(len(specs))]))
`;

function numpy(script: string, folder: string, specs: readonly Spec[]) {
  if (typeof found === "string") throw new Error(found);
  const input = JSON.stringify(specs);
  return JSON.parse(execFileSync(found.executable, ["-c", script, folder], { input, encoding: "utf8" }));
}

/** As `info` of the Python script, from a view. */
function info(view: StridedMemoryView): [string, string, number[]] {
  const dense = new Uint8Array(view.nbytes);
  if (view.nbytes > 0) {
    const memory = StridedMemoryView.fromTypedArray(dense);
    const typed = StridedMemoryView.fromBuffer(memory.buffer, { shape: view.shape, dtype: view.dtype });
    typed.copyFrom(view);
  }
  return [dense.toHex(), view.dtype.require("typestr"), [...view.shape]];
}

const [name, options] = needs(
  missing,
  "NumPy's files are read bit by bit, and mapped; NumPy reads ours bit by bit",
);
test(name, { ...options, ...patiently }, async () => {
  const batch = fc.array(spec, { minLength: 25, maxLength: 25 });
  await check(
    fc.asyncProperty(batch, async (specs) => {
      const folder = scratchFolder();
      const expected = numpy(writes, folder, specs);
      const views: StridedMemoryView[] = [];
      using plain = await readNpz(`${folder}/plain.npz`);
      using deflated = await readNpz(`${folder}/deflated.npz`);
      for (const [i, { descr }] of specs.entries()) {
        const view = await readNpy(`${folder}/${i}.npy`);
        views.push(view);
        for (const one of [view, plain.get(`a${i}`), deflated.get(`a${i}`)]) {
          assertEquals(one && info(one), expected[i], JSON.stringify(specs[i]));
        }
        if (!descr.startsWith(">") || descr.endsWith("1")) {
          using mapped = openNpy(`${folder}/${i}.npy`);
          assertEquals(info(mapped), expected[i]);
        }
        await writeNpy(`${folder}/out${i}.npy`, view);
      }
      const entries = new Map(views.map((view, i) => [`a${i}`, view]));
      await writeNpz(`${folder}/plain.npz`, entries);
      await writeNpz(`${folder}/deflated.npz`, entries, { compressed: true });
      for (const [name, compressed] of [["sent", false], ["sent_deflated", true]] as const) {
        const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
        const [chunks] = await Promise.all([Array.fromAsync(readable), writeNpz(writable, entries, { compressed })]);
        writeFileSync(`${folder}/${name}.npz`, Buffer.concat(chunks));
        using sent = await readNpz(Buffer.concat(chunks));
        for (const [i, one] of views.entries()) {
          const view = sent.get(`a${i}`);
          assertEquals(view && info(view), info(one));
        }
      }
      const back = numpy(reads, folder, specs);
      assertEquals(back, specs.map((_, i) => Array.from({ length: 5 }, () => expected[i])));
      for (const view of views) view.close();
    }),
    4,
  );
});

const spelled = `
import io, json, struct, sys, numpy as np
def loaded(descr):
    header = repr({"descr": descr, "fortran_order": False, "shape": (1,)}).encode() + b"\\n"
    file = b"\\x93NUMPY\\1\\0" + struct.pack("<H", len(header)) + header + bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
    try: array = np.load(io.BytesIO(file))
    except Exception: return [file.hex(), None]
    return [file.hex(), [array.dtype.newbyteorder("<").str, array.byteswap().tobytes().hex() if array.dtype.byteorder == ">" else array.tobytes().hex()]]
print(json.dumps([loaded(descr) for descr in json.load(sys.stdin)]))
`;

test(...needs(missing, "a type is what NumPy takes it for, however other programs spell its byte order"), async () => {
  if (typeof found === "string") throw new Error(found);
  const spellings = ["<", ">", "=", "|", ""].flatMap((order) =>
    [...codes, "?", "?1", "b", "b2", "f3", "c4", "i", "u16"].map((code) => order + code)
  );
  const input = JSON.stringify(spellings);
  const answers = JSON.parse(execFileSync(found.executable, ["-c", spelled], { input, encoding: "utf8" }));
  for (const [i, [file, answer]] of answers.entries()) {
    const read = await readNpy(Uint8Array.fromHex(file)).catch((error: unknown) => error);
    if (read instanceof StridedMemoryView) {
      const [hex, typestr] = info(read);
      assertEquals([typestr, hex], answer, spellings[i]);
    } else {
      assert(read instanceof NpyError, `${spellings[i]}: ${read}`);
      // C's names of types stand for other numbers of bytes elsewhere.
      assert(answer === null || /^.?[bi]$/.test(spellings[i] ?? ""), `${spellings[i]}: ${read}`);
    }
  }
});

test("views in any layout are written as the array that they are, in parts where they are large", async () => {
  const folder = scratchFolder();
  const values = Float64Array.from({ length: 3 * 1_000_000 }, (_, i) => i);
  const whole = StridedMemoryView.fromTypedArray(values, { shape: [1000, 3, 1000] });
  const views = [
    whole,
    whole.permuted([2, 1, 0]),
    whole.permuted([1, 0, 2]),
    whole.sliced(slice(null, null, -1), 1, slice(3, null, 7)),
    whole.sliced(5, 2, 7),
  ];
  for (const view of views) {
    const seen: number[] = [];
    await writeNpy(`${folder}/view.npy`, view, { onProgress: (done, total) => void seen.push(done / total) });
    using back = await readNpy(`${folder}/view.npy`);
    assertEquals(info(back), info(view));
    assertEquals([seen[0], seen.at(-1), seen.toSorted((a, b) => a - b)], [0, 1, seen]);
  }
});

// It began with the record of a large zip, which NumPy took for a pickle.
test(...needs(missing, "NumPy reads a zip of no arrays"), async () => {
  if (typeof found === "string") return;
  const path = `${scratchFolder()}/none.npz`;
  await writeNpz(path, {});
  const script = "import sys, numpy; print(numpy.load(sys.argv[1]).files)";
  assertEquals(execFileSync(found.executable, ["-c", script, path], { encoding: "utf8" }), "[]\n");
  using none = await readNpz(path);
  assertEquals([...none.keys()], []);
});
