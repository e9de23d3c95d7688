/**
 * Memory that graphs allocate: it lives from node to node, from launch to launch, and cannot be accessed before or
 * after.
 */
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { test } from "node:test";
import {
  CU_GRAPH_MEM_ATTR,
  CU_GRAPH_NODE_TYPE,
  CU_STREAM,
  CUDA_GRAPH_INSTANTIATE_FLAG,
  CUresult,
} from "../../bindings/cuda_types.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { checkDriver } from "../../src/checker/mod.ts";
import { type SimulatedDriver, simulateDriver, type SimulateOptions } from "../../src/sim/mod.ts";
import { check, fc } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

const { MEM_ALLOC, MEM_FREE, MEMSET, KERNEL, MEMCPY } = CU_GRAPH_NODE_TYPE;
const { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_OUT_OF_MEMORY } = CUresult;
const { AUTO_FREE_ON_LAUNCH } = CUDA_GRAPH_INSTANTIATE_FLAG;
const schedules = ["latest", "random", "round-robin"] as const;

/** Adds one to the word at an address. */
const increment = `.version 8.0
.target sm_90
.address_size 64
.visible .entry increment(.param .u64 p) {
  .reg .b64 %p; .reg .b32 %r;
  ld.param.u64 %p, [p];
  ld.global.u32 %r, [%p];
  add.u32 %r, %r, 1;
  st.global.u32 [%p], %r;
  ret;
}`;

/** A driver, two streams, and operations on graphs. */
class Bench {
  readonly simulated: SimulatedDriver;
  readonly raw: Raw;
  readonly stream: bigint;
  readonly other: bigint;
  readonly kernel: bigint;
  #loaded = 0n;

