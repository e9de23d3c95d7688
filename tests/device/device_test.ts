/** Primary contexts: shared with others, current for the length of a call, released exactly as often as retained. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { Cuda, CudaError } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { writeString } from "../../src/sim/out_parameters.ts";
import { intercept } from "../support/intercept.ts";
import { check, fc } from "../support/property.ts";
import { simulatorOf } from "../support/simulator_of.ts";

function simulate(devices: number) {
  const cuda = Cuda.simulate({ devices, schedule: "latest" });
  const simulated = simulatorOf(cuda);
  const arena = new NativeArena();
  const out = arena.out("ptr");
  const current = () => {
    assertEquals(cuda.driver.context.cuCtxGetCurrent(out.$address), 0);
    return out.value;
  };
  const retain = (device: number) => {
    assertEquals(cuda.driver.context.cuDevicePrimaryCtxRetain(out.$address, device), 0);
    return out.value;
  };
  return { cuda, simulated, current, retain };
}

test("a context is retained at the first use, once, and released with the last user: other contexts stay", () => {
  const uses = fc.array(fc.tuple(fc.nat(2), fc.constantFrom("context", "synchronize", "stream", "retained", "retain")));
  check(
    fc.property(uses, fc.uniqueArray(fc.nat(2)), fc.boolean(), (program, foreign, isClosedTwice) => {
      const { cuda, simulated, retain } = simulate(3);
      const contexts = foreign.map(retain);
      const taken = simulated.calls("cuDevicePrimaryCtxRetain");
      const release: (() => void)[] = [];
      const used = new Set<number>();
      for (const [ordinal, how] of program) {
        const device = cuda.device(ordinal);
        if (how === "retained") {
          const retained = device.retained();
          release.push(() => retained[Symbol.dispose]());
        } else if (how === "retain") {
          device.retain();
          release.push(() => device.release());
        } else {
          // Waiting for a device does not count as use where it has no context.
          if (how !== "synchronize" || foreign.includes(ordinal)) used.add(ordinal);
          if (how === "context") assert(device.context !== 0n);
          else if (how === "synchronize") device.synchronize();
          else {
            const stream = device.createStream();
            release.push(() => stream.close());
          }
        }
        assertEquals(simulated.calls("cuDevicePrimaryCtxRetain") - taken, used.size);
      }
      cuda.close();
      if (isClosedTwice) cuda.close();
      const held = new Set(program.filter(([, how]) => !["context", "synchronize"].includes(how)).map(([at]) => at));
      assertEquals(simulated.calls("cuDevicePrimaryCtxRelease_v2"), [...used].filter((one) => !held.has(one)).length);
      for (const one of release) one();
      assertEquals(simulated.calls("cuDevicePrimaryCtxRelease_v2"), used.size);
      assertEquals([simulated.live.contexts, simulated.live.streams], [contexts.length, 0]);
    }),
    400,
  );
});

test("a context is active while anything uses it, and querying that does not retain it", () => {
  const { cuda, simulated, retain } = simulate(3);
  const [ours, theirs, unused] = [cuda.device(0), cuda.device(1), cuda.device(2)];
  retain(1);
  assertEquals(ours.isActive, false);
  assert(ours.context !== 0n);
  assertEquals([ours.isActive, theirs.isActive, unused.isActive, simulated.live.contexts], [true, true, false, 2]);
  for (const one of [ours, theirs, unused]) one.synchronize();
  assertEquals([unused.isActive, simulated.live.contexts], [false, 2]); // an unused device has nothing to wait for
  const retained = ours.retained();
  cuda.close();
  assertEquals([ours.isActive, theirs.isActive], [true, false]);
  retained[Symbol.dispose]();
  assertEquals([ours.isActive, simulated.live.contexts], [false, 1]);
});

test("a device of a closed Cuda creates nothing new, and objects still retained work to their end", () => {
  const { cuda, simulated } = simulate(2);
  const [device, other] = [cuda.device(0), cuda.device(1)];
  const stream = device.createStream();
  const retained = other.retained();
  cuda.close();
  stream.record().close();
  assertEquals(other.context !== 0n, true);
  for (const one of [device, other]) {
    const words = `Cannot use device ${one.ordinal}: its Cuda is closed`;
    assertThrows(() => one.createStream(), TypeError, words);
    assertThrows(() => one.retained(), TypeError, words);
    assertThrows(() => one.retain(), TypeError, words);
    assertThrows(() => one.defaultStream.retain(), TypeError, words);
  }
  stream.close();
  retained[Symbol.dispose]();
  const { contexts, streams, events } = simulated.live;
  assertEquals({ contexts, streams, events }, { contexts: 0, streams: 0, events: 0 });
  assertThrows(() => cuda.pointerAttributes(64n), TypeError, "a closed Cuda");
  for (const one of [device, other]) assertThrows(() => one.context, TypeError, "its Cuda is closed");
  assertEquals(simulated.calls("cuDevicePrimaryCtxRetain"), 2);
});

test("the context of a call is its device's, and afterwards the previous one, also if the call throws", () => {
  const { cuda, current, retain } = simulate(2);
  const before = retain(1);
  assertEquals(cuda.driver.context.cuCtxPushCurrent_v2(before), 0);
  const device = cuda.device(0);
  assertEquals(device.withContext(current), device.context);
  assertEquals(current(), before);
  assertThrows(() =>
    device.withContext(() => {
      throw new EvalError("of the call");
    }), EvalError);
  assertEquals(current(), before);
  const stream = device.createStream();
  const event = device.createEvent();
  assertEquals(stream.record(event), event); // refused if one of the two belonged to the other device
  assertEquals(event.isDone, false);
  device.synchronize();
  assertEquals([event.isDone, current()], [true, before]);
});

test("streams are non-blocking and events measure nothing, unless requested otherwise", () => {
  const { cuda } = simulate(1);
  const device = cuda.device(0);
  const flags = [undefined, true, false].map((nonBlocking) =>
    device.createStream(nonBlocking === undefined ? {} : { nonBlocking }).isNonBlocking
  );
  assertEquals(flags, [true, true, false]);
  using stream = device.createStream();
  const measure = (timing?: boolean) => {
    const options = timing === undefined ? {} : { timing };
    const [start, end] = [device.createEvent(options), device.createEvent(options)];
    stream.record(start);
    stream.record(end);
    stream.synchronize();
    return end.millisecondsSince(start);
  };
  assertEquals(measure(true) >= 0, true);
  for (const timing of [undefined, false]) assertThrows(() => measure(timing), TypeError, "without timing");
  assertThrows(() => device.createEvent({ timing: true, interprocess: true }), TypeError, "choose one of the two");
  for (const priority of [1, 0.5, -6, NaN]) {
    assertThrows(
      () => device.createStream({ priority }),
      RangeError,
      `priority ${priority}: expected an integer from -5`,
    );
  }
});

test("a driver that does not start, a device that does not exist and a call that fails are errors with names", () => {
  const none = assertThrows(() => Cuda.simulate({ devices: 0 }), CudaError, "cuInit failed with CUDA_ERROR_NO_DEVICE");
  assertEquals([none.call, none.codeName], ["cuInit", "CUDA_ERROR_NO_DEVICE"]);
  const { cuda, simulated } = simulate(2);
  for (const ordinal of [2, -1, 0.5, NaN]) {
    assertThrows(() => cuda.device(ordinal), RangeError, `Cannot use device ${ordinal}: expected 0 to 1`);
  }
  simulated.failNth("cuStreamCreate", 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  const error = assertThrows(() => cuda.device(0).createStream(), CudaError);
  assertEquals([error.call, error.code, error.codeName], ["cuStreamCreate", 2, "CUDA_ERROR_OUT_OF_MEMORY"]);
});

test("a slice of a GPU has the UUID by which nvidia-smi and CUDA_VISIBLE_DEVICES know it", () => {
  // Names as drivers report them.
  const names = {
    "NVIDIA H100 80GB HBM3": "GPU",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb": "MIG",
    "NVIDIA A100 80GB PCIe MIG 1c.3g.40gb": "MIG",
    "NVIDIA H200 MIG 1g.18gb+me": "MIG",
    "MIGHTY 1g": "GPU",
  };
  const { cuda } = simulate(1);
  const { uuid } = cuda.device(0);
  for (const [name, prefix] of Object.entries(names)) {
    const undo = intercept(cuda.driver, "device", () => ({
      cuDeviceGetName: (out, length) => (writeString(out, length, name), CUresult.CUDA_SUCCESS),
    }));
    assertEquals(cuda.device(0).uuid, uuid.replace("GPU", prefix));
    undo();
  }
  cuda.close();
});

test("a context is made current where none is, and another library's stays", () => {
  const { cuda, current, retain } = simulate(2);
  const [first, second] = [cuda.device(0), cuda.device(1)];
  assertEquals(current(), 0n);
  second.ensureCurrent();
  assertEquals(current(), second.context);
  first.ensureCurrent();
  assertEquals(current(), second.context);
  first.withContext(() => {
    second.ensureCurrent();
    assertEquals(current(), first.context);
  });
  assertEquals(cuda.driver.context.cuCtxSetCurrent(retain(0)), 0);
  second.ensureCurrent();
  assertEquals(current(), first.context);
});

test("what was made current is so until its last user closes, and what another library has made current stays", () => {
  // UCX 1.21 crashes when it is opened while a destroyed context is current (cuCtxSetFlags, driver 580).
  const ensure = fc.record({ cuda: fc.nat(1), device: fc.nat(1) });
  const step = fc.oneof(
    { weight: 4, arbitrary: ensure },
    { weight: 1, arbitrary: fc.constantFrom("another's", "none") },
    { weight: 1, arbitrary: fc.record({ close: fc.nat(1) }) },
  );
  check(fc.property(fc.array(step), fc.boolean(), (program, isTheirs) => {
    const { cuda, current, retain } = simulate(3);
    const others = retain(2);
    const open = [cuda, Cuda.over(cuda.driver)];
    const contexts = [retain(0), retain(1)];
    for (const device of [0, 1]) cuda.driver.context.cuDevicePrimaryCtxRelease_v2(device);
    /** What another library has chosen, and who has found its own context current since. */
    let [chosen, relying] = [isTheirs ? retain(0) : 0n, new Map<Cuda, bigint>()];
    assertEquals(cuda.driver.context.cuCtxSetCurrent(chosen), 0);
    for (const one of program) {
      if (typeof one === "string") {
        [chosen, relying] = [one === "none" ? 0n : others, new Map()];
        assertEquals(cuda.driver.context.cuCtxSetCurrent(chosen), 0);
      } else if ("close" in one) {
        const closed = open[one.close];
        closed?.close();
        if (closed !== undefined) relying.delete(closed);
        open[one.close] = Cuda.over(cuda.driver);
      } else {
        const user = open[one.cuda];
        user?.device(one.device).ensureCurrent();
        if (chosen === 0n) assert(contexts.includes(current()), "none was made current");
        if (user !== undefined && contexts[one.device] === current()) relying.set(user, current());
      }
      if (chosen !== 0n) assertEquals(current(), chosen);
      for (const context of relying.values()) assertEquals(current(), context, "it is no longer current for its user");
      const isAlive = contexts.every((context, device) =>
        context !== current() || open.some((cuda) => cuda.device(device).isActive)
      );
      assert(isAlive, "a destroyed context is current");
    }
    for (const one of open) one.close();
    assertEquals(current(), chosen);
  }));
});

