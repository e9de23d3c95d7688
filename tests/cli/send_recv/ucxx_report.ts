/**
 * A report of UCXX's benchmark.
 *
 * @module
 */

/** What UCXX 0.52 printed for `-n 1000 --n-iter 3 -s 127.0.0.1`. */
export const ofUcxx = `Server Running at 127.0.0.1:39939
Client connecting to server at 127.0.0.1:39939
Roundtrip benchmark
================================================================================
Iterations                | 3
Bytes                     | 1000 B
Number of buffers         | 1
Object type               | numpy
Reuse allocation          | False
Backend                   | ucxx-async
Transfer API              | TAG
Progress mode             | thread
UCX_TLS                   | all
UCX_NET_DEVICES           | all
================================================================================
Device(s)                 | CPU-only
Server CPU                | affinity not set
Client CPU                | affinity not set
================================================================================
Bandwidth (average)       | 23.29 MiB/s
Bandwidth (median)        | 21.28 MiB/s
Latency (average)         | 40948 ns
Latency (median)          | 44819 ns
================================================================================
Iterations                | Bandwidth, Latency
--------------------------------------------------------------------------------
0                         | 20.42 MiB/s, 46707ns
1                         | 21.28 MiB/s, 44819ns
2                         | 30.45 MiB/s, 31317ns
`;

/** A report without the values that differ between runs and the names that differ between the two programs. */
export function masked(report: string): string[] {
  return report
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:PORT")
    .replaceAll(/\d+(\.\d+)? ([KMGT]i)?B\/s/g, "RATE")
    .replaceAll(/\d+ ?ns/g, "TIME")
    .replace(/^(Backend +\|) [\w-]+$/m, "$1 NAME")
    .replace(/^(Progress mode +\|) \w+$/m, "$1 MODE")
    .split("\n");
}
