/** `topology` and `bandwidth`, on simulated GPUs; drawings are read by Python's XML parser. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Cuda, HostMemoryResource, StridedMemoryView } from "../../mod.ts";
import { isFullOf } from "../../src/cli/bandwidth/bench.ts";
import { measureBandwidth } from "../../src/cli/bandwidth/mod.ts";
import type { BandwidthReport } from "../../src/cli/bandwidth/format.ts";
import { measurements } from "../../src/cli/bandwidth/measurements.ts";
import { medianOf } from "../../src/cli/median.ts";
import { matricesToSvg } from "../../src/cli/matrix_svg.ts";
import { pciDistance, pciPlace } from "../../src/cli/topology/pci.ts";
import type { TopologyReport } from "../../src/cli/topology/examine.ts";
import { patiently } from "../support/child.ts";
import { scratchFolder } from "../support/scratch.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const runtime = "deno" in process.versions ? ["run", "-A", main] : [main];

function causeway(args: string[], env: Record<string, string> = {}) {
  const all = { ...process.env, ...env };
  return spawnSync(process.execPath, [...runtime, ...args], { encoding: "utf8", env: all });
}

/** The texts of a picture, and its number of rectangles, as another parser reads them. */
function drawn(path: string): { texts: string[]; rects: number } {
  const script = "import json, sys, xml.etree.ElementTree as E; t = E.parse(sys.argv[1]).getroot(); " +
    "n = '{http://www.w3.org/2000/svg}'; assert t.tag == n + 'svg'; " +
    "print(json.dumps({'texts': [e.text for e in t.iter(n + 'text')], 'rects': len(list(t.iter(n + 'rect')))}))";
  return JSON.parse(execFileSync("python3", ["-c", script, path], { encoding: "utf8" }));
}

test("bandwidth: what arrived is judged by its beginning, middle and end, in buffers of any size", async () => {
  for (const size of [64, 2 ** 31 + 128, 2 ** 32 + 128]) { // nothing but these three parts is touched
    using buffer = new HostMemoryResource().allocate(size);
    const parts = [0, (size - 64) / 2, size - 64].map((offset) =>
      StridedMemoryView.fromBuffer(buffer, { shape: [64], dtype: "uint8", offset })
    );
    for (const part of parts) part.fill(9);
    assert(await isFullOf(9, buffer), `${size}`);
    for (const part of parts) {
      part.set(8, 5);
      assert(!await isFullOf(9, buffer), `${size}`);
      part.set(9, 5);
    }
  }
});

test("topology: the table, JSON and the picture say the same, and that the GPUs are simulated", patiently, () => {
  const svg = `${scratchFolder()}/links.svg`;
  const { status, stdout, stderr } = causeway(["topology", "--simulate", "3", "--json", "--svg", svg]);
  assertEquals([status, stderr], [0, `Wrote ${svg}\n`]);
  const report: TopologyReport = JSON.parse(stdout);
  assertEquals([report.simulated, report.devices.length, report.links.length], [true, 3, 6]);
  const text = causeway(["topology", "--simulate", "3"]).stdout;
  assertMatch(text, /^SIMULATED GPUs/);
  for (const { name, uuid, pciBusId } of report.devices) {
    for (const word of [name, uuid, pciBusId]) assertStringIncludes(text, word);
  }
  const { texts, rects } = drawn(svg);
  assertEquals([texts.filter((one) => one === "NVLink").length, rects], [6, 1 + 9]);
  assert(texts.some((one) => one.startsWith("SIMULATED")));
});

test("a picture that cannot be written costs no report", patiently, () => {
  const nowhere = `${scratchFolder()}/missing/heat.svg`;
  for (const args of [["topology"], ["bandwidth", "--test", "device_to_device_memcpy_read_ce"]]) {
    const { status, stdout, stderr } = causeway([...args, "--simulate", "2", "--json", "--svg", nowhere]);
    assert(status !== 0 && stderr.includes(`Cannot write ${nowhere}`), stderr);
    assertEquals(JSON.parse(stdout).simulated, true);
  }
});

test("bandwidth: every measurement has all its cells, in the report and in the picture", patiently, () => {
  const svg = `${scratchFolder()}/heat.svg`;
  const { status, stdout, stderr } = causeway(["bandwidth", "--simulate", "2", "--json", "--svg", svg], {
    CAUSEWAY_CHECK: "1", // unordered accesses are errors
  });
  assertEquals([status, stderr], [0, `Wrote ${svg}\n`]);
  const report: BandwidthReport = JSON.parse(stdout);
  assertEquals(report.simulated, true);
  assertEquals(report.measurements.map(({ name }) => name), measurements.map(({ name }) => name));
  const { texts } = drawn(svg);
  for (const { name, rows, gigabytesPerSecond, sum, median, min, max, problem } of report.measurements) {
    assertEquals(problem, null, name);
    const cells = gigabytesPerSecond.flat().filter((value) => value !== null);
    assertEquals(cells.length, 2, name);
    assertEquals(gigabytesPerSecond.length, rows.length);
    assertEquals([sum, median, min, max], [
      cells.reduce((one, other) => one + other),
      medianOf(cells),
      Math.min(...cells),
      Math.max(...cells),
    ]);
    for (const value of cells) assert(value > 0 && texts.includes(value.toFixed(2)), name);
  }
});

