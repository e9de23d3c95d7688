/**
 * Bandwidths as text, and as a heat map.
 *
 * @module
 */
import { matricesToSvg } from "../matrix_svg.ts";
import { simulatedNotice } from "../open_cuda.ts";
import { formatBinary } from "../send_recv/byte_counts.ts";
import { textTable } from "../table.ts";
import type { Effort, Measured } from "./measure.ts";

/** Everything that `bandwidth` reports. */
export interface BandwidthReport extends Effort {
  readonly simulated: boolean;
  readonly driverVersion: string;
  readonly devices: readonly { readonly ordinal: number; readonly name: string; readonly uuid: string }[];
  /** Size of a copy, in bytes. */
  readonly size: number;
  readonly measurements: readonly Measured[];
}

function headOf({ simulated, devices, driverVersion, size, iterations, samples }: BandwidthReport): string[] {
  return [
    ...(simulated ? [simulatedNotice] : []),
    ...devices.map(({ ordinal, name, uuid }) => `GPU ${ordinal}  ${name}  ${uuid}`),
    `Copies of ${formatBinary(size)}, ${iterations} in a row, the median of ${samples}; ` +
    `driver of CUDA ${driverVersion}. GB/s are 10^9 bytes a second.`,
  ];
}

const shown = (value: number | null) => value === null ? "-" : value.toFixed(2);

/** As text. */
export function formatBandwidth(report: BandwidthReport): string {
  const lines = headOf(report);
  for (
    const { name, title, rows, columns, gigabytesPerSecond, sum, median, min, max, problem } of report.measurements
  ) {
    const cells = rows.map((row, i) => [row, ...(gigabytesPerSecond[i] ?? []).map(shown)]);
    lines.push("", name, `GB/s, ${title}`);
    lines.push(...textTable(["", ...columns], cells, columns.map((_, i) => i + 1)));
    lines.push(`sum ${shown(sum)}  median ${shown(median)}  min ${shown(min)}  max ${shown(max)}`);
    if (problem !== null) lines.push(`given up: ${problem}`);
  }
  return lines.join("\n");
}

/** As a heat map. In each table the largest number is the darkest. */
export function bandwidthSvg(report: BandwidthReport): string {
  const matrices = report.measurements.map(({ name, title, rows, columns, gigabytesPerSecond, max }) => ({
    title: `${name}: GB/s, ${title}`,
    rows,
    columns,
    cells: gigabytesPerSecond.map((row) =>
      row.map((value) => ({ text: shown(value), heat: value === null || max === null ? null : value / max }))
    ),
  }));
  return matricesToSvg(["Bandwidth", ...headOf(report)], matrices);
}
