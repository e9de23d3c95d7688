/** Programs and kernels: what is loaded when, what a launch refuses, and that arguments arrive intact. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import type { PtxKernel } from "../../../src/ptx/mod.ts";
import { Cuda, CudaError, type KernelArg } from "../../../mod.ts";
import type { Dim3 } from "../../../src/public/cuda.ts";
import { check, fc } from "../../support/property.ts";

/** A device whose only kernel, with `count` parameters of 8 bytes, records its arguments. */
function setUp(count: number, devices = 1, driverVersion = 13000) {
  const seen: bigint[] = [];
  const entry: PtxKernel = {
    name: "stub",
    params: Array.from({ length: count }, (_, i) => ({ offset: 8 * i, size: 8 })),
    staticSharedBytes: 0,
    run({ params }) {
      const view = new DataView(params.buffer, params.byteOffset);
      for (let i = 0; i < count; i++) seen.push(view.getBigUint64(8 * i, true));
    },
  };
  const loadPtx = () => ({
    entries: ["stub"],
    entry: (name: string) => name === "stub" ? entry : null,
    globals: new Map(),
  });
  const cuda = Cuda.simulate({ devices, loadPtx, driverVersion });
  return { cuda, seen, simulated: SimulatedDriver.of(cuda.driver) };
}

test("arguments arrive intact, however many there are", () => {
  const words = fc.array(fc.bigInt({ min: -(1n << 63n), max: (1n << 64n) - 1n }), {
    minLength: 1,
    maxLength: 60,
    size: "max",
  });
  check(
    fc.property(words, (args) => {
      const { cuda, seen } = setUp(args.length);
      using stream = cuda.device(0).createStream();
      using program = cuda.device(0).loadPtx("anything");
      if (args.length > 1) { // a launch with fewer arguments is refused
        const few = () => program.kernel("stub").launch(stream, 1, 1, args.slice(0, 1));
        assertThrows(few, TypeError, `expected ${args.length} arguments, one for each parameter, got 1`);
      }
      program.kernel("stub").launch(stream, 1, 1, args);
      stream.synchronize();
      assertEquals(seen, args.map((one) => BigInt.asUintN(64, one)));
      cuda.close();
    }),
    100,
  );
});

test("where the driver reports no parameters, there is room for any number of arguments", () => {
  const { cuda, seen } = setUp(20, 1, 12030);
  using stream = cuda.device(0).createStream();
  using program = cuda.device(0).loadPtx("anything");
  const kernel = program.kernel("stub");
  assertEquals(kernel.parameters, null);
  const args = Array.from({ length: 80 }, (_, i) => BigInt(i));
  for (const count of [20, 40, 80]) kernel.launch(stream, 1, 1, args.slice(0, count));
  stream.synchronize();
  assertEquals(seen, [1, 2, 3].flatMap(() => args.slice(0, 20)));
  cuda.close();
});

test("a launch with invalid values is refused, naming the argument, before the driver is called", () => {
  const { cuda, simulated } = setUp(1);
  using stream = cuda.device(0).createStream();
  using program = cuda.device(0).loadPtx("anything");
  const kernel = program.kernel("stub");
  for (const dim of [0, -1, 1.5, NaN, 2 ** 31, [1, 0], [1, 1, -1]] as const) {
    const given = typeof dim === "number" ? [dim] : dim;
    const [x, y, z] = [given[0] ?? 1, given[1], given[2]];
    const extents = y === undefined ? [x] as const : z === undefined ? [x, y] as const : [x, y, z] as const;
    assertThrows(() => kernel.launch(stream, extents, 1, [1n]), RangeError, "Cannot launch a grid of");
    assertThrows(() => kernel.launch(stream, 1, extents, [1n]), RangeError, "Cannot launch a block of");
  }
  // From JavaScript: a fourth extent was dropped, and null was taken for an omitted one.
  for (const dim of [[1, 1, 1, 1], [1, 1, 1, 2], [1, null, 1], [1, 1, null], [null], [], null] as unknown[] as Dim3[]) {
    const expected = "expected one to three positive integers";
    assertThrows(() => kernel.launch(stream, dim, 1, [1n]), RangeError, expected, `${dim}`);
    assertThrows(() => kernel.launch(stream, 1, dim, [1n]), RangeError, expected, `${dim}`);
  }
  const wrong: readonly (readonly [arg: unknown, words: string])[] = [
    [1n << 64n, "does not fit in 64 bits"],
    [-(1n << 63n) - 1n, "does not fit in 64 bits"],
    [["complex128x2", 1], "complex128x2 is too large to be passed by value"],
    [["int32", 2 ** 31], "int32"],
    [["int32", 1.5], "int32"],
    [3, "expected memory, a bigint, or a number with its type"],
    [null, "expected memory, a bigint, or a number with its type"],
  ];
  for (const [arg, words] of wrong) {
    // What a caller without types may pass.
    const args = [arg as KernelArg];
    const error = assertThrows(() => kernel.launch(stream, 1, 1, args), Error, words);
    assertEquals(error.message.startsWith("stub, argument 0: "), true, error.message);
  }
  assertEquals(simulated?.calls("cuLaunchKernel"), 0);
});