test("the path to another device's memory has attributes, and there is none to itself or elsewhere", () => {
  using cuda = Cuda.simulate({ devices: 3, canAccessPeer: (device, peer) => device + peer === 1 });
  const [one, two, three] = [cuda.device(0), cuda.device(1), cuda.device(2)];
  assertEquals([one.peerAttribute("ACCESS_SUPPORTED", two), one.peerAttribute("ACCESS_SUPPORTED", three)], [1, 0]);
  assertEquals(one.peerAttribute("NATIVE_ATOMIC_SUPPORTED", two), 1);
  assertThrows(() => one.peerAttribute("ACCESS_SUPPORTED", one), CudaError, "CUDA_ERROR_INVALID_DEVICE");
  assertThrows(
    () => one.peerAttribute("ACCESS" as "ACCESS_SUPPORTED", two),
    TypeError,
    "expected one of PERFORMANCE_RANK",
  );
  using other = Cuda.simulate();
  assertThrows(() => one.peerAttribute("ACCESS_SUPPORTED", other.device(0)), TypeError, "another Cuda");
});

test("closing continues past an object that cannot be closed: other devices and other objects are closed", () => {
  const { cuda, simulated } = simulate(3);
  const closed: string[] = [];
  for (const device of cuda.devices) {
    assert(device.context !== 0n);
    for (const first of [true, false]) {
      device.onClose(() => {
        closed.push(`${device.ordinal} ${first}`);
        if (first) throw new RangeError(`of device ${device.ordinal}`);
      });
    }
  }
  assertThrows(() => cuda.close(), RangeError, "of device 0");
  assertEquals(closed, [0, 1, 2].flatMap((ordinal) => [`${ordinal} true`, `${ordinal} false`]));
  assertEquals(simulated.live.contexts, 0);
});

