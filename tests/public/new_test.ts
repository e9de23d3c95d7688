/**
 * `new` on a class whose objects other calls create: the compiler rejects it, and in a program without types the error
 * says what to call. All public classes are tried, so that none can be forgotten.
 */
import { assert, assertEquals, assertInstanceOf, assertMatch, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, type CudaDevice, CudaStream, DType, MemoryBuffer, StridedMemoryView, Ucx } from "../../mod.ts";
import { publicValues } from "./values.ts";

type AnyClass = new (...given: unknown[]) => unknown;

/** The public classes, except errors, which any program may construct. */
async function classes(): Promise<Map<AnyClass, string>> {
  const found = new Map<AnyClass, string>();
  for (const { name, value } of await publicValues()) {
    if (typeof value !== "function" || !/^class\b/.test(Function.prototype.toString.call(value))) continue;
    if (!(value.prototype instanceof Error)) found.set(value as AnyClass, name);
  }
  return found;
}

/** Classes that `new` without arguments is meant for. `MemoryResource` is meant to be extended. */
const makeable = ["HostMemoryResource", "Keywords", "MemoryResource", "NpzArrays", "VortexSession"];

/** Engine messages that expose a constructor's internals. */
const internal = /destructur|not an object|not a function|cannot read prop/i;

test("new of any public class makes one, or is a TypeError that says what to call or to give", async () => {
  const all = await classes();
  assert(all.size > 40);
  const made: string[] = [];
  for (const [of, name] of all) {
    try {
      new of();
      made.push(name);
    } catch (error) {
      assertInstanceOf(error, TypeError, name);
      assert(!internal.test(error.message), `new ${name}(): ${error.message}`);
    }
  }
  assertEquals(made.sort(), makeable);
});

test("the message names the call that makes one, also where something was given", () => {
  using cuda = Cuda.simulate();
  const device: CudaDevice = cuda.device(0);
  const wrong: [of: unknown, given: unknown[], message: RegExp][] = [
    [Cuda, [], /^Cannot call new Cuda\(\): use Cuda\.open\(\), Cuda\.simulate\(\) or Cuda\.over\(driver\)$/],
    [Cuda, [{ check: true }], /Cuda\.open\(\)/],
    [CudaStream, [device], /device\.createStream\(\)/],
    [MemoryBuffer, [1024], /resource\.allocate\(bytes\)/],
    [StridedMemoryView, [[2, 3]], /StridedMemoryView\.zeros\(shape\)/],
    [DType, ["float32"], /DType\.from\("float32"\)/],
    [Ucx, [{}], /Ucx\.open\(\)/],
  ];
  for (const [of, given, message] of wrong) {
    const error = assertThrows(() => new (of as AnyClass)(...given), TypeError);
    assertMatch(error.message, message);
  }
});