test("a program is unloaded once, retains its context until then, and returns no kernels afterwards", () => {
  const { cuda, simulated } = setUp(1);
  const program = cuda.device(0).loadPtx("anything");
  program.kernel("stub");
  cuda.close();
  assertEquals(simulated?.live.contexts, 1);
  program.close();
  program.close();
  assertEquals([simulated?.calls("cuModuleUnload"), simulated?.live.contexts], [1, 0]);
  assertThrows(() => program.kernel("stub"), TypeError, "Cannot use a closed Program");
});

test("a program stays loaded as long as a graph runs it", () => {
  const { cuda, simulated } = setUp(1);
  using stream = cuda.device(0).createStream();
  const program = cuda.device(0).loadPtx("anything");
  const graph = stream.capture(() => program.kernel("stub").launch(stream, 1, 1, [1n]));
  const exec = graph.instantiate();
  program.close();
  graph.close();
  assertEquals(simulated?.calls("cuModuleUnload"), 0);
  exec.close();
  assertEquals(simulated?.calls("cuModuleUnload"), 1);
});

test("a kernel is launched on streams of its own device only", () => {
  const { cuda, simulated } = setUp(1, 2);
  using program = cuda.device(0).loadPtx("anything");
  for (const stream of [cuda.device(1).createStream(), cuda.device(1).defaultStream]) {
    const launch = () => program.kernel("stub").launch(stream, 1, 1, [1n]);
    assertThrows(launch, TypeError, "Cannot launch stub on a stream of another device: expected device 0");
  }
  assertEquals(simulated?.calls("cuLaunchKernel"), 0);
});

test("a kernel gets the shared memory that its device allows a block, and more is refused with the number", () => {
  check(
    fc.property(fc.array(fc.integer({ min: 0, max: 260_000 }), { minLength: 1, maxLength: 6 }), (sizes) => {
      const { cuda, seen } = setUp(1);
      const device = cuda.device(0);
      using stream = device.createStream();
      using program = device.loadPtx("anything");
      const kernel = program.kernel("stub");
      const most = device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN");
      for (const sharedBytes of [...sizes, most, most + 1]) {
        seen.length = 0;
        const launch = () => kernel.launch(stream, 1, 1, [7n], { sharedBytes });
        if (sharedBytes > most) {
          assertThrows(
            launch,
            RangeError,
            `${sharedBytes} bytes of shared memory: device 0 allows a block at most ${most}`,
          );
          assertThrows(() => kernel.occupancy({ sharedBytes }), RangeError, "allows a block");
        } else {
          launch();
          assertEquals(kernel.occupancy({ sharedBytes }).blockSize > 0, true);
        }
        stream.synchronize();
        assertEquals(seen.length, sharedBytes > most ? 0 : 1);
      }
      cuda.close();
    }),
  );
});

test("text that is no PTX at all is distinguished from invalid PTX", () => {
  using cuda = Cuda.simulate();
  const hint = "The text does not begin as PTX does, with .version: device.compile(source) takes CUDA C++";
  for (const text of ["hello", "kernel.ptx", "", "__global__ void f() {}", "# .version"]) {
    assertThrows(() => cuda.device(0).loadPtx(text), CudaError, hint, text);
  }
  for (const text of [".frob", " // of a compiler\n/* 1 */ .version 7.0\n.frob"]) {
    const { message } = assertThrows(() => cuda.device(0).loadPtx(text), CudaError);
    assertEquals(message.includes(hint), false, message);
  }
});
