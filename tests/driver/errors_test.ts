/** How a driver's error codes are handled, and which observers see its calls. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import {
  checkCuda,
  checkRelease,
  type CudaDriver,
  CudaError,
  decodeVersion,
  isSticky,
  isStickyCode,
} from "../../src/driver/driver.ts";
import {
  type DriverObserver,
  innermost,
  isSimulated,
  noteHostAccess,
  observeHost,
  observerOf,
} from "../../src/driver/observer.ts";
import { cause, observer } from "../../src/driver/traits.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { collectGarbage } from "../support/collect.ts";
import { nullDriver } from "../support/null_driver.ts";
import { check, fc } from "../support/property.ts";
import { Cuda } from "../../mod.ts";

const anyKnown = fc.constantFrom(...Object.values(CUresult));
const anyCode = fc.oneof(anyKnown, fc.integer({ min: 0, max: 2 ** 31 - 1 }));

const arena = new NativeArena();
const words = "the words of the driver";
const text = arena.cString(words);

/** A driver that describes these error codes, and no others. */
function describing(codes: readonly number[]): CudaDriver {
  const { driver } = nullDriver();
  const cuGetErrorString = (code: number, out: bigint) => {
    if (!codes.includes(code)) return CUresult.CUDA_ERROR_INVALID_VALUE;
    new DataView(ffiPort().memory(out, 8)).setBigUint64(0, text, true);
    return CUresult.CUDA_SUCCESS;
  };
  return { ...driver, opening: { ...driver.opening, cuGetErrorString } };
}

function thrownBy(work: () => void): CudaError | null {
  try {
    work();
    return null;
  } catch (error) {
    assert(error instanceof CudaError, `${error}`);
    return error;
  }
}

test("a failure code is an error with the call, the code, its name in the header, and the driver's description", () => {
  const names = Object.fromEntries(Object.entries(CUresult).map(([name, code]) => [code, name]));
  check(
    fc.property(anyCode, fc.boolean(), (code, isKnown) => {
      const driver = describing(isKnown ? [code] : []);
      const error = thrownBy(() => checkCuda(driver, "cuCall", code));
      if (code === CUresult.CUDA_SUCCESS) return assertEquals(error, null);
      assert(error !== null);
      const name = names[code] ?? `CUresult(${code})`;
      assertEquals([error.call, error.code, error.codeName], ["cuCall", code, name]);
      assert(error.message.startsWith(`cuCall failed with ${name} (${code})`), error.message);
      assertEquals(error.message.includes(words), isKnown);
      assertEquals([error.isSticky, isSticky(error)], [isStickyCode(code), isStickyCode(code)]);
    }),
  );
  assertEquals([isSticky(new Error("sticky")), isSticky(null)], [false, false]);
});

test("every error of a lost context names the first that reported it, of the same code and the same driver", () => {
  const codes = fc.array(fc.record({ code: anyKnown, driver: fc.nat(1), call: fc.nat(99) }), { maxLength: 20 });
  check(
    fc.property(codes, fc.boolean(), (calls, knowsWhy) => {
      const why = new RangeError("the kernel's fault");
      const drivers = [0, 1].map(() => ({ ...nullDriver().driver, ...(knowsWhy ? { [cause]: () => why } : {}) }));
      const firsts = new Map<string, CudaError>();
      for (const { code, driver, call } of calls) {
        const error = thrownBy(() => checkCuda(drivers[driver] as CudaDriver, `call${call}`, code));
        if (error === null || !error.isSticky) {
          assertEquals(error?.cause, undefined);
          continue;
        }
        const first = firsts.get(`${driver} ${code}`);
        assertEquals(error.cause, first ?? (knowsWhy ? why : undefined));
        if (first === undefined) firsts.set(`${driver} ${code}`, error);
        else assertStringIncludes(error.message, `first reported by ${first.call}`);
      }
    }),
  );
});

test("calls that release objects report every error except those of a context that is lost or gone", () => {
  const gone: readonly number[] = [CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, CUresult.CUDA_ERROR_DEINITIALIZED];
  const { driver } = nullDriver();
  check(
    fc.property(anyCode, (code) => {
      const isQuiet = code === CUresult.CUDA_SUCCESS || isStickyCode(code) || gone.includes(code);
      assertEquals(thrownBy(() => checkRelease(driver, "cuFree", code))?.code, isQuiet ? undefined : code);
    }),
  );
});

test("a version is read as CUDA writes it: 13.1 as 13010", () => {
  check(
    fc.property(fc.nat(99), fc.nat(99), fc.nat(9), (major, minor, patch) => {
      assertEquals(decodeVersion(1000 * major + 10 * minor + patch), [major, minor]);
    }),
  );
});

type Access = readonly [address: bigint, bytes: number, writes: boolean, call: string];

function observing(inner: CudaDriver, seen: Access[]): DriverObserver {
  return {
    inner,
    mark: () => () => {},
    foreignStream: () => {},
    orderedElsewhere: () => {},
    received: () => {},
    hostAccess: (...access) => void seen.push(access),
    newHostMemory: () => {},
    closedByUser: () => {},
    nameStream: () => {},
    nameMemory: () => {},
    nameDevice: () => {},
  };
}

test("an observed driver names its observers, and the driver that does the work", () => {
  const { driver } = nullDriver();
  const one = observing(driver, []);
  const observed: CudaDriver = { ...driver, [observer]: one };
  assertEquals([observerOf(driver), observerOf(observed)], [null, one]);
  assert(innermost(observed) === driver && innermost(driver) === driver);
});

test("a simulated driver is known as one, checked or not", () => {
  const { driver } = nullDriver();
  const check = [false, true];
  assertEquals([driver, { ...driver, [observer]: observing(driver, []) }].map(isSimulated), [false, false]);
  assertEquals(check.map((one) => isSimulated(Cuda.simulate({ check: one }).driver)), [true, true]);
});

test("every observer is notified of each access of the host to some bytes, in order, until it stops", () => {
  const accesses = fc.array(fc.tuple(fc.bigInt(0n, 2n ** 48n), fc.nat(4), fc.boolean(), fc.string()));
  check(
    fc.property(accesses, fc.array(fc.nat(12), { minLength: 1, maxLength: 4 }), (all, ends) => {
      const { driver } = nullDriver();
      const seen = ends.map((): Access[] => []);
      const observers = seen.map((one) => observing(driver, one));
      const stops = observers.map(observeHost);
      for (const [i, access] of all.entries()) {
        for (const [which, end] of ends.entries()) if (end === i) stops[which]?.();
        noteHostAccess(...access);
      }
      assertEquals(seen, ends.map((end) => all.slice(0, end).filter(([, bytes]) => bytes > 0)));
      assertEquals(observers.length, ends.length); // they live until here
    }),
    100,
  );
});

test("the list keeps no observer alive", async () => {
  const { driver } = nullDriver();
  const references = Array.from({ length: 50 }, () => {
    const one = observing(driver, []);
    observeHost(one);
    return new WeakRef(one);
  });
  await new Promise((resolve) => setTimeout(resolve)); // a new WeakRef keeps its target alive until then
  await collectGarbage();
  const left = references.filter((one) => one.deref() !== undefined).length;
  assert(left < 25, `${left} of 50 are left`);
});
