/**
 * Immediate frees need not wait for work that uses the memory. Drivers mostly wait, CUDA does not promise it, and with
 * `freesWait: false` the simulator does not: a program that relies on the wait sees wrong bytes.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { type SimulatedDriver, simulateDriver, type SimulateOptions } from "../../src/sim/mod.ts";
import { check, fc } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

const bytes = 32 * 1024; // too much to be read during the call
const size = BigInt(bytes);

/** A driver, a non-blocking stream, and what programs do with them. */
class Ground {
  readonly simulated: SimulatedDriver;
  readonly raw: Raw;
  readonly stream: bigint;
  /** Whether the program waits for its work before it frees, as it should. */
  readonly #waits: boolean;

  constructor(options: SimulateOptions, waits: boolean) {
    this.simulated = simulateDriver(options);
    this.raw = new Raw(this.simulated.driver);
    this.raw.use(0);
    this.stream = this.raw.stream(1);
    this.#waits = waits;
  }

  get driver() {
    return this.simulated.driver;
  }

  wait(): void {
    this.raw.ok(this.driver.stream.cuStreamSynchronize(this.stream));
  }

  /** Frees something that work on the stream may still use. */
  free(call: () => number): void {
    if (this.#waits) this.wait();
    this.raw.ok(call());
  }

  /** Device memory that holds a value. */
  filled(value: number): bigint {
    const made = this.raw.word((out) => this.driver.memory.cuMemAlloc_v2(out, size));
    this.raw.ok(this.driver.fill.cuMemsetD8_v2(made, value, size));
    this.raw.ok(this.driver.stream.cuStreamSynchronize(0n));
    return made;
  }

  pinned(value: number): bigint {
    return this.#host(value, (out) => this.driver.hostMemory.cuMemHostAlloc(out, size, 0));
  }

  managed(value: number): bigint {
    return this.#host(value, (out) => this.driver.managedMemory.cuMemAllocManaged(out, size, 1));
  }

  /** Registered malloc memory. */
  registered(value: number) {
    const memory = this.raw.pageable(bytes);
    memory.bytes.fill(value);
    this.raw.ok(this.driver.hostMemory.cuMemHostRegister_v2(memory.address, size, 0));
    return memory;
  }

  copy(to: bigint, from: bigint): void {
    this.raw.ok(this.driver.copy.cuMemcpyAsync(to, from, size, this.stream));
  }

  /** What an address holds when all work is done: one value, or -1 for a mixture. */
  value(address: bigint): number {
    this.wait();
    const seen = new Set(this.simulated.peek(address, bytes));
    return seen.size === 1 ? [...seen][0] ?? -1 : -1;
  }

  #host(value: number, allocate: (out: bigint) => number): bigint {
    const address = this.raw.word(allocate);
    new Uint8Array(ffiPort().memory(address, bytes)).fill(value);
    return address;
  }
}

const kernel = `.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .b32 seven = 7;
.visible .entry constant(.param .u64 out) {
  .reg .b64 %d;
  ld.param.u64 %d, [out];
  st.global.u32 [%d], 7;
  ret;
}
.visible .entry k(.param .u64 out) {
  .reg .b64 %d<2>; .reg .b32 %r;
  ld.param.u64 %d0, [out];
  ld.global.u32 %r, [seven];
  st.global.u32 [%d0], %r;
  ret;
}`;

