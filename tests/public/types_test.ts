/**
 * What programs may write, to the compiler: right uses compile without a cast, and uses that can only fail do not. What
 * it knows of dtypes is in `view/types_test.ts`. Most of this is compiled only.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, type CudaDevice, type CudaStream, type PyObject, type Python } from "../../mod.ts";

/** Takes programs that are compiled, and not run. */
function compiled(...programs: readonly ((...args: never[]) => unknown)[]): void {
  assertEquals(programs.every((program) => typeof program === "function"), true);
}

test("what comes out of a Python object in a loop can be used as what its attributes are", () => {
  compiled(
    (loader: PyObject) => Array.from(loader, ([images, labels]) => images.sum() + labels.sum()),
    async (loader: PyObject) => {
      for await (const batch of loader) batch.images.sum();
    },
  );
});

test("work that ends when it returns may return anything but a promise", () => {
  using cuda = Cuda.simulate();
  const count: number = cuda.device(0).withContext(() => 3);
  assertEquals(count, 3);
  compiled(
    (python: Python, numpy: PyObject): [number, "a" | "b", number[], PyObject, unknown] => [
      python.locked(() => 3),
      python.locked(() => (python.version === "3" ? "a" : "b")),
      python.locked(() => [numpy.length, 2]),
      python.locked(() => numpy.$call()),
      python.locked((): unknown => JSON.parse("1")),
    ],
    (python: Python, lock: PyObject): number | undefined =>
      python.with(lock, (held) => python.locked(() => held.count)),
    // Who passes work on asks the same of it.
    <T>(python: Python, work: () => T extends PromiseLike<unknown> ? never : T): T => python.locked(work),
    (stream: CudaStream, work: () => void) => [stream.capture(work), stream.capture(() => stream.record())],
    // @ts-expect-error -- a promise
    (python: Python) => python.locked(async () => await Promise.resolve()),
    // @ts-expect-error -- it may be one
    (python: Python) => python.locked(() => (python.version === "3" ? Promise.resolve(3) : 3)),
    // @ts-expect-error -- a promise
    (python: Python, lock: PyObject) => python.with(lock, async () => await Promise.resolve()),
    // @ts-expect-error -- a promise
    (device: CudaDevice) => device.withContext(async () => await Promise.resolve()),
    // @ts-expect-error -- a promise
    (stream: CudaStream) => stream.capture(async () => await Promise.resolve()),
  );
});
