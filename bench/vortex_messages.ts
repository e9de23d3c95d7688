/**
 * Reading Vortex arrays of many nodes beside PyVortex, in one run on one machine. Prints Markdown.
 *
 * Claim: a tree of 1,000 nodes is rebuilt, from a message or from tuples, in at most twice the time that PyVortex takes
 * to read the message; string views in many chunks become one Arrow array in at most three times its time.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/vortex_messages.ts
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/vortex_messages.ts
 * ```
 *
 * Both sides have the same messages in memory (vortex_messages_peer.py writes them) and alternate; for each the median
 * of the fastest round counts. The median of all rounds is printed beside it.
 */
import { do_not_optimize } from "mitata";
import { readFileSync, rmSync } from "node:fs";
import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { decodeVortexIpc, fromVortexMetadata, type VortexArray } from "../src/vortex/mod.ts";
import { headOf, Peer, Rounds } from "./peer.ts";

const ROUNDS = 9;
/** Runs per round, on either side. */
const TIMES = 30;
/** Warm-up runs. */
const WARM = 200;

interface PeerReport {
  readonly folder: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly arrays: readonly { readonly name: string; readonly array: string; readonly dtype: string }[];
}

/** A measurement. */
interface Measured {
  readonly what: string;
  /** The peer's counterpart. */
  readonly theirs: "read" | "convert";
  /** The maximum time, as a multiple of the peer's. */
  readonly most: number;
  /** Setup before the clock starts. */
  readonly prepare: () => VortexArray | null;
  readonly run: (prepared: VortexArray | null) => unknown;
}

/** Seconds of each of `times` runs. */
async function measure({ prepare, run }: Measured, times: number): Promise<number[]> {
  const measured: number[] = [];
  for (let time = 0; time < times; time++) {
    const prepared = prepare();
    const start = performance.now();
    do_not_optimize(run(prepared));
    measured.push((performance.now() - start) / 1000);
    await setImmediate(); // lets dropped objects be reclaimed
  }
  return measured;
}

/** The measurements of an array. */
function measuredOf(name: string, array: Uint8Array, dtype: Uint8Array): readonly Measured[] {
  const read = () => decodeVortexIpc(array, { dtype });
  const nothing = () => null;
  if (!name.includes("nodes")) {
    const run = (prepared: VortexArray | null) => prepared?.toArrow();
    return [{ what: "to Arrow", theirs: "convert", most: 3, prepare: read, run }];
  }
  const tree = read().toMetadata();
  return [
    { what: "from a message", theirs: "read", most: 2, prepare: nothing, run: read },
    { what: "from tuples", theirs: "read", most: 2, prepare: nothing, run: () => fromVortexMetadata(tree) },
  ];
}

const microseconds = (seconds: number) => (seconds * 1e6).toFixed(0);

async function main(): Promise<boolean> {
  using peer = Peer.python("vortex_messages_peer.py");
  const report = await peer.ask(null) as PeerReport | null; // as vortex_messages_peer.py writes it
  if (report === null) {
    console.error("The peer does not run: set CAUSEWAY_PYTHON to a Python with vortex-data and pyarrow");
    return false;
  }
  console.log(headOf(report.versions));
  console.log("| array | what | ours us | PyVortex us | times | medians | claim |");
  console.log("|---|---|--:|--:|--:|--:|--:|");
  let holds = true;
  for (const { name, array, dtype } of report.arrays) {
    for (const one of measuredOf(name, readFileSync(array), readFileSync(dtype))) {
      await measure(one, WARM);
      const [ours, theirs] = [new Rounds(), new Rounds()];
      for (let round = 0; round < ROUNDS; round++) {
        ours.add(await measure(one, TIMES));
        theirs.add(await peer.ask({ name, times: TIMES, what: one.theirs }) as number[]); // as the peer writes it
      }
      const times = ours.best / theirs.best;
      if (times > one.most) holds = false;
      console.log(
        `| ${name} | ${one.what} | ${microseconds(ours.best)} | ${microseconds(theirs.best)} | ${times.toFixed(2)} | ` +
          `${(ours.median / theirs.median).toFixed(2)} | ${one.most} |`,
      );
    }
  }
  console.log(holds ? "\nThe claim holds." : "\nThe claim does not hold.");
  rmSync(report.folder, { recursive: true });
  return holds;
}

process.exit(await main() ? 0 : 1);