  constructor(options: SimulateOptions = {}) {
    this.simulated = simulateDriver({ schedule: "latest", ...options });
    this.raw = new Raw(this.simulated.driver);
    this.raw.use(0);
    this.stream = this.raw.stream(CU_STREAM.NON_BLOCKING);
    this.other = this.raw.stream(CU_STREAM.NON_BLOCKING);
    const { module } = this.driver;
    const image = this.raw.arena.cString(increment);
    this.#loaded = this.raw.word((out) => module.cuModuleLoadData(out, image));
    this.kernel = this.raw.word((out) => module.cuModuleGetFunction(out, this.#loaded, cString("increment")));
  }

  get driver() {
    return this.simulated.driver;
  }

  allocate(stream = this.stream, bytes = 64n): bigint {
    return this.raw.word((out) => this.driver.pool.cuMemAllocAsync(out, bytes, stream));
  }

  free(address: bigint, stream = this.stream): number {
    return this.driver.pool.cuMemFreeAsync(address, stream);
  }

  /** Launches the kernel on the word at an address. */
  increment(address: bigint, stream = this.stream): number {
    const [value, list] = [this.raw.arena.out("ptr"), this.raw.arena.out("ptr")];
    value.value = address;
    list.value = value.$address;
    return this.driver.kernel.cuLaunchKernel(this.kernel, 1, 1, 1, 1, 1, 1, 0, stream, list.$address, 0n);
  }

  fill(address: bigint, value: number): void {
    this.raw.ok(this.driver.fill.cuMemsetD32Async(address, value, 1n, this.stream));
  }

  /** Captures what `body` enqueues. */
  capture(body: () => void): bigint {
    const { capture } = this.driver;
    this.raw.ok(capture.cuStreamBeginCapture_v2(this.stream, 0));
    body();
    return this.raw.word((out) => capture.cuStreamEndCapture(this.stream, out));
  }

  instantiate(graph: bigint, flags = 0n): bigint {
    return this.raw.word((out) => this.driver.graph.cuGraphInstantiateWithFlags(out, graph, flags));
  }

  launch(exec: bigint, stream = this.stream): number {
    return this.driver.graph.cuGraphLaunch(exec, stream);
  }

  synchronize(): number {
    return this.driver.context.cuCtxSynchronize();
  }

  attribute(name: keyof typeof CU_GRAPH_MEM_ATTR): number {
    const out = this.raw.arena.out("u64");
    this.raw.ok(this.driver.graph.cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR[name], out.$address));
    return Number(out.value);
  }

  end(exec: bigint, graph: bigint): void {
    this.raw.ok(this.driver.graph.cuGraphExecDestroy(exec));
    this.raw.ok(this.driver.graph.cuGraphDestroy(graph));
  }

  [Symbol.dispose](): void {
    this.driver.module.cuModuleUnload(this.#loaded);
    this.raw.close();
  }
}

test("an allocation and a free that are captured are nodes, and the memory exists between them at each launch", () => {
  for (const schedule of schedules) {
    using bench = new Bench({ schedule, seed: 5 });
    const { raw, driver } = bench;
    const result = raw.pinned(4);
    let address = 0n;
    const graph = bench.capture(() => {
      address = bench.allocate();
      bench.fill(address, 41);
      raw.ok(bench.increment(address));
      raw.ok(driver.copy.cuMemcpyDtoHAsync_v2(result.address, address, 4n, bench.stream));
      raw.ok(bench.free(address));
    });
    const nodes = raw.arena.bytes(80, 8);
    const count = raw.arena.out("size");
    count.value = 10;
    raw.ok(driver.graph.cuGraphGetNodes(graph, nodes.address, count.$address));
    const handles = [...new BigUint64Array(nodes.bytes.buffer, nodes.bytes.byteOffset, count.value)];
    const kinds = handles.map((node) => raw.int((out) => driver.graph.cuGraphNodeGetType(node, out)));
    assertEquals(kinds, [MEM_ALLOC, MEMSET, KERNEL, MEMCPY, MEM_FREE]);
    assertEquals(bench.simulated.live.allocations, 1, "the pinned memory alone");
    const exec = bench.instantiate(graph);
    for (let i = 0; i < 3; i++) {
      result.bytes.fill(0);
      raw.ok(bench.launch(exec, i === 1 ? bench.other : bench.stream));
      raw.ok(bench.synchronize());
      assertEquals(result.bytes[0], 42);
    }
    assertEquals(bench.free(address), CUDA_ERROR_INVALID_VALUE, "its own graph frees it");
    assertEquals(driver.memory.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
    bench.end(exec, graph);
    assertEquals(bench.simulated.unsupported, []);
  }
});

test("a kernel that touches the memory before or after its lifetime is stopped in some order, one within never", () => {
  /** @returns whether all seeds succeeded */
  const use = (where: "between" | "beside the allocation" | "beside the free"): boolean =>
    Array.from({ length: 24 }, (_, seed) => {
      using bench = new Bench({ schedule: "random", seed });
      const { raw, driver } = bench;
      const event = raw.event();
      const join = (from: bigint, to: bigint) => {
        raw.ok(driver.event.cuEventRecord(event, from));
        raw.ok(driver.stream.cuStreamWaitEvent(to, event, 0));
      };
      const graph = bench.capture(() => {
        if (where === "beside the allocation") join(bench.stream, bench.other);
        const address = bench.allocate();
        if (where !== "beside the allocation") join(bench.stream, bench.other);
        raw.ok(bench.increment(address, bench.other));
        if (where !== "beside the free") join(bench.other, bench.stream);
        raw.ok(bench.free(address));
        if (where === "beside the free") join(bench.other, bench.stream);
      });
      const exec = bench.instantiate(graph);
      raw.ok(bench.launch(exec));
      const code = bench.synchronize();
      assert(code === CUDA_SUCCESS || code === CUDA_ERROR_ILLEGAL_ADDRESS, `${code}`);
      return code === CUDA_SUCCESS;
    }).every(Boolean);
  assertEquals(use("between"), true);
  assertEquals(use("beside the allocation"), false);
  assertEquals(use("beside the free"), false);
});

test("memory that its graph does not free lives on after the launch, until it is freed, and no longer", () => {
  for (const schedule of schedules) {
    for (const byStream of [true, false]) {
      using bench = new Bench({ schedule, seed: 3 });
      const { raw, driver } = bench;
      let address = 0n;
      const graph = bench.capture(() => {
        address = bench.allocate();
        bench.fill(address, 1);
      });
      const exec = bench.instantiate(graph);
      raw.ok(bench.launch(exec));
      bench.end(exec, graph); // which ends neither queued work nor the memory
      raw.ok(bench.increment(address));
      raw.ok(bench.synchronize());
      assertEquals(bench.simulated.peek(address, 1)[0], 2);
      assertEquals(bench.simulated.live.allocations, 1);
      raw.ok(byStream ? bench.free(address) : driver.memory.cuMemFree_v2(address));
      assertEquals(bench.simulated.live.allocations, 0);
      assertEquals(bench.free(address), CUDA_ERROR_INVALID_VALUE);
      raw.ok(bench.increment(address));
      assertEquals(bench.synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    }
  }
});

test("a relaunch is refused while memory is unfreed, unless the launch frees it, by any free and schedule", () => {
  const actions = ["launch", "free in order", "free", "free by another graph"] as const;
  check(
    fc.property(
      fc.array(fc.constantFrom(...actions), { maxLength: 14 }),
      fc.boolean(),
      fc.constantFrom(...schedules),
      fc.nat(),
      (program, frees, schedule, seed) => {
        using bench = new Bench({ schedule, seed });
        const { raw, driver } = bench;
        let address = 0n;
        const graph = bench.capture(() => {
          address = bench.allocate();
          bench.fill(address, 7);
        });
        const freeing = bench.capture(() => raw.ok(bench.free(address)));
        const exec = bench.instantiate(graph, frees ? AUTO_FREE_ON_LAUNCH : 0n);
        const freeingExec = bench.instantiate(freeing);
        let [lives, word] = [false, 0];
        for (const action of program) {
          if (action === "launch") {
            const allowed = frees || !lives;
            assertEquals(bench.launch(exec), allowed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
            lives = true;
            word = (allowed ? 7 : word) + 1;
            raw.ok(bench.increment(address));
          } else {
            if (action === "free") raw.ok(bench.synchronize()); // the free does not wait
            const code = action === "free"
              ? driver.memory.cuMemFree_v2(address)
              : action === "free in order"
              ? bench.free(address)
              : bench.launch(freeingExec);
            assertEquals(code, lives ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, action);
            lives = false;
          }
          assertEquals(bench.simulated.live.allocations, Number(lives));
        }
        raw.ok(bench.synchronize());
        if (lives) {
          assertEquals(bench.simulated.peek(address, 1)[0], word);
          raw.ok(bench.free(address));
        }
        bench.end(exec, graph);
        bench.end(freeingExec, freeing);
        assertEquals(bench.attribute("USED_MEM_CURRENT"), 0);
      },
    ),
    120,
  );
});

test("a capture may free only memory of a graph that no node frees yet", () => {
  using bench = new Bench();
  const { raw } = bench;
  const ordinary = bench.allocate();
  let [own, foreign] = [0n, 0n];
  const graph = bench.capture(() => {
    own = bench.allocate();
    foreign = bench.allocate();
    assertNotEquals(own, foreign);
    assertEquals(bench.free(ordinary), CUDA_ERROR_INVALID_VALUE);
    assertEquals(bench.free(ordinary + 8n), CUDA_ERROR_INVALID_VALUE);
    raw.ok(bench.free(own));
    assertEquals(bench.free(own), CUDA_ERROR_INVALID_VALUE);
  });
  const other = bench.capture(() => {
    assertEquals(bench.free(own), CUDA_ERROR_INVALID_VALUE, "its own graph frees it");
    raw.ok(bench.free(foreign));
    assertEquals(bench.free(foreign), CUDA_ERROR_INVALID_VALUE);
  });
  raw.ok(bench.driver.capture.cuStreamBeginCapture_v2(bench.other, 0));
  const taken = bench.capture(() => {
    const address = bench.allocate();
    raw.ok(bench.free(address, bench.other)); // another graph frees it first
    assertEquals(bench.free(address), CUDA_ERROR_INVALID_VALUE);
  });
  const taking = raw.word((out) => bench.driver.capture.cuStreamEndCapture(bench.other, out));
  for (const one of [taken, taking]) raw.ok(bench.driver.graph.cuGraphDestroy(one));
  const exec = bench.instantiate(other);
  assertEquals(bench.launch(exec), CUDA_ERROR_INVALID_VALUE, "nothing is allocated");
  raw.ok(bench.free(ordinary));
  bench.end(exec, other);
  raw.ok(bench.driver.graph.cuGraphDestroy(graph));
});

test("an executable allocates at its addresses though its graph is gone, and finds no old bytes there", () => {
  using bench = new Bench();
  const { raw, driver } = bench;
  let address = 0n;
  const graph = bench.capture(() => void (address = bench.allocate()));
  const exec = bench.instantiate(graph);
  raw.ok(driver.graph.cuGraphDestroy(graph));
  for (let i = 0; i < 2; i++) {
    raw.ok(bench.launch(exec));
    raw.ok(bench.synchronize());
    assertEquals(bench.simulated.peek(address, 1)[0], 0xdb);
    bench.fill(address, 1);
    raw.ok(bench.free(address));
  }
  raw.ok(driver.graph.cuGraphExecDestroy(exec));
  assertEquals(bench.attribute("USED_MEM_CURRENT"), 0);
});

test("a graph that allocates or frees has one executable at a time", () => {
  using bench = new Bench();
  const { raw, driver } = bench;
  let address = 0n;
  const out = raw.arena.out("ptr");
  const graph = bench.capture(() => void (address = bench.allocate()));
  const freeing = bench.capture(() => raw.ok(bench.free(address)));
  const plain = bench.capture(() => {});
  for (const one of [graph, freeing]) {
    const exec = bench.instantiate(one);
    assertEquals(driver.graph.cuGraphInstantiateWithFlags(out.$address, one, 0n), CUresult.CUDA_ERROR_NOT_SUPPORTED);
    raw.ok(driver.graph.cuGraphExecDestroy(exec));
    raw.ok(driver.graph.cuGraphExecDestroy(bench.instantiate(one)));
  }
  for (const exec of [bench.instantiate(plain), bench.instantiate(plain)]) {
    raw.ok(driver.graph.cuGraphExecDestroy(exec));
  }
  for (const one of [graph, freeing, plain]) raw.ok(driver.graph.cuGraphDestroy(one));
});

test("a device's memory for graphs is counted, reused by the next graph, and returned on request", () => {
  const mebibyte = 2 ** 20;
  using bench = new Bench({ memory: 8 * mebibyte });
  const { raw, driver } = bench;
  const make = () => {
    const graph = bench.capture(() => raw.ok(bench.free(bench.allocate(bench.stream, 6n * 1048576n))));
    return { graph, exec: bench.instantiate(graph) };
  };
  const first = make();
  assertEquals(bench.attribute("USED_MEM_CURRENT"), 0, "nothing is taken before a launch");
  raw.ok(bench.launch(first.exec));
  assertEquals(["USED_MEM_CURRENT", "RESERVED_MEM_CURRENT"].map((name) => bench.attribute(name as "USED_MEM_HIGH")), [
    6 * mebibyte,
    6 * mebibyte,
  ]);
  const second = make();
  assertEquals(bench.launch(second.exec), CUDA_ERROR_OUT_OF_MEMORY);
  raw.ok(bench.synchronize());
  raw.ok(driver.graph.cuDeviceGraphMemTrim(0));
  assertEquals(bench.attribute("RESERVED_MEM_CURRENT"), 6 * mebibyte, "it is in use");
  bench.end(first.exec, first.graph);
  assertEquals(bench.attribute("USED_MEM_CURRENT"), 0);
  assertEquals(bench.attribute("RESERVED_MEM_CURRENT"), 6 * mebibyte);
  raw.ok(bench.launch(second.exec));
  assertEquals(bench.attribute("RESERVED_MEM_CURRENT"), 6 * mebibyte);
  raw.ok(bench.synchronize());
  bench.end(second.exec, second.graph);
  raw.ok(driver.graph.cuDeviceGraphMemTrim(0));
  assertEquals(bench.attribute("RESERVED_MEM_CURRENT"), 0);
  assertEquals(bench.attribute("USED_MEM_HIGH"), 6 * mebibyte);
  const zero = raw.arena.out("u64");
  const { USED_MEM_HIGH, USED_MEM_CURRENT } = CU_GRAPH_MEM_ATTR;
  raw.ok(driver.graph.cuDeviceSetGraphMemAttribute(0, USED_MEM_HIGH, zero.$address));
  assertEquals(bench.attribute("USED_MEM_HIGH"), 0);
  const set = (name: number) => driver.graph.cuDeviceSetGraphMemAttribute(0, name, zero.$address);
  assertEquals(set(USED_MEM_CURRENT), CUDA_ERROR_INVALID_VALUE);
  zero.value = 1n;
  assertEquals(set(USED_MEM_HIGH), CUDA_ERROR_INVALID_VALUE);
});

test("memory that a failed capture has allocated is gone, and its addresses are reused", () => {
  using bench = new Bench();
  const { raw, driver } = bench;
  const out = raw.arena.out("ptr");
  const addresses = [0, 1].map(() => {
    raw.ok(driver.capture.cuStreamBeginCapture_v2(bench.stream, 0));
    const address = bench.allocate();
    driver.stream.cuStreamSynchronize(bench.stream); // refused, which invalidates the capture
    assertEquals(driver.pool.cuMemAllocAsync(out.$address, 8n, bench.stream), 901);
    assertEquals(driver.capture.cuStreamEndCapture(bench.stream, out.$address), 901);
    assertEquals(driver.pointer.cuPointerGetAttribute(out.$address, 2, address), CUDA_ERROR_INVALID_VALUE);
    return address;
  });
  assertEquals(addresses[0], addresses[1]);
});

test("the checker reports nothing about memory that a graph allocates", () => {
  const simulated = simulateDriver({ schedule: "latest" });
  const checker = checkDriver(simulated.driver);
  const { driver } = checker;
  using raw = new Raw(driver);
  raw.use(0);
  const stream = raw.stream(CU_STREAM.NON_BLOCKING);
  raw.ok(driver.capture.cuStreamBeginCapture_v2(stream, 0));
  const [own, left] = [0, 1].map(() => raw.word((out) => driver.pool.cuMemAllocAsync(out, 64n, stream)));
  for (const address of [own, left]) raw.ok(driver.fill.cuMemsetD8Async(address ?? 0n, 1, 64n, stream));
  raw.ok(driver.pool.cuMemFreeAsync(own ?? 0n, stream));
  const graph = raw.word((out) => driver.capture.cuStreamEndCapture(stream, out));
  const exec = raw.word((out) => driver.graph.cuGraphInstantiateWithFlags(out, graph, AUTO_FREE_ON_LAUNCH));
  for (let i = 0; i < 3; i++) {
    raw.ok(driver.graph.cuGraphLaunch(exec, stream));
    raw.ok(driver.fill.cuMemsetD8Async(left ?? 0n, 2, 64n, stream));
  }
  raw.ok(driver.pool.cuMemFreeAsync(left ?? 0n, stream));
  raw.ok(driver.graph.cuGraphExecDestroy(exec));
  raw.ok(driver.graph.cuGraphDestroy(graph));
  assertEquals(checker.reports, []);
});

test("a free unordered with the launch stops a kernel of it in some order, and one after it in none", () => {
  const use = (waits: boolean): boolean =>
    Array.from({ length: 24 }, (_, seed) => {
      using bench = new Bench({ schedule: "random", seed });
      const { raw, driver } = bench;
      const event = raw.event();
      let address = 0n;
      const graph = bench.capture(() => {
        address = bench.allocate();
        bench.fill(address, 1);
        for (let i = 0; i < 8; i++) raw.ok(bench.increment(address));
      });
      const exec = bench.instantiate(graph);
      for (let i = 0; i < 6; i++) {
        const code = bench.launch(exec);
        if (code !== CUDA_SUCCESS) return false;
        if (waits) {
          raw.ok(driver.event.cuEventRecord(event, bench.stream));
          raw.ok(driver.stream.cuStreamWaitEvent(bench.other, event, 0));
        }
        if (bench.free(address, bench.other) !== CUDA_SUCCESS) return false; // the next launch implicitly follows it
      }
      return bench.synchronize() === CUDA_SUCCESS;
    }).every(Boolean);
  assertEquals(use(true), true);
  assertEquals(use(false), false);
});

test("an executable that is made anew begins after the queued work of the previous one", () => {
  for (let seed = 0; seed < 24; seed++) {
    using bench = new Bench({ schedule: "random", seed });
    const { raw } = bench;
    const graph = bench.capture(() => {
      const address = bench.allocate();
      bench.fill(address, 1);
      for (let i = 0; i < 4; i++) raw.ok(bench.increment(address));
      raw.ok(bench.free(address));
    });
    for (const stream of [bench.stream, bench.other]) {
      const exec = bench.instantiate(graph);
      raw.ok(bench.launch(exec, stream));
      raw.ok(bench.driver.graph.cuGraphExecDestroy(exec));
    }
    raw.ok(bench.synchronize());
    raw.ok(bench.driver.graph.cuGraphDestroy(graph));
  }
});
