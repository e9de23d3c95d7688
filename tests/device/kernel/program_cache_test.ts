/** Programs kept for each device: which ones, and that none is closed while its device works. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CU_STREAM_CAPTURE_MODE, CUresult } from "../../../bindings/cuda_types.ts";
import { Cuda, CudaError } from "../../../mod.ts";
import { ProgramCache } from "../../../src/device/mod.ts";
import { NativeArena } from "../../../src/ffi/mod.ts";
import { check, fc } from "../../support/property.ts";
import { simulatorOf } from "../../support/simulator_of.ts";

const kept = 256;

/** A cache of names, and the names closed so far: after their device's work, unless that has failed. */
function setUp(hasFailed = false) {
  const cuda = Cuda.simulate({ devices: 2, schedule: "latest" });
  const streams = cuda.devices.map((device) => device.createStream());
  const buffers = streams.map((stream) => stream.device.memory.allocate(8, { stream }));
  const cache = new ProgramCache<{ readonly name: string; close(): void }>();
  const closed: string[] = [];
  const get = (ordinal: number, key: string) => {
    const device = cuda.device(ordinal);
    const stream = streams[ordinal];
    assert(stream !== undefined);
    buffers[ordinal]?.fill(1, { stream });
    return cache.get(device, key, () => {
      const name = `${ordinal} ${key}`;
      return {
        name,
        close: () => {
          if (!stream.isClosed && !hasFailed) assert(stream.isDone, "it may be running");
          closed.push(name);
        },
      };
    }).name;
  };
  const closeRest = () => [...buffers, ...streams].forEach((one) => one.close());
  return { cuda, get, closed, closeRest };
}

test("each device keeps the programs that it has used most recently, and closes the others once idle", () => {
  check(
    fc.property(fc.array(fc.tuple(fc.nat(1), fc.nat(300)), { minLength: 300, maxLength: 900 }), (uses) => {
      const { cuda, get, closed, closeRest } = setUp();
      const model = [new Set<string>(), new Set<string>()];
      const expected: string[] = [];
      for (const [ordinal, key] of uses) {
        const name = `${ordinal} ${key}`;
        assertEquals(get(ordinal, `${key}`), name);
        const names = model[ordinal];
        assert(names !== undefined);
        names.delete(name);
        names.add(name);
        const [oldest = ""] = names;
        if (names.size <= kept) continue;
        names.delete(oldest);
        expected.push(oldest);
      }
      assertEquals(closed, expected);
      closeRest();
      cuda.close();
      assertEquals(closed, [...expected, ...model.flatMap((names) => [...names])]);
    }),
    20,
  );
});

test("while a stream is captured, here or by another library, nothing is closed, and the capture stays valid", () => {
  for (const isOurs of [true, false]) {
    const { cuda, get, closed, closeRest } = setUp();
    const stream = cuda.device(0).createStream({ nonBlocking: isOurs }); // theirs can be seen if it is not
    for (let i = 0; i < kept; i++) get(0, `${i}`);
    const waits = simulatorOf(cuda).calls("cuCtxSynchronize");
    const exceed = () => [1, 2, 3].forEach((i) => get(0, `captured ${i}`));
    if (isOurs) stream.capture(exceed).close();
    else {
      using arena = new NativeArena();
      const graph = arena.out("ptr");
      const { capture: { cuStreamBeginCapture_v2, cuStreamEndCapture }, graph: { cuGraphDestroy } } = cuda.driver;
      assertEquals(cuStreamBeginCapture_v2(stream.handle, CU_STREAM_CAPTURE_MODE.GLOBAL), 0);
      exceed();
      assertEquals(cuStreamEndCapture(stream.handle, graph.$address), 0);
      cuGraphDestroy(graph.value);
    }
    assertEquals([closed, simulatorOf(cuda).calls("cuCtxSynchronize")], [[], waits]);
    get(0, "afterwards");
    assertEquals(closed, ["0 0", "0 1", "0 2", "0 3"]);
    closeRest();
    stream.close();
    cuda.close();
  }
});

test("a lost context runs no code: its programs are closed without an error; another error closes none", () => {
  for (const isLost of [true, false]) {
    const { cuda, get, closed, closeRest } = setUp(true);
    for (let i = 0; i < kept; i++) get(0, `${i}`);
    get(1, "0");
    const code = isLost ? CUresult.CUDA_ERROR_ILLEGAL_ADDRESS : CUresult.CUDA_ERROR_UNKNOWN;
    for (const nth of [1, 2]) simulatorOf(cuda).failNth("cuCtxSynchronize", nth, code);
    if (isLost) get(0, "new");
    else assertThrows(() => get(0, "new"), CudaError, "cuCtxSynchronize");
    assertEquals(closed.length, isLost ? 1 : 0);
    closeRest();
    if (isLost) cuda.close();
    else assertThrows(() => cuda.close(), CudaError, "cuCtxSynchronize");
    assertEquals(closed.length, isLost ? kept + 2 : 1); // without an error those of the other device
  }
});
