/** `causeway send-recv` reports what UCXX's benchmark does. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { test } from "node:test";
import { formatBinary, formatRateBinary } from "../../../src/cli/send_recv/byte_counts.ts";
import { medianOf } from "../../../src/cli/median.ts";
import { formatReport, jsonReport, statisticsOf } from "../../../src/cli/send_recv/report.ts";
import { patiently } from "../../support/child.ts";
import { allowedProcessors } from "../../support/processors.ts";
import { check, fc } from "../../support/property.ts";
import { options, sendRecv } from "./command.ts";
import { masked, ofUcxx } from "./ucxx_report.ts";

test("the report is UCXX's, line by line", patiently, async () => {
  const { code, stdout, stderr } = await sendRecv(["-n", "1000", "--n-iter", "3", "-s", "127.0.0.1"]);
  assertEquals([code, stderr], [0, ""]);
  assertEquals(masked(stdout), masked(ofUcxx));
});

test("UCXX's own times give UCXX's results", () => {
  // Its round trips are known to 2 ns: twice the latencies, whose fractions it truncated.
  const times = [46707, 44819, 31317].map((latency) => 2 * latency);
  const report = formatReport({
    options: options("-n", "1000", "--n-iter", "3"),
    tls: "all",
    netDevices: "all",
    times,
    comparison: null,
  });
  const lines = (text: string[]) => text.filter((line) => /^(Bandwidth|Latency|\d)/.test(line));
  const theirs = lines(ofUcxx.split("\n"));
  // 40948 is the mean before truncation; after truncation it is 40947.67.
  assertEquals(lines(report), theirs.map((line) => line.replace("40948 ns", "40947 ns")));
});

test("the lines for processors, a GPU and what UCXX does not have", () => {
  const of = (...args: string[]) =>
    formatReport({ options: options(...args), tls: "tcp", netDevices: "lo", times: [2000], comparison: null }).join(
      "\n",
    );
  assertMatch(of("-b", "0", "-c", "1"), /\nServer CPU {16}\| 0\nClient CPU {16}\| 1\n/);
  assertMatch(of("-o", "cupy", "-d", "2", "-e", "3"), /\n=+\nDevice\(s\) {17}\| 2, 3\n=+\nBandwidth/);
  assertMatch(of("--ndim", "3", "-n", "8"), /\nObject type .*\nDimensions {16}\| 3\nReuse/);
  assertMatch(
    of("--sync", "--errors", "none"),
    /\| adaptive\nSync {22}\| True\nError handling {12}\| False\nUCX_TLS {19}\| tcp\n/,
  );
  assert(!/Sync|Dimensions|Error|Against/.test(of()));
  assertMatch(of("--reuse-alloc", "--transfer-api", "am"), /\| True\nBackend .*\nTransfer API {14}\| AM\n/);
  assert(of("--no-detailed-report").endsWith("\nLatency (median)          | 1000 ns"));
});

test("statistics agree with whole-number arithmetic", () => {
  const time = fc.integer({ min: 1, max: 2 ** 40 });
  return check(fc.property(fc.array(time, { minLength: 1, maxLength: 200 }), fc.nat(2 ** 33), (times, bytes) => {
    const exact = times.map(BigInt);
    const sum = exact.reduce((all, value) => all + value, 0n);
    // The median, doubled, by counting instead of sorting: a value with no more than half on either side.
    const isMiddle = (value: bigint) =>
      2 * exact.filter((other) => other < value).length <= exact.length &&
      2 * exact.filter((other) => other > value).length <= exact.length;
    const middle = exact.filter(isMiddle);
    const doubled = middle.reduce((a, b) => a < b ? a : b) + middle.reduce((a, b) => a > b ? a : b);
    assertEquals(medianOf(times) * 2, Number(doubled));
    const { latencyAverage, latencyMedian, bandwidthAverage, bandwidthMedian } = statisticsOf(times, bytes);
    assertEquals(BigInt(latencyAverage), sum / (2n * BigInt(times.length)));
    assertEquals(BigInt(latencyMedian), doubled / 4n);
    const close = (value: number, over: bigint, under: bigint) => {
      const scaled = over * 10n ** 12n / under;
      assert(Math.abs(value - Number(scaled) / 1e12) <= 1e-9 * value + 1e-9, `${value}, ${over}/${under}`);
    };
    close(bandwidthAverage, 2_000_000_000n * BigInt(bytes) * BigInt(times.length), sum);
    close(bandwidthMedian, 4_000_000_000n * BigInt(bytes), doubled);
  }));
});

test("bytes are formatted as Python formats them: rounded to the even digit in the middle", () => {
  // "%.2f" of Python for n / 1024, and so on.
  assertEquals([0, 1, 1000, 1023].map(formatBinary), ["0 B", "1 B", "1000 B", "1023 B"]);
  assertEquals([1152, 1408, 1664, 1920].map(formatBinary), ["1.12 KiB", "1.38 KiB", "1.62 KiB", "1.88 KiB"]);
  assertEquals([512, 512.5, 1e7, 0].map(formatRateBinary), ["512.0 B/s", "512.5 B/s", "9.54 MiB/s", "0.0 B/s"]);
  const integer = fc.oneof(fc.maxSafeNat(), fc.nat(1 << 24), fc.nat(1 << 13).map((n) => n * 128));
  return check(fc.property(integer, (bytes) => {
    const power = [1, 2, 3, 4].findLast((power) => BigInt(bytes) >= 1n << BigInt(10 * power));
    if (power === undefined) return assertEquals(formatBinary(bytes), `${bytes} B`);
    const unit = 1n << BigInt(10 * power);
    const [whole, rest] = [BigInt(bytes) * 100n / unit, BigInt(bytes) * 100n % unit];
    const isUp = 2n * rest > unit || (2n * rest === unit && whole % 2n === 1n);
    const hundredths = `${whole + (isUp ? 1n : 0n)}`.padStart(3, "0");
    const text = `${hundredths.slice(0, -2)}.${hundredths.slice(-2)} ${["KiB", "MiB", "GiB", "TiB"][power - 1]}`;
    assertEquals(formatBinary(bytes), text);
  }));
});

for (const api of ["tag", "am", "stream", "rma"] as const) {
  test(`--json has the report's keys, and both sides run on the given processor: ${api}`, patiently, async () => {
    const [cpu = 0] = allowedProcessors();
    const args = ["-n", "64KiB", "--n-iter", "4", "--json", "--transfer-api", api, "-b", `${cpu}`, "-c", `${cpu}`];
    const { code, stdout, stderr } = await sendRecv([...args, "--reuse-alloc"], { UCX_TLS: "tcp" });
    assertEquals([code, stderr], [0, ""]);
    const report = JSON.parse(stdout);
    assertEquals([report.iterations, report.bytes, report.transfer_api, report.ucx_tls], [4, 65536, api, "tcp"]);
    assertEquals([report.server_cpu, report.client_cpu, report.reuse_allocation], [cpu, cpu, true]);
    assertEquals(report.round_trips.length, 4);
    const latencies: number[] = report.round_trips.map((trip: { latency_ns: number }) => trip.latency_ns);
    assert(latencies.every((latency) => latency > 1000), `${latencies}`); // over TCP
    assert(Math.min(...latencies) <= report.latency_median_ns && report.latency_median_ns <= Math.max(...latencies));
    assert(Math.min(...latencies) <= report.latency_average_ns && report.latency_average_ns <= Math.max(...latencies));
    for (const which of ["average", "median"]) {
      const [rate, latency] = [report[`bandwidth_${which}_bytes_per_s`], report[`latency_${which}_ns`]];
      assert(Math.abs(rate * latency / 1e9 / 65536 - 1) < 0.01, `${rate} B/s, ${latency} ns`);
    }
  });
}

test("UCX's warnings go to standard error: only the JSON is printed", patiently, async () => {
  const args = ["-n", "8", "--n-iter", "2", "--json"];
  const { code, stdout, stderr, ucx } = await sendRecv(args, { UCX_TLS: "tcp,nonesuch" });
  assertEquals([code, stderr], [0, ""]);
  assertEquals(JSON.parse(stdout).iterations, 2);
  const warnings = ucx.filter(([line]) => line.includes("transport 'nonesuch' is not available"));
  assertEquals(new Set(warnings.map(([, process]) => process)).size, 2, ucx.join(""));
});

test("several buffers are counted as UCXX counts them: in the bandwidth, not in the bytes", patiently, async () => {
  const report = { tls: "all", netDevices: "all", times: [2000, 4000, 9000], comparison: null };
  const text = (...args: string[]) => formatReport({ ...report, options: options(...args) }).join("\n");
  // As UCXX: 2 * n_iter * n_bytes * n_buffers / sum(times), 2 * n_bytes * n_buffers / median(times), 2 * ... / time.
  assertEquals(text("-n", "1024", "-x", "8").split("\n").filter((line) => /^(By|Nu|Band|La|\d)/.test(line)), [
    "Bytes                     | 1.00 KiB",
    "Number of buffers         | 8",
    "Bandwidth (average)       | 3.05 GiB/s",
    "Bandwidth (median)        | 3.81 GiB/s",
    "Latency (average)         | 2500 ns",
    "Latency (median)          | 2000 ns",
    "0                         | 7.63 GiB/s, 1000ns",
    "1                         | 3.81 GiB/s, 2000ns",
    "2                         | 1.70 GiB/s, 4500ns",
  ]);
  const { code, stdout, stderr } = await sendRecv(["-n", "1KiB", "-x", "120", "--n-iter", "3", "--json", "-v"]);
  assertEquals(code, 0, stderr);
  const json = JSON.parse(stdout);
  assertEquals([json.bytes, json.number_of_buffers, json.round_trips.length], [1024, 120, 3]);
  const rate = (latency: number) => 1024 * 120 * 1e9 / latency;
  const isNear = (value: number, expected: number) => assert(Math.abs(value / expected - 1) < 0.01, `${value}`);
  isNear(json.bandwidth_median_bytes_per_s, rate(json.latency_median_ns));
  isNear(json.bandwidth_average_bytes_per_s, rate(json.latency_average_ns));
  for (const trip of json.round_trips) isNear(trip.bandwidth_bytes_per_s, rate(trip.latency_ns));
  const [, printed = "", latency = ""] = /^2 +\| (.*), (\d+)ns$/m.exec(stderr) ?? [];
  assertEquals(Number(latency), json.round_trips[2].latency_ns);
  assertEquals(printed, formatRateBinary(json.round_trips[2].bandwidth_bytes_per_s));
});

test("the JSON report says what the text says", () => {
  const report = {
    options: options("-n", "1000"),
    tls: "all",
    netDevices: "all",
    times: [2000, 4000, 9000],
    comparison: { baseline: "ucxx", rounds: 5, latencyMedian: 1000, ratio: 2, spread: 0.1, differences: ["1-d"] },
  };
  const json = jsonReport(report);
  const text = formatReport(report).join("\n");
  assertEquals(json["latency_median_ns"], 2000);
  assertMatch(
    text,
    /\nLatency \(median\) +\| 2000 ns\n=+\nAgainst +\| ucxx, 5 runs of each in turns\nIt differs +\| 1-d\nIts latency \(median\) +\| 1000 ns\n/,
  );
  assertMatch(text, /\nOurs over its +\| 2\.00\nSpread of its runs +\| 10%\n/);
  const against = {
    name: "ucxx",
    runs: 5,
    latency_median_ns: 1000,
    latency_ratio: 2,
    spread: 0.1,
    differences: ["1-d"],
  };
  assertEquals(json["against"], against);
  assertEquals(json["error_handling"], true);
});
