/** The options of `causeway send-recv`: those of UCXX's benchmark, and its own. */
import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { parseBytes } from "../../../src/cli/send_recv/byte_counts.ts";
import { parseOptions } from "../../../src/cli/send_recv/options.ts";
import { UsageError } from "../../../src/cli/usage_error.ts";
import { patiently } from "../../support/child.ts";
import { options, sendRecv } from "./command.ts";

test("numbers of bytes are read as Dask reads them", () => {
  const known: [string, number][] = [
    ["10 Mb", 10_000_000],
    ["1KB", 1000],
    ["1kib", 1024],
    ["5 GiB", 5 * 2 ** 30],
    ["2k", 2000],
    ["3Mi", 3 * 2 ** 20],
    ["1e6", 1_000_000],
    ["1.5 kB", 1500],
    ["10_000", 10_000],
    ["7 B", 7],
    ["MB", 1_000_000],
    ["0", 0],
  ];
  for (const [text, bytes] of known) assertEquals(parseBytes(text), bytes, text);
  for (const text of ["", " ", "x", "-1", "1.5", "0.3kB0", "5 XB", "1 ib", "i", "1e300", "0x10", "NaN", "1 kk"]) {
    assertEquals(parseBytes(text), undefined, text);
  }
});

const bad: { readonly [args: string]: RegExp } = {
  "--n-bytes x": /--n-bytes: expected a number of bytes/,
  "--n-iter 0": /--n-iter: expected a whole number from 1/,
  "--n-iter 1.5": /--n-iter/,
  "--n-warmup-iter=-1": /--n-warmup-iter/,
  "--n-buffers 0": /--n-buffers: expected a whole number from 1 to 1000000, got 0/,
  "-x 2 --sync": /--n-buffers 2 is not supported with --sync: .* tagged, and awaited/,
  "-x 2 --transfer-api am": /--n-buffers 2 is not supported with --transfer-api am/,
  "-x 2 --transfer-api stream": /--n-buffers 2 is not supported with --transfer-api stream/,
  "-x 2 --transfer-api rma": /--n-buffers 2 is not supported with --transfer-api rma/,
  "-x 2 --against ucx_perftest": /ucx_perftest is not supported with --n-buffers 2: .* --against ucxx/,
  "--server-cpu-affinity=-2": /--server-cpu-affinity/,
  "-o rmm": /RMM is an allocator/,
  "-o marble": /expected numpy or host or pinned or cupy or device, got marble/,
  "-o host --object_type host": /in two spellings/,
  "--ndim 2": /--ndim: expected 1 or 3/,
  "--ndim 3 -n 10": /a multiple of 4 bytes, got 10/,
  "--transfer-api smoke": /expected tag or am or stream or rma/,
  "--transfer-api stream -n 0": /a stream has no empty messages/,
  "--transfer-api stream --ndim 3": /its bytes have no shape/,
  "--transfer-api toString": /--transfer-api: expected/,
  "--transfer-api rma --enable-am": /expected one of them/,
  "--transfer-api rma -n 0": /at least one byte/,
  "--sync --transfer-api am": /nothing else waits in place/,
  "--sync --transfer-api stream": /nothing else waits in place/,
  "--progress-mode thread": /runs in the thread that runs JavaScript/,
  "--progress-mode thread-polling": /runs in the thread that runs JavaScript/,
  "--progress-mode lazy": /expected adaptive or busy or polling or event or blocking/,
  "--errors all": /--errors: expected peer or none/,
  "--errors peer --no-error-handling": /contradict each other/,
  "--server-only --client-only": /expected one of them/,
  "--client-only": /needs the server's --port/,
  "-p 70000": /to 65535/,
  "-p 0": /from 1 to 65535/,
  "--backend ucxx-core": /--against ucxx runs UCXX beside it/,
  "--against me": /expected ucx_perftest or ucxx/,
  "--runs 3": /--runs needs --against/,
  "--against ucxx --runs 0": /--runs: expected a whole number from 1 to 1000, got 0/,
  "--against ucxx --server-only": /runs both sides here/,
  "--against ucxx --transfer-api am": /supports only tag/,
  "--against ucxx -o pinned": /pinned memory/,
  "--against ucx_perftest --transfer-api rma": /neither flushes nor gets/,
  "--asyncio-wait": /asyncio is Python's/,
  "--delay-progress": /one operation in flight/,
  "--max-outstanding 4": /one operation in flight/,
  "--report-gil-contention": /no global interpreter lock/,
  "--cuda-profile": /nsys/,
  "--rmm-init-pool-size 5": /RMM is an allocator/,
  "--rmm-managed-memory": /RMM is an allocator/,
  "--loud": /loud/,
  "positional": /positional/,
};

test("unsupported options are refused with the reason", () => {
  for (const [args, reason] of Object.entries(bad)) {
    const error = assertThrows(() => parseOptions(args.split(" ")), UsageError, undefined, args);
    assertMatch(error.message, reason, args);
    assertStringIncludes(error.usage, "--help");
  }
});

test("every kind of memory is taken with every transfer API", () => {
  for (const memory of ["host", "pinned", "device"] as const) {
    for (const api of ["tag", "am", "stream", "rma"] as const) {
      const given = options("-o", memory, "--transfer-api", api);
      assertEquals([given.memory, given.api], [memory, api]);
    }
  }
});

test("options are UCXX's: the same defaults, short names, and spellings", () => {
  const { bytes, iterations, warmup, serverCpu, clientCpu, objectType, reuse, port, errors, api } = options();
  assertEquals([bytes, iterations, warmup, serverCpu, clientCpu], [10_000_000, 10, 10, null, null]);
  assertEquals([objectType, reuse, port, errors, api], ["numpy", false, 0, "peer", "tag"]);
  assertEquals([options().buffers, options("-x", "3").buffers], [1, 3]);
  const short = "-n 5 -b 0 -c 1 -o cupy -d 2 -e 3 -s ::1 -p 7 -l causeway -x 1 -v".split(" ");
  const given = options(...short);
  assertEquals([given.bytes, given.serverCpu, given.clientCpu, given.memory], [5, 0, 1, "device"]);
  assertEquals([given.serverDevice, given.clientDevice, given.address, given.port], [2, 3, "::1", 7]);
  assertEquals(given.verbose, true);
  assertEquals(options("--object_type", "pinned").memory, "pinned");
  assertEquals(options("--progress-mode", "polling").progress, "busy");
  assertEquals(options("--progress-mode", "blocking").progress, "event");
  assertEquals(options("--enable-am").api, "am");
  assertEquals(options("--no-error-handling").errors, "none");
  assertEquals([options("--against", "ucxx").runs, options("--against", "ucxx", "--runs", "2").runs], [5, 2]);
  assertEquals(options("--server-cpu-affinity=-1").serverCpu, null);
  assertEquals(parseOptions(["--help", "--rmm-managed-memory"]), null);
});

test("a bad option ends the command with exit code 2, and --help with 0", patiently, async () => {
  for (const args of [["--delay-progress"], ["--n-iter", "x"], ["--nonsense"]]) {
    const { code, stdout, stderr } = await sendRecv(args);
    assertEquals([code, stdout], [2, ""]);
    assertMatch(stderr, /^causeway: .*\n\ncauseway send-recv --help lists the options\.\n$/);
  }
  const { code, stdout } = await sendRecv(["--help"]);
  assertEquals(code, 0);
  for (const option of ["--n-bytes", "--transfer-api", "--against", "--no-detailed-report"]) {
    assertStringIncludes(stdout, option);
  }
});
