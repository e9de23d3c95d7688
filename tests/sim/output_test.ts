/** Kernel output: printf and assert, from PTX that NVRTC compiled, sent where the program chooses. */
import { assert, assertEquals, assertInstanceOf, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { PtxFault, SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, type CudaDevice, CudaError, DeviceMemoryResource, type MemoryBuffer, type Program } from "../../mod.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { patiently, runScript } from "../support/child.ts";
import { check, fc } from "../support/property.ts";
import { committedPtx } from "../support/ptx/nvrtc.ts";

const printing = committedPtx("printing", "sm_90");
const schedules = ["latest", "random", "round-robin"] as const;

/** A simulated CUDA, and what its kernels have printed. */
function listening(options: { readonly schedule?: (typeof schedules)[number]; readonly seed?: number } = {}) {
  const said = { stdout: "", stderr: "" };
  const cuda = Cuda.simulate({ schedule: "latest", ...options, print: (text, to) => void (said[to] += text) });
  return { cuda, device: cuda.device(0), said };
}

/** Words in device memory, ready for every stream. */
function words(device: CudaDevice, values: readonly number[]): MemoryBuffer {
  const buffer = new DeviceMemoryResource(device).allocate(4 * values.length, { stream: device.defaultStream });
  buffer.copyFrom(new Uint8Array(new Int32Array(values).buffer), { stream: device.defaultStream });
  device.synchronize();
  return buffer;
}

function read(device: CudaDevice, buffer: MemoryBuffer): number[] {
  const bytes = new Uint8Array(buffer.size);
  buffer.copyTo(bytes, { stream: device.defaultStream });
  device.synchronize();
  return [...new Int32Array(bytes.buffer)];
}

test("arguments are promoted as in C, strings are read on the device, and printf returns their number", () => {
  const { cuda, device, said } = listening();
  using _ = cuda;
  using stream = device.createStream();
  using program = device.loadPtx(printing);
  using x = words(device, [-7, 65, 70000, 0]);
  program.kernel("promoted").launch(stream, 1, 1, [x, ["float32", 0.5], ["float64", 2.345], ["int64", -(2n ** 40n)]]);
  stream.synchronize();
  assertEquals(said.stdout, `-7 text 0.500000 -1099511627776 A 0x${x.ptr.toString(16)} %  2.35|4464\n`);
  assertEquals(read(device, x)[0], 8);
  program.kernel("wide").launch(stream, 1, 1, [x]);
  stream.synchronize();
  assertEquals(read(device, x), [0, -1, 2, 0]); // of `%*s`: CUDA does not take a precision from an argument
  assertEquals(said.stderr, "");
});

test("nothing is printed before the host synchronizes, then each stream's output in the order of its launches", () => {
  check(
    fc.property(
      fc.array(fc.nat(2), { minLength: 1, maxLength: 12 }),
      fc.constantFrom(...schedules),
      fc.nat(),
      (launches, schedule, seed) => {
        const { cuda, device, said } = listening({ schedule, seed });
        using _ = cuda;
        using program = device.loadPtx(printing);
        const streams = [0, 1, 2].map(() => device.createStream());
        const each = program.kernel("each");
        launches.forEach((at, i) => {
          const stream = streams[at];
          if (stream !== undefined) each.launch(stream, 2, 2, [["int32", i]]);
        });
        // A launch flushes earlier output; a single launch has none.
        if (launches.length === 1) assertEquals(said.stdout, "");
        device.synchronize();
        const lines = said.stdout.trim().split(" ");
        assertEquals(lines.length, 4 * launches.length);
        const order = [...new Set(lines.map((line) => Number(line.split(":")[0])))]; // a kernel is not interrupted
        for (const at of [0, 1, 2]) {
          const own = order.filter((i) => launches[i] === at);
          assertEquals(own, own.toSorted((a, b) => a - b));
        }
        for (const i of launches.keys()) {
          const threads = lines.filter((line) => line.startsWith(`${i}:`)).sort();
          assertEquals(threads, [`${i}:0.0`, `${i}:0.1`, `${i}:1.0`, `${i}:1.1`]);
        }
        for (const stream of streams) stream.close();
      },
    ),
    60,
  );
});

test("a query and a free print nothing, whatever has run; waits, launches, loads and ends do", () => {
  const hello = (then: (device: CudaDevice, said: () => string, program: Program) => void) => {
    const { cuda, device, said } = listening({ schedule: "round-robin" });
    const stream = device.createStream();
    const event = device.createEvent();
    using program = device.loadPtx(printing);
    program.kernel("hello").launch(stream, 1, 1, []);
    stream.record(event);
    while (!event.isDone);
    assertEquals(said.stdout, "");
    then(device, () => said.stdout, program);
    event.close();
    stream.close();
    cuda.close();
  };
  hello((device, said) => (device.synchronize(), assertEquals(said(), "hello\n")));
  hello((device, said) => {
    using _loaded = device.loadPtx(printing);
    assertEquals(said(), "hello\n");
  });
  hello((_, said, program) => (program.close(), assertEquals(said(), "hello\n")));
  hello((device, said, program) => {
    using stream = device.createStream();
    program.kernel("each").launch(stream, 1, 1, [["int32", 1]]);
    assertEquals(said(), "hello\n");
  });
  hello((device, said) => {
    using x = words(device, [1]);
    read(device, x);
    assertEquals(said(), "hello\n");
  });
  hello((device, said) => {
    using stream = device.createStream();
    let heard: string | null = null;
    const called = ffiPort().callback({ args: ["ptr"], returns: "void" }, () => heard = said());
    device.driver.stream.cuLaunchHostFunc(stream.handle, called.address, 0n);
    while (!stream.isDone);
    assertEquals(heard, "hello\n");
    called.close();
  });
});

test("output that is pending when a context ends is printed then", () => {
  const { cuda, device, said } = listening();
  device.loadPtx(printing).kernel("hello").launch(device.defaultStream, 1, 1, []);
  assertEquals(said.stdout, "");
  SimulatedDriver.of(cuda.driver)?.close();
  assertEquals(said.stdout, "hello\n");
});

test("an assertion that fails is printed on stderr for each thread, ends the launch, and loses the context", () => {
  for (let seed = 0; seed < 12; seed++) {
    const { cuda, device, said } = listening({ schedule: "random", seed });
    const stream = device.createStream();
    const program = device.loadPtx(printing);
    const x = words(device, [1, 0, 5, -3]);
    program.kernel("positive").launch(stream, 2, 2, [x]);
    const ask = seed % 2 === 0 ? () => stream.synchronize() : () => {
      while (!stream.isDone);
    };
    const error = assertThrows(ask, CudaError, "device-side assert triggered");
    assertEquals([error.code, error.codeName, error.isSticky], [710, "CUDA_ERROR_ASSERT", true]);
    assertInstanceOf(error.cause, PtxFault);
    assertEquals(error.cause.kind, "assertion");
    assertStringIncludes(error.cause.message, "x[i] > 0");
    const line = (block: number) =>
      `kernel.cu:21: void positive(int *): block: [${block},0,0], thread: [1,0,0] ` +
      'Assertion `x[i] > 0 && "a number"` failed.';
    assertEquals(said.stderr.trim().split("\n").sort(), [line(0), line(1)]);
    assertEquals(said.stdout, "");
    assertThrows(() => device.synchronize(), CudaError, "CUDA_ERROR_ASSERT");
    assertThrows(() => device.createStream(), CudaError, "CUDA_ERROR_ASSERT");
    for (const one of [x, program, stream, cuda]) one.close();
  }
});

test("threads that wait for one whose assertion has failed do not wait forever", () => {
  for (let seed = 0; seed < 4; seed++) {
    const { cuda, device, said } = listening({ seed });
    const program = device.loadPtx(printing);
    const x = words(device, [0, 0]);
    program.kernel("waiting").launch(device.defaultStream, 1, 64, [x]);
    assertThrows(() => device.synchronize(), CudaError, "CUDA_ERROR_ASSERT");
    assertStringIncludes(said.stderr, "thread: [0,0,0] Assertion `flag[1] != 0` failed.");
    for (const one of [x, program, cuda]) one.close();
  }
});

test("of more than a megabyte of unread output the oldest is lost", () => {
  const { cuda, device, said } = listening();
  using _ = cuda;
  using program = device.loadPtx(printing);
  const name = 2 ** 30;
  program.kernel("each").launch(device.defaultStream, 120, 512, [["int32", name]]);
  program.kernel("hello").launch(device.defaultStream, 1, 1, []);
  device.synchronize();
  assert(said.stdout.length <= 2 ** 20 && said.stdout.length > 2 ** 20 - 64, `${said.stdout.length}`);
  assert(said.stdout.endsWith(" hello\n"));
});

for (
  const [fails, stdout, stderr] of [["no", "before\nhello\nafter\n", ""], [
    "yes",
    "before\n",
    "block: [0,0,0]",
  ]] as const
) {
  test(
    `without a listener kernels print to the process's own stdout and stderr (${fails} failure)`,
    patiently,
    async () => {
      const child = await runScript(new URL("./output_child.ts", import.meta.url), { args: [fails] });
      assertEquals([child.code, child.stdout], [0, stdout], child.stderr);
      assertStringIncludes(child.stderr, stderr);
    },
  );
}
