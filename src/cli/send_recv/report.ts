/**
 * What `causeway send-recv` reports: line by line what UCXX's benchmark prints, or the same as JSON.
 *
 * @module
 */
import { medianOf } from "../median.ts";
import { formatBinary, formatRateBinary } from "./byte_counts.ts";
import type { SendRecvOptions } from "./options.ts";

/** What a run has measured, over round trips of one size. */
export interface Statistics {
  /** Bytes a second, both ways counted. */
  readonly bandwidthAverage: number;
  readonly bandwidthMedian: number;
  /** Nanoseconds of half a round trip, truncated. */
  readonly latencyAverage: number;
  readonly latencyMedian: number;
}

/** Half round trips of another program, measured alternately with ours. */
export interface Comparison {
  readonly baseline: string;
  /** How often each ran. */
  readonly rounds: number;
  /** The median of its runs' medians, in nanoseconds. */
  readonly latencyMedian: number;
  /** Our latency over its own: above 1, the other program is faster. */
  readonly ratio: number;
  /** The spread of its runs, as a fraction of their median. */
  readonly spread: number;
  /** What it did otherwise than the options say. */
  readonly differences: readonly string[];
}

/** Everything that is reported. */
export interface Report {
  readonly options: SendRecvOptions;
  /** What UCX is configured to use. */
  readonly tls: string;
  readonly netDevices: string;
  /** Round trips, in whole nanoseconds. */
  readonly times: readonly number[];
  readonly comparison: Comparison | null;
}

/** Bytes that one transfer carries. */
export function bytesOf({ bytes, buffers }: Pick<SendRecvOptions, "bytes" | "buffers">): number {
  return bytes * buffers;
}

/**
 * @param times round trips, in whole nanoseconds
 * @param bytes that each carried one way
 */
export function statisticsOf(times: readonly number[], bytes: number): Statistics {
  const sum = times.reduce((all, time) => all + time, 0);
  const median = medianOf(times);
  return {
    bandwidthAverage: 2e9 * times.length * bytes / sum,
    bandwidthMedian: 2e9 * bytes / median,
    latencyAverage: Math.trunc(sum / (2 * times.length)),
    latencyMedian: Math.trunc(median / 2),
  };
}

const width = 80;

function line(key: string, value: string | number): string {
  return `${key.padEnd(25)} | ${value}`;
}

/** As Python prints it. */
function yes(is: boolean): string {
  return is ? "True" : "False";
}

/** The report as text. Lines that UCXX lacks appear only with options that it lacks. */
export function formatReport({ options, tls, netDevices, times, comparison }: Report): string[] {
  const { bandwidthAverage, bandwidthMedian, latencyAverage, latencyMedian } = statisticsOf(times, bytesOf(options));
  const separator = "=".repeat(width);
  const notSet = "affinity not set";
  return [
    "Roundtrip benchmark",
    separator,
    line("Iterations", options.iterations),
    line("Bytes", formatBinary(options.bytes)),
    line("Number of buffers", options.buffers),
    line("Object type", options.objectType),
    ...(options.ndim === 1 ? [] : [line("Dimensions", options.ndim)]),
    line("Reuse allocation", yes(options.reuse)),
    line("Backend", "causeway"),
    line("Transfer API", options.api.toUpperCase()),
    line("Progress mode", options.progress),
    ...(options.sync ? [line("Sync", yes(true))] : []),
    ...(options.errors === "peer" ? [] : [line("Error handling", yes(false))]),
    line("UCX_TLS", tls),
    line("UCX_NET_DEVICES", netDevices),
    separator,
    ...(options.memory === "device" ? [line("Device(s)", `${options.serverDevice}, ${options.clientDevice}`)] : [
      line("Device(s)", "CPU-only"),
      line("Server CPU", options.serverCpu ?? notSet),
      line("Client CPU", options.clientCpu ?? notSet),
    ]),
    separator,
    line("Bandwidth (average)", formatRateBinary(bandwidthAverage)),
    line("Bandwidth (median)", formatRateBinary(bandwidthMedian)),
    line("Latency (average)", `${latencyAverage} ns`),
    line("Latency (median)", `${latencyMedian} ns`),
    ...(comparison === null ? [] : [
      separator,
      line("Against", `${comparison.baseline}, ${comparison.rounds} runs of each in turns`),
      ...comparison.differences.map((what) => line("It differs", what)),
      line("Its latency (median)", `${comparison.latencyMedian} ns`),
      line("Ours over its", comparison.ratio.toFixed(2)),
      line("Spread of its runs", `${(comparison.spread * 100).toFixed(0)}%`),
    ]),
    ...(options.detailed
      ? [
        separator,
        line("Iterations", "Bandwidth, Latency"),
        "-".repeat(width),
        ...times.map((time, i) => formatRoundTrip(i, time, bytesOf(options))),
      ]
      : []),
  ];
}

/** One round trip of the report. `time`: in nanoseconds. */
export function formatRoundTrip(index: number | string, time: number, bytes: number): string {
  return line(`${index}`, `${formatRateBinary(2e9 * bytes / time)}, ${Math.trunc(time / 2)}ns`);
}

/** The report as JSON: the same keys, in snake_case. */
export function jsonReport({ options, tls, netDevices, times, comparison }: Report): Record<string, unknown> {
  const statistics = statisticsOf(times, bytesOf(options));
  return {
    iterations: options.iterations,
    bytes: options.bytes,
    number_of_buffers: options.buffers,
    object_type: options.objectType,
    dimensions: options.ndim,
    reuse_allocation: options.reuse,
    backend: "causeway",
    transfer_api: options.api,
    progress_mode: options.progress,
    sync: options.sync,
    error_handling: options.errors === "peer",
    ucx_tls: tls,
    ucx_net_devices: netDevices,
    devices: options.memory === "device" ? [options.serverDevice, options.clientDevice] : null,
    server_cpu: options.serverCpu,
    client_cpu: options.clientCpu,
    bandwidth_average_bytes_per_s: statistics.bandwidthAverage,
    bandwidth_median_bytes_per_s: statistics.bandwidthMedian,
    latency_average_ns: statistics.latencyAverage,
    latency_median_ns: statistics.latencyMedian,
    ...(comparison === null ? {} : {
      against: {
        name: comparison.baseline,
        runs: comparison.rounds,
        latency_median_ns: comparison.latencyMedian,
        latency_ratio: comparison.ratio,
        spread: comparison.spread,
        differences: comparison.differences,
      },
    }),
    ...(options.detailed
      ? {
        round_trips: times.map((time) => ({
          bandwidth_bytes_per_s: 2e9 * bytesOf(options) / time,
          latency_ns: Math.trunc(time / 2),
        })),
      }
      : {}),
  };
}
