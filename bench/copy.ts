/**
 * Copies of every kind, beside torch's `copy_` and the driver's contiguous copy, in one run. Prints Markdown.
 *
 * Claims: on one device transposes run at twice torch's rate or at 90% of what the memory allows, and parts and
 * repeated rows at torch's rate or at 95% of it. Conversions run at torch's rate or at 90% of it. From 256 MiB on,
 * pageable host memory is copied to the device and back at 40 GB/s, and from 4 MiB on at torch's rate or faster;
 * smaller copies are a single driver call for both, and pass at 90% of torch's rate. A call for a small copy takes at
 * most 1.5 times as long as the bare driver's, or torch's. Between two devices whose pools have default access, a
 * contiguous copy runs at 95% of what `cuMemcpyPeerAsync` reaches with access, and a copy between different layouts at
 * 97% of torch's rate or more; where all devices send to all in rounds, at 90% of the driver's and of torch's.
 *
 * ```sh CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/copy.ts CAUSEWAY_PYTHON=venv/bin/python bun bench/copy.ts
 * layouts host # some sections: layouts, conversions, host, small, devices, matrix
 * ```
 *
 * Needs a GPU, and two for the last two sections; the peer needs torch.
 */
import process from "node:process";
import { Cuda } from "../mod.ts";
import { measureConversions } from "./copy/conversions.ts";
import { measureDevices } from "./copy/devices.ts";
import { measureHost } from "./copy/host.ts";
import { measureLayouts } from "./copy/layouts.ts";
import { measureMatrix } from "./copy/matrix.ts";
import { measureSmall } from "./copy/small.ts";
import type { Torch } from "./copy/section.ts";
import { Peer } from "./peer.ts";

if (!Cuda.probe().available) {
  console.log("Not measured: there is no GPU here.");
  process.exit(0);
}

const sections = {
  layouts: measureLayouts,
  conversions: measureConversions,
  host: measureHost,
  small: measureSmall,
  devices: measureDevices,
  matrix: measureMatrix,
};
type Section = keyof typeof sections;
const names = Object.keys(sections) as Section[];
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in sections));
if (unknown.length > 0) throw new RangeError(`Expected sections of ${names.join(", ")}, got ${unknown.join(", ")}`);
const wanted = names.filter((name) => asked.length === 0 || asked.includes(name));

using python = Peer.python("copy_peer.py");
const torch = await python.hear();
if (torch === null) console.error("No peer: install torch, and set CAUSEWAY_PYTHON.");
/** The rate that torch reaches, in gigabytes per second; undefined without torch. */
const peer: Torch = async (section, question) => {
  const answer = torch === null ? null : await python.ask([section, question]);
  return answer === null ? undefined : Number(answer);
};

using cuda = Cuda.open();
const { bun } = process.versions;
const runtime = bun === undefined ? `Deno ${process.versions["deno"]}` : `Bun ${bun}`;
console.log(`## ${runtime}\n\n${cuda.device(0).name}; torch ${torch ?? "-"}.`);
let failures = 0;
for (const name of wanted) failures += await sections[name](cuda, peer);
console.log(`\n${failures === 0 ? "All claims hold" : `${failures} claims fail`}.`);
process.exitCode = failures === 0 ? 0 : 1;
