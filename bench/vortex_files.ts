/**
 * Scanning Vortex files to Arrow beside PyVortex, in one run on one machine. Prints Markdown.
 *
 * Claim: a whole file is scanned at 0.3 or more of PyVortex's rate, and 2 of 50 columns take less than 6% of the file's
 * bytes.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/vortex_files.ts
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/vortex_files.ts
 * ```
 *
 * Both sides open the file by its path, and read it from the page cache; they alternate, and for each the median of the
 * fastest round counts. The median of all rounds is printed beside it. PyVortex uses all processors, we use one.
 */
import { do_not_optimize } from "mitata";
import { rmSync } from "node:fs";
import process from "node:process";
import { openVortex } from "../src/vortex/mod.ts";
import { headOf, Peer, Rounds } from "./peer.ts";

const ROUNDS = 5;
/** Scans per round, on either side. */
const TIMES = 3;
/** Warm-up scans. */
const WARM = 4;
/** The minimum rate, as a fraction of the peer's, and the maximum of a projection, as a fraction of the bytes. */
const [minRate, maxBytes] = [0.3, 0.06];

interface PeerReport {
  readonly folder: string;
  readonly versions: Readonly<Record<string, string>>;
  /** Paths by name. */
  readonly files: Readonly<Record<string, string>>;
}

/** Scans a file to Arrow arrays. @returns the fraction of its bytes that was read */
async function scan(path: string, columns: readonly string[] | null): Promise<number> {
  using file = await openVortex(path);
  for await (const batch of file.scan(columns === null ? {} : { columns })) do_not_optimize(batch.toArrow());
  return file.readStatistics.bytes / file.byteLength;
}

async function measure(path: string, columns: readonly string[] | null, times: number): Promise<number[]> {
  const measured: number[] = [];
  for (let time = 0; time < times; time++) {
    const start = performance.now();
    await scan(path, columns);
    measured.push((performance.now() - start) / 1000);
  }
  return measured;
}

const milliseconds = (seconds: number) => (seconds * 1000).toFixed(1);

async function main(): Promise<boolean> {
  using peer = Peer.python("vortex_files_peer.py");
  const report = await peer.ask(null) as PeerReport | null; // as vortex_files_peer.py writes it
  if (report === null) {
    console.error("The peer does not run: set CAUSEWAY_PYTHON to a Python with vortex-data, pyarrow and numpy");
    return false;
  }
  console.log(headOf(report.versions));
  console.log("| file | columns | ours ms | PyVortex ms | rate | medians | bytes read | claim |");
  console.log("|---|---|--:|--:|--:|--:|--:|---|");
  let holds = true;
  for (const [name, path] of Object.entries(report.files)) {
    for (const columns of name.includes("50") ? [null, ["c7", "c31"]] : [null]) {
      await measure(path, columns, WARM);
      const [ours, theirs] = [new Rounds(), new Rounds()];
      for (let round = 0; round < ROUNDS; round++) {
        ours.add(await measure(path, columns, TIMES));
        theirs.add(await peer.ask({ name, columns, times: TIMES }) as number[]); // as the peer writes it
      }
      const rate = theirs.best / ours.best;
      const part = await scan(path, columns);
      const isMet = columns === null ? rate >= minRate : part < maxBytes;
      if (!isMet) holds = false;
      const claim = columns === null ? `rate ${minRate}` : `under ${100 * maxBytes}% of the bytes`;
      console.log(
        `| ${name} | ${columns === null ? "all" : columns.length} | ${milliseconds(ours.best)} | ` +
          `${milliseconds(theirs.best)} | ${rate.toFixed(2)} | ${(theirs.median / ours.median).toFixed(2)} | ` +
          `${(100 * part).toFixed(1)}% | ${claim} |`,
      );
    }
  }
  console.log(holds ? "\nThe claim holds." : "\nThe claim does not hold.");
  rmSync(report.folder, { recursive: true });
  return holds;
}

process.exit(await main() ? 0 : 1);