test("the events that have ordered streams end with their Cuda, also where another one keeps the context", () => {
  const { cuda, simulated } = simulate(1);
  assert(cuda.device(0).context !== 0n);
  for (let i = 0; i < 3; i++) {
    const other = Cuda.over(cuda.driver);
    const [first, then] = [other.device(0).createStream(), other.device(0).createStream()];
    then.wait(first);
    assertEquals(simulated.live.events, 1);
    for (const stream of [first, then]) stream.close();
    other.close();
    assertEquals([simulated.live.events, simulated.live.contexts], [0, 1]);
  }
  cuda.close();
});

// The driver wrote the popped context to memory that was freed with the device: Deno crashed.
test("a context is released after a call in which its last user is closed, not while it is current", () => {
  for (const isStream of [false, true]) {
    const { cuda, simulated } = simulate(1);
    const device = cuda.device(0);
    const calls: string[] = [];
    intercept(cuda.driver, "context", ({ cuCtxPopCurrent_v2, cuDevicePrimaryCtxRelease_v2 }) => ({
      cuCtxPopCurrent_v2: (out) => (calls.push("pop"), cuCtxPopCurrent_v2(out)),
      cuDevicePrimaryCtxRelease_v2: (ordinal) => (calls.push("release"), cuDevicePrimaryCtxRelease_v2(ordinal)),
    }));
    const stream = device.createStream();
    if (isStream) cuda.close();
    else stream.close();
    calls.length = 0;
    device.withContext(() => (isStream ? stream : cuda).close());
    assertEquals(calls, isStream ? ["pop", "pop", "release"] : ["pop", "release"]);
    assertEquals(simulated.live.contexts, 0);
  }
});