/** Programs that free memory; each returns the byte it is about, which should be 7. */
const programs: Readonly<Record<string, (ground: Ground) => number>> = {
  "cuMemFree of memory that is read"(ground) {
    const [from, to] = [ground.filled(7), ground.filled(0)];
    ground.copy(to, from);
    ground.free(() => ground.driver.memory.cuMemFree_v2(from));
    return ground.value(to);
  },
  "cuMemFree of memory that is written, and reused at once"(ground) {
    const [from, to] = [ground.filled(9), ground.filled(0)];
    ground.copy(to, from);
    ground.free(() => ground.driver.memory.cuMemFree_v2(to));
    return ground.value(ground.filled(7));
  },
  "cuMemFree of managed memory that is read"(ground) {
    const [from, to] = [ground.managed(7), ground.filled(0)];
    ground.copy(to, from);
    ground.free(() => ground.driver.memory.cuMemFree_v2(from));
    return ground.value(to);
  },
  "cuMemFreeHost of memory that is read"(ground) {
    const [from, to] = [ground.pinned(7), ground.filled(0)];
    ground.copy(to, from);
    ground.free(() => ground.driver.hostMemory.cuMemFreeHost(from));
    return ground.value(to);
  },
  "cuMemFreeHost of memory that is written, and reused at once"(ground) {
    const [from, to] = [ground.filled(9), ground.pinned(0)];
    ground.copy(to, from);
    ground.free(() => ground.driver.hostMemory.cuMemFreeHost(to));
    return ground.value(ground.pinned(7));
  },
  "cuMemHostUnregister of memory that is read"(ground) {
    const [from, to] = [ground.registered(7), ground.filled(0)];
    ground.copy(to, from.address);
    ground.free(() => ground.driver.hostMemory.cuMemHostUnregister(from.address));
    return ground.value(to);
  },
  "cuMemHostUnregister of memory that is written"(ground) {
    const [from, to] = [ground.filled(7), ground.registered(0)];
    ground.copy(to.address, from);
    ground.free(() => ground.driver.hostMemory.cuMemHostUnregister(to.address));
    return ground.value(to.address);
  },
  "cuMemHostUnregister of memory that is filled"(ground) {
    const to = ground.registered(0);
    ground.raw.ok(ground.driver.fill.cuMemsetD8Async(to.address, 7, size, ground.stream));
    ground.free(() => ground.driver.hostMemory.cuMemHostUnregister(to.address));
    return ground.value(to.address);
  },
  "cuIpcCloseMemHandle of memory that is read"(ground) {
    const owner = new Ground({ schedule: "latest" }, true);
    const handle = ground.raw.arena.bytes(64);
    owner.raw.ok(owner.driver.ipc.cuIpcGetMemHandle(handle.address, owner.filled(7)));
    const opened = ground.raw.word((out) => ground.driver.ipc.cuIpcOpenMemHandle_v2(out, handle.bytes, 1));
    const to = ground.filled(0);
    ground.copy(to, opened);
    ground.free(() => ground.driver.ipc.cuIpcCloseMemHandle(opened));
    return ground.value(to);
  },
  "cuModuleUnload of a kernel that has not run": (ground) => launchAndUnload(ground, "constant"),
  "cuModuleUnload of a variable that a kernel reads": (ground) => launchAndUnload(ground, "k"),
};

function launchAndUnload(ground: Ground, name: string): number {
  const { module, kernel: { cuLaunchKernel }, stream } = ground.driver;
  const loaded = ground.raw.word((out) => module.cuModuleLoadData(out, ground.raw.arena.cString(kernel)));
  const k = ground.raw.word((out) => module.cuModuleGetFunction(out, loaded, cString(name)));
  const to = ground.filled(0);
  const [value, list] = [ground.raw.arena.out("ptr"), ground.raw.arena.out("ptr")];
  value.value = to;
  list.value = value.$address;
  ground.raw.ok(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, ground.stream, list.$address, 0n));
  ground.free(() => module.cuModuleUnload(loaded));
  return stream.cuStreamSynchronize(ground.stream) === CUresult.CUDA_SUCCESS
    ? ground.simulated.peek(to, 1)[0] ?? -1
    : -1;
}

for (const [name, program] of Object.entries(programs)) {
  test(`${name}: not waiting is right only where the driver waits`, () => {
    for (const schedule of ["latest", "round-robin", "random"] as const) {
      let wrong = 0;
      for (let seed = 0; seed < 6; seed++) {
        const run = (freesWait: boolean | null, waits: boolean) => {
          const ground = new Ground({ schedule, seed, ...(freesWait === null ? {} : { freesWait }) }, waits);
          try {
            return program(ground);
          } finally {
            ground.simulated.close();
          }
        };
        const where = `${schedule}, seed ${seed}`;
        assertEquals(run(null, false), 7, `by default frees wait: ${where}`);
        assertEquals(run(true, true), 7, where);
        assertEquals(run(false, true), 7, where);
        if (run(false, false) !== 7) wrong++;
      }
      if (schedule === "latest") assertEquals(wrong, 6);
      if (schedule === "random") assert(wrong > 0);
    }
  });
}

test("page-locked memory that is freed early is returned to the system when nothing can touch it any more", () => {
  check(
    fc.property(fc.array(fc.nat(5), { maxLength: 40 }), fc.nat(), (steps, seed) => {
      const ground = new Ground({ seed, freesWait: false }, false);
      const { driver, raw } = ground;
      const from = ground.filled(9);
      const live = [ground.pinned(1)];
      for (const step of steps) {
        const last = live.at(-1);
        if (step < 2 || last === undefined) {
          live.push(raw.word((out) => driver.hostMemory.cuMemHostAlloc(out, size, 0)));
        } else if (step < 4) ground.copy(last, from);
        else if (step === 4) raw.ok(driver.hostMemory.cuMemFreeHost(live.pop() ?? 0n));
        else ground.wait();
      }
      const { allocations } = ground.simulated.live;
      assertEquals(allocations, live.length + 1); // and the copies' source
      assertEquals(new Set(live).size, live.length, "no two have the same memory");
      ground.simulated.close();
      assertEquals(ground.simulated.live.queued, 0);
    }),
    200,
  );
});
