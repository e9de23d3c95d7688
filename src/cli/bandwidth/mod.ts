/**
 * `causeway bandwidth`: how fast bytes move between host and devices, within a device, and between devices.
 *
 * `measurements.ts` lists what is measured; `bench.ts` allocates what that needs, and frees it; `measure.ts` times
 * copies with the devices' clocks; `copy_kernel.ts` is the kernel that copies; `format.ts` writes the report.
 *
 * @module
 */
import { command, helpHint } from "../command.ts";
import { wholeNumber } from "../arguments.ts";
import { didYouMean } from "../did_you_mean.ts";
import { openCuda, simulateOption } from "../open_cuda.ts";
import { ProgressLine } from "../progress_line.ts";
import { parseBytes } from "../send_recv/byte_counts.ts";
import { UsageError } from "../usage_error.ts";
import { svgOption, writeSvg } from "../write_svg.ts";
import { vectorBytes } from "./copy_kernel.ts";
import { type BandwidthReport, bandwidthSvg, formatBandwidth } from "./format.ts";
import type { Effort } from "./measure.ts";
import { type Measurement, measurements } from "./measurements.ts";
import type { Cuda } from "../../cuda/mod.ts";
import { print } from "../print.ts";

const usage = helpHint("bandwidth");

/** JavaScript makes simulated copies, and runs simulated kernels instruction by instruction. */
const defaults = { size: 256 * 2 ** 20, iterations: 16, simulatedSize: 16 * 2 ** 10, simulatedIterations: 2 };

/** The command. */
export const bandwidth = command({
  name: "bandwidth",
  takes: "[options]",
  summary: "measure copies between host and GPUs, within and between GPUs, by engines and kernels",
  about:
    "Measures how fast bytes are copied, as nvbandwidth does, under its names: host to GPU and back (page-locked\n" +
    "and ordinary memory), within a GPU, and from every GPU to every other one, by copy engines and by kernels.\n" +
    "Copies are timed by the GPU's own clock, and what arrives is checked. Takes two buffers of --size on\n" +
    "each GPU and four on the host, and frees them. Without options, measures everything:\n\n" +
    measurements.map(({ name }) => `  ${name}`).join("\n"),
  options: {
    test: { type: "string", short: "t", multiple: true, value: "NAME", says: "measure this alone; can be repeated" },
    size: { type: "string", short: "s", value: "N", says: "bytes per copy: 64MiB, 1e8 (default 256MiB)" },
    iterations: { type: "string", short: "i", value: "N", says: "copies in a row (default 16)" },
    samples: { type: "string", value: "N", says: "how many times to repeat this; the median counts (default 3)" },
    json: { type: "boolean", says: "the report as JSON" },
    svg: svgOption,
    simulate: {
      ...simulateOption,
      says: `${simulateOption.says};\ncopies of 16KiB, 2 in a row, by default`,
    },
  },
  examples: ["", "--test device_to_device_memcpy_read_ce --svg heat.svg", "--size 1GiB --json", "--simulate 2"],
  failsIf: "there is no GPU, or something could not be measured",
  run: async ({ values }) => {
    const chosen = choose(values.test);
    const isDemonstration = values.simulate !== undefined;
    const size = sizeOf(values.size, isDemonstration ? defaults.simulatedSize : defaults.size);
    const number = (name: "iterations" | "samples", otherwise: number) =>
      wholeNumber(name, values[name] ?? `${otherwise}`, 1, 1_000_000, usage);
    const effort = {
      iterations: number("iterations", isDemonstration ? defaults.simulatedIterations : defaults.iterations),
      samples: number("samples", 3),
    };
    const opened = await openCuda(values.simulate, usage);
    using cuda = opened.cuda;
    const report = await measureBandwidth(cuda, opened.isSimulated, chosen, size, effort);
    print(values.json === true ? JSON.stringify(report, null, 2) : formatBandwidth(report));
    if (values.svg !== undefined) writeSvg(values.svg, bandwidthSvg(report)); // last: it may fail
    return report.measurements.some(({ problem }) => problem !== null) ? 1 : 0;
  },
});

/** Measures on all devices of a Cuda. Everything it allocates is freed. */
export async function measureBandwidth(
  cuda: Cuda,
  isSimulated: boolean,
  chosen: readonly Measurement[],
  size: number,
  effort: Effort,
): Promise<BandwidthReport> {
  const possible = chosen.filter(({ rows }) => rows !== "devices" || cuda.devices.length > 1);
  const measured = [];
  const [{ Bench }, { cellsOf, measureAll }] = await Promise.all([import("./bench.ts"), import("./measure.ts")]);
  using bench = new Bench(cuda, size);
  const total = possible.reduce((sum, one) => sum + cellsOf(one, cuda.devices.length), 0);
  using progress = new ProgressLine(total);
  let cells = 0;
  for (const one of possible) measured.push(await measureAll(one, bench, effort, () => progress.update(++cells)));
  return {
    simulated: isSimulated,
    driverVersion: cuda.driverVersion.join("."),
    devices: cuda.devices.map(({ ordinal, name, uuid }) => ({ ordinal, name, uuid })),
    size,
    ...effort,
    measurements: measured,
  };
}

function choose(names: readonly string[] | undefined): readonly Measurement[] {
  if (names === undefined) return measurements;
  const known = measurements.map(({ name }) => name);
  for (const name of names) {
    if (!known.includes(name)) throw new UsageError(`--test: unknown test ${name}${didYouMean(name, known)}`, usage);
  }
  return measurements.filter(({ name }) => names.includes(name));
}

function sizeOf(given: string | undefined, otherwise: number): number {
  if (given === undefined) return otherwise;
  const bytes = parseBytes(given);
  if (bytes !== undefined && bytes > 0 && bytes % vectorBytes === 0) return bytes;
  throw new UsageError(
    `--size: expected a number of bytes such as 64MiB or 1e8, a multiple of ${vectorBytes}, got ${given}`,
    usage,
  );
}
