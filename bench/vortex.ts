/**
 * Decoding Vortex arrays to Arrow beside PyVortex, in one run on one machine. Prints Markdown.
 *
 * Claim, as a fraction of PyVortex's rate: bitpacked integers of 32 bits at least 0.5, integers of 64 bits and
 * fractions 0.25, runs and dictionaries 0.5, compressed text 0.3.
 *
 * ```sh
 * CAUSEWAY_PYTHON=venv/bin/python deno run -A bench/vortex.ts [rows]
 * CAUSEWAY_PYTHON=venv/bin/python bun bench/vortex.ts [rows]
 * ```
 *
 * The peer, vortex_peer.py, compresses random columns of 10^7 rows and passes them on as messages. Both sides decode
 * the same bytes, already in memory, to new Arrow arrays; they alternate, and for each the median of the fastest round
 * counts. The median of all rounds is printed beside it.
 */
import { do_not_optimize } from "mitata";
import { readFileSync, rmSync } from "node:fs";
import process from "node:process";
import { setImmediate } from "node:timers/promises";
import { toArrowArray } from "../src/vortex/arrow/to_arrow.ts";
import { DecodeContext } from "../src/vortex/decode_context.ts";
import { type EncodedNode, rootNode } from "../src/vortex/encoded_node.ts";
import { limitsOf } from "../src/vortex/limits.ts";
import { openAll } from "../src/vortex/open_nodes.ts";
import { VortexSession } from "../src/vortex/session.ts";
import { readArray } from "../src/vortex/wire/array_flatbuffer.ts";
import { readDType } from "../src/vortex/wire/dtype_flatbuffer.ts";
import { messagesOf } from "../src/vortex/wire/ipc_message.ts";
import { headOf, Peer, Rounds } from "./peer.ts";

const rows = Number(process.argv[2] ?? 1e7);
const ROUNDS = 7;
/** Decodes per round, on either side. */
const TIMES = 5;
/** Warm-up decodes: engines compile hot code, WebAssembly too. */
const WARM = 8;

/** The minimum rate, as a fraction of the peer's, by the prefix of an array's name. */
const claims: readonly (readonly [start: string, least: number])[] = [
  ["bitpacked u32", 0.5],
  ["bitpacked + for i64", 0.25],
  ["alp f64", 0.25],
  ["runend", 0.5],
  ["dict", 0.5],
  ["hexadecimal", 0.3],
  ["urls", 0.3],
];

/** An array of the peer. */
interface PeerArray {
  readonly name: string;
  readonly rows: number;
  /** Its size in bytes, as encoded by PyVortex and as decoded to Arrow. */
  readonly encoded: number;
  readonly decoded: number;
  readonly encodings: readonly string[];
  /** Files of the messages. */
  readonly dtype: string;
  readonly array: string;
}

interface PeerReport {
  readonly folder: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly arrays: readonly PeerArray[];
}

const limits = limitsOf();
const session = VortexSession.default();

/** Reads an array without decoding it. */
function open({ dtype, array }: PeerArray): EncodedNode {
  const [first] = messagesOf(new Uint8Array(readFileSync(dtype)));
  const [second] = messagesOf(new Uint8Array(readFileSync(array)));
  if (first?.kind !== "dtype" || second?.kind !== "array") throw new Error("Expected a dtype and an array");
  const root = rootNode(
    readArray(second.body, second.ids, limits),
    readDType(first.body, "dtype", limits),
    second.rowCount,
  );
  openAll(session, root);
  return root;
}

/** Seconds of each of `times` decodes. */
async function measure(root: EncodedNode, times: number): Promise<number[]> {
  const measured: number[] = [];
  for (let time = 0; time < times; time++) {
    const start = performance.now();
    const context = new DecodeContext(session, limits);
    do_not_optimize(toArrowArray(context.decode(root), "", session, context.allocator(root)));
    measured.push((performance.now() - start) / 1000);
    await setImmediate(); // lets dropped objects be reclaimed
  }
  return measured;
}

/** An encoding of the array that is not supported here, or null. */
function unknownIn({ encodings }: PeerArray): string | null {
  return encodings.find((id) => !session.knows(id)) ?? null;
}

const gigabytes = (bytes: number, seconds: number) => (bytes / seconds / 1e9).toFixed(2);

async function main(): Promise<boolean> {
  using peer = Peer.python("vortex_peer.py");
  const report = await peer.ask(rows) as PeerReport | null; // as vortex_peer.py writes it
  if (report === null) {
    console.error("The peer does not run: set CAUSEWAY_PYTHON to a Python with vortex-data, pyarrow and numpy");
    return false;
  }
  console.log(headOf(report.versions, `${rows} rows`));
  console.log("| array | encodings | decoded MB | encoded MB | ours GB/s | PyVortex GB/s | part | medians | claim |");
  console.log("|---|---|--:|--:|--:|--:|--:|--:|--:|");
  let holds = true;
  for (const array of report.arrays) {
    const { name, encoded, decoded, encodings } = array;
    const sizes = `${(decoded / 1e6).toFixed(1)} | ${(encoded / 1e6).toFixed(1)}`;
    const ids = encodings.map((id) => id.replace(/^vortex\./, "")).join(", ");
    const unknown = unknownIn(array);
    if (unknown !== null) {
      console.log(`| ${name} | ${ids} | ${sizes} | ${unknown} is unknown |  |  |  |  |`);
      continue;
    }
    const root = open(array);
    await measure(root, WARM);
    const [ours, theirs] = [new Rounds(), new Rounds()];
    for (let round = 0; round < ROUNDS; round++) {
      ours.add(await measure(root, TIMES));
      theirs.add(await peer.ask({ name, times: TIMES }) as number[]); // as vortex_peer.py writes it
    }
    const part = theirs.best / ours.best;
    const least = claims.find(([start]) => name.startsWith(start))?.[1];
    if (least !== undefined && part < least) holds = false;
    console.log(
      `| ${name} | ${ids} | ${sizes} | ${gigabytes(decoded, ours.best)} | ${gigabytes(decoded, theirs.best)} | ` +
        `${part.toFixed(2)} | ${(theirs.median / ours.median).toFixed(2)} | ${least ?? ""} |`,
    );
  }
  console.log(holds ? "\nThe claim holds." : "\nThe claim does not hold.");
  rmSync(report.folder, { recursive: true });
  return holds;
}

process.exit(await main() ? 0 : 1);
