/** A Cuda over a driver that the user provides: a simulated one that a test owns, a checked one, or a foreign one. */
import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { simulateDriver } from "../../src/public/sim.ts";
import { checkDriver } from "../../src/public/checker.ts";
import { CausalityError, Cuda, CudaError } from "../../mod.ts";
import { nullDriver } from "../support/null_driver.ts";

test("a Cuda over a simulated driver allocates there, and leaves the driver to the code that made it", () => {
  using simulated = simulateDriver({ devices: 2 });
  {
    using cuda = Cuda.over(simulated.driver);
    assertEquals([cuda.path, cuda.devices.length], ["given", 2]);
    assertStrictEquals(cuda.driver, simulated.driver);
    using buffer = cuda.device(1).memory.allocate(100);
    assertEquals([buffer.device?.ordinal, simulated.live.allocations], [1, 1]);
  }
  assertEquals(simulated.live.allocations, 0);
});

test("any object with the functions of libcuda is a driver", () => {
  using cuda = Cuda.over(nullDriver().driver);
  using buffer = cuda.device(0).memory.allocate(100);
  assertEquals(buffer.size, 100);
});

test("only the option decides whether it is checked, or the driver is a checked one already", () => {
  const leak = (cuda: Cuda) => {
    void cuda.device(0).memory.allocate(100, { stream: cuda.device(0).createStream() });
    cuda.close();
  };
  leak(Cuda.over(simulateDriver().driver));
  assertThrows(() => leak(Cuda.over(simulateDriver().driver, { check: true })), CausalityError, "still there");
  assertThrows(() => leak(Cuda.over(checkDriver(simulateDriver().driver).driver)), CausalityError, "still there");
});

test("a driver without devices is refused, and so is an unknown option", () => {
  const { driver } = simulateDriver({ devices: 0 });
  assertThrows(() => Cuda.over(driver), CudaError, "CUDA_ERROR_NO_DEVICE");
  const wrong: object = { chek: true };
  assertThrows(() => Cuda.over(simulateDriver().driver, wrong), TypeError, "chek");
});