test("bandwidth: without peer access kernels cannot copy, and engines go through the host", async () => {
  using cuda = Cuda.simulate({ devices: 2, canAccessPeer: () => false });
  const effort = { iterations: 2, samples: 1 };
  const { measurements: measured } = await measureBandwidth(cuda, true, measurements, 4096, effort);
  const named = (name: string) => measured.find((one) => one.name === name)?.gigabytesPerSecond.flat();
  assertEquals(named("device_to_device_memcpy_read_sm"), [null, null, null, null]);
  assertEquals(named("device_to_device_memcpy_read_ce")?.map((value) => value === null), [true, false, false, true]);
});

test("bandwidth: all memory is freed, and one GPU has no matrix", async () => {
  using cuda = Cuda.simulate({ check: true });
  const before = cuda.device(0).memoryInfo().free;
  const { measurements: measured } = await measureBandwidth(cuda, true, measurements, 4096, {
    iterations: 1,
    samples: 2,
  });
  assertEquals(measured.length, measurements.filter(({ rows }) => rows !== "devices").length);
  cuda.device(0).synchronize();
  assertEquals(cuda.device(0).memoryInfo().free >= before - 2 ** 26, true);
});

test("without a GPU both say why, and exit with code 1", patiently, () => {
  for (const command of ["topology", "bandwidth"]) {
    const { status, stdout, stderr } = causeway([command], { CAUSEWAY_LIBCUDA: "/nonexistent/libcuda.so.1" });
    assertEquals([status, stdout], [1, ""]);
    assertMatch(stderr, /^causeway: No GPU here: .*libcuda was not found.*--simulate N/);
  }
  const { status, stderr } = causeway(["topology", "--simulate", "1", "--svg", "/nonexistent/x.svg"]);
  assertEquals(status, 1);
  assertMatch(stderr, /Cannot write \/nonexistent\/x\.svg/);
});

test("places on the PCI bus are read as Linux writes them", () => {
  const root = scratchFolder();
  const add = (id: string, path: string, files: Record<string, string>) => {
    mkdirSync(`${root}/devices/${path}`, { recursive: true });
    mkdirSync(`${root}/bus/pci/devices`, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(`${root}/devices/${path}/${name}`, `${text}\n`);
    symlinkSync(`${root}/devices/${path}`, `${root}/bus/pci/devices/${id}`);
    return pciPlace(id.toUpperCase(), root);
  };
  const link = { max_link_speed: "32.0 GT/s PCIe", max_link_width: "16" };
  const a = add("0000:1b:00.0", "pci0000:16/0000:16:01.0/0000:1b:00.0", {
    ...link,
    numa_node: "0",
    local_cpulist: "0-3",
  });
  const b = add("0000:1c:00.0", "pci0000:16/0000:16:01.0/0000:1c:00.0", { numa_node: "0" });
  const c = add("0000:29:00.0", "pci0000:16/0000:16:02.0/0000:29:00.0", { numa_node: "0" });
  const d = add("0000:3a:00.0", "pci0000:39/0000:39:01.0/0000:3a:00.0", { numa_node: "0" });
  const e = add("0000:9a:00.0", "pci0000:99/0000:99:01.0/0000:9a:00.0", { numa_node: "1" });
  const f = add("0000:aa:00.0", "pci0000:a9/0000:a9:01.0/0000:aa:00.0", { numa_node: "-1" });
  assertEquals([a.numaNode, a.cpus, a.hostLink], [0, "0-3", "32.0 GT/s x16"]);
  assertEquals([b, c, d, e, f].map((one) => pciDistance(a, one)), [
    "switch",
    "host bridge",
    "NUMA node",
    "machine",
    null,
  ]);
  assertEquals(pciPlace("0000:ff:00.0", root), { path: null, numaNode: null, cpus: null, hostLink: null });
});

test("a picture is well-formed whatever its text is", () => {
  const path = `${scratchFolder()}/odd.svg`;
  const odd = `<&>'"\u0000\ufffe]]>`;
  writeFileSync(
    path,
    matricesToSvg([odd], [{ title: odd, rows: [odd], columns: [odd], cells: [[{ text: odd, heat: 0.5 }]] }]),
  );
  assertEquals(drawn(path).texts, new Array(5).fill(`<&>'"??]]>`));
});