// libcuda may crash in a call with an event of a context that is gone.
test("events that went with their context, which another library has destroyed, are not destroyed again", () => {
  const { cuda, simulated } = simulate(2);
  for (const device of cuda.devices) {
    const [first, then] = [device.createStream(), device.createStream()];
    then.wait(first);
    for (const stream of [first, then]) stream.close();
  }
  assertEquals([simulated.live.events, simulated.calls("cuEventDestroy_v2")], [2, 0]);
  assertEquals(cuda.driver.context.cuDevicePrimaryCtxRelease_v2(0), 0);
  cuda.close();
  assertEquals([simulated.live.events, simulated.calls("cuEventDestroy_v2")], [0, 1]);
  assertEquals(simulated.live.contexts, 0);
});

test("a context is released although a device could not be waited for that has freed its memory: others are", () => {
  const { cuda, simulated } = simulate(3);
  const [device, ...others] = [cuda.device(0), cuda.device(1), cuda.device(2)];
  for (const other of others) {
    assert(other.context !== 0n);
    device.noteFreeOn(other);
  }
  assert(device.context !== 0n);
  simulated.failNth("cuCtxPushCurrent_v2", 1, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => cuda.close(), CudaError, "cuCtxPushCurrent_v2");
  assertEquals([simulated.calls("cuCtxSynchronize"), simulated.live.contexts], [1, 0]);
});

test("a context that was made current is current no longer after calls on other devices in which it was closed", () => {
  for (const within of [[], [0], [1], [1, 2], [2, 0, 1]]) {
    for (const isTheirs of [false, true]) {
      const { cuda, current, retain } = simulate(4);
      const theirs = retain(3);
      cuda.device(0).ensureCurrent();
      if (isTheirs) assertEquals(cuda.driver.context.cuCtxPushCurrent_v2(theirs), 0);
      const call = (devices: readonly number[]): void => {
        const [ordinal, ...inner] = devices;
        if (ordinal === undefined) return cuda.close();
        const before = cuda.device(ordinal).context;
        cuda.device(ordinal).withContext(() => {
          call(inner);
          assertEquals(current(), before, "the call goes on in its context");
        });
      };
      call(within);
      assertEquals(current(), isTheirs ? theirs : 0n, `${within}`);
      if (isTheirs) assertEquals(cuda.driver.context.cuCtxSetCurrent(0n), 0);
      assertEquals(current(), 0n, `${within}`);
    }
  }
});
