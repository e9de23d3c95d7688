/**
 * Input and output of the just-in-time compiler: its log, and our errors with their line numbers.
 */
import { assert, assertEquals, assertInstanceOf, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CU_JIT } from "../../bindings/cuda_types.ts";
import { PtxError, SimulatedDriver, simulateDriver } from "../../src/public/sim.ts";
import { Cuda, CudaError } from "../../mod.ts";
import { addPtx } from "../gpu/graph_behaviours.ts";
import { check, fc } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

/** Loads a text with options, and returns the outcome. */
function load(raw: Raw, text: string, options: readonly (readonly [option: number, value: bigint])[]) {
  const { arena, driver } = raw;
  const module = arena.out("ptr");
  const names = arena.bytes(4 * options.length + 4, 4);
  const values = arena.bytes(8 * options.length + 8, 8);
  const [name, value] = [names, values].map(({ bytes }) => new DataView(bytes.buffer, bytes.byteOffset));
  options.forEach(([option], i) => name?.setInt32(4 * i, option, true));
  options.forEach(([, given], i) => value?.setBigUint64(8 * i, given, true));
  const image = arena.cString(text);
  const { cuModuleLoadDataEx, cuModuleUnload } = driver.module;
  const code = cuModuleLoadDataEx(module.$address, image, options.length, names.address, values.address);
  if (code === 0) cuModuleUnload(module.value);
  return { code, value: (i: number) => value?.getBigUint64(8 * i, true) };
}

const broken = `${addPtx}\n.visible .entry g() {\n  frob.u32 %r1, %r2;\n}\n`;
const line = broken.split("\n").findIndex((one) => one.includes("frob")) + 1;

test("the error log names the line and the mistake there, cut to the buffer as an H200's driver cuts it", () => {
  const simulated = simulateDriver();
  using raw = new Raw(simulated.driver);
  raw.use(0);
  check(
    fc.property(fc.constantFrom(addPtx, broken, "hello", ""), fc.nat(400), fc.nat(400), (text, room, other) => {
      const error = raw.pageable(room + 1);
      const info = raw.pageable(other + 1);
      for (const { bytes } of [error, info]) bytes.fill(0xaa);
      const { code, value } = load(raw, text, [
        [CU_JIT.ERROR_LOG_BUFFER, error.address],
        [CU_JIT.ERROR_LOG_BUFFER_SIZE_BYTES, BigInt(room)],
        [CU_JIT.OPTIMIZATION_LEVEL, 2n],
        [CU_JIT.INFO_LOG_BUFFER, info.address],
        [CU_JIT.INFO_LOG_BUFFER_SIZE_BYTES, BigInt(other)],
      ]);
      assertEquals(code, text === addPtx ? 0 : text === broken ? 218 : 200);
      const whole = text === addPtx
        ? ""
        : text === broken
        ? `ptxas application ptx input, line ${line}; error   : frob.u32: this instruction is not understood\n` +
          "ptxas fatal   : Ptx assembly aborted"
        : "error   : Binary format for key='0', ident='' is not recognized";
      const kept = whole.slice(0, Math.max(0, room - 1));
      const expected = new Uint8Array(room).fill(0);
      new TextEncoder().encodeInto(kept, expected);
      assertEquals(error.bytes.subarray(0, room), expected);
      assertEquals([error.bytes[room], info.bytes[other]], [0xaa, 0xaa], "nothing is written behind a buffer");
      if (room > 0) assertEquals(value(1), BigInt(Math.min(room, whole.length)));
      if (other > 0) assertEquals([value(4), info.bytes[0]], [0n, 0]);
    }),
    200,
  );
});

test("options that the driver refuses are refused, and those that would change what is loaded too", () => {
  const simulated = simulateDriver();
  using raw = new Raw(simulated.driver);
  raw.use(0);
  // Answers of an H200 with driver 580.
  const answers: readonly (readonly [number, bigint, number])[] = [
    [99, 1n, 1],
    [CU_JIT.OPTIMIZATION_LEVEL, 9n, 0],
    [CU_JIT.WALL_TIME, 0n, 0],
    [CU_JIT.MAX_REGISTERS, 1n, 0],
    [CU_JIT.TARGET, 90n, 0],
    [CU_JIT.LOG_VERBOSE, 1n, 0],
    [CU_JIT.CACHE_MODE, 7n, 1],
    [CU_JIT.CACHE_MODE, 2n, 0],
  ];
  for (const [option, value, code] of answers) {
    assertEquals(load(raw, addPtx, [[option, value]]).code, code, `${option}`);
  }
  assertEquals(load(raw, addPtx, [[CU_JIT.GLOBAL_SYMBOL_COUNT, 1n]]).code, 801);
  assertEquals(simulated.unsupported, ["cuModuleLoadDataEx: linking while a module is loaded"]);
  assertEquals(load(raw, addPtx, []).code, 0);
});

test("a program that cannot be loaded says why, with the line, and keeps the driver's code", () => {
  using cuda = Cuda.simulate();
  const error = assertThrows(() => cuda.device(0).loadPtx(broken), CudaError);
  assertEquals([error.call, error.codeName], ["cuModuleLoadDataEx", "CUDA_ERROR_INVALID_PTX"]);
  assertStringIncludes(error.message, "frob.u32: this instruction is not understood");
  assertStringIncludes(error.message, `  ${line} |   frob.u32 %r1, %r2;`);
  assertInstanceOf(error.cause, PtxError);
  assertEquals(error.cause.line, line);
  assert(SimulatedDriver.of(cuda.driver)?.lastPtxError === error.cause);
  const image = assertThrows(() => cuda.device(0).loadPtx("no program at all"), CudaError);
  assertEquals(image.codeName, "CUDA_ERROR_INVALID_IMAGE");
  assertInstanceOf(image.cause, PtxError);
});
