/**
 * Kernels as NVRTC compiles them, against plain TypeScript: over sizes, grids, and orders of threads and blocks. The
 * committed PTX is tested everywhere; where NVRTC is available, the PTX that it now compiles from the same sources is
 * tested too.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { loadPtx, type PtxModule } from "../../src/ptx/mod.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { FlatMemory, launch, place } from "../support/ptx/harness.ts";
import { architectures, committedPtx, compileSource, missingNvrtc, type sources } from "../support/ptx/nvrtc.ts";

type Source = (typeof sources)[number];

const withoutNvrtc = missingNvrtc();

/** A test for each architecture, as committed and as compiled now. */
function everywhere(source: Source, name: string, body: (module: PtxModule) => void): void {
  for (const architecture of architectures) {
    test(`${name} (${architecture})`, () => body(loadPtx(committedPtx(source, architecture))));
    test(...needs(withoutNvrtc, `${name} (${architecture}, compiled now)`), () => {
      body(loadPtx(compileSource(source, architecture)));
    });
  }
}

const seeds = fc.integer();
const int = (number: number): { int: number } => ({ int: number });

everywhere("arrays", "saxpy", (module) => {
  check(
    fc.property(
      fc.float({ noNaN: true }),
      fc.array(fc.tuple(fc.float({ noNaN: true }), fc.float({ noNaN: true })), { maxLength: 300, size: "max" }),
      fc.integer({ min: 1, max: 130 }),
      seeds,
      (a, pairs, threads, seed) => {
        const memory = new FlatMemory();
        const x = new Float32Array(pairs.map(([one]) => one));
        const y = new Float32Array(pairs.map(([, two]) => two));
        const n = pairs.length;
        const before = y.slice();
        const grid = [Math.ceil(n / threads) + 1, 1, 1] as const;
        launch(module, "saxpy", memory, [{ float: a }, memory.add(x), memory.add(y), int(n)], {
          grid,
          block: [threads, 1, 1],
          seed,
        });
        y.forEach((value, i) => {
          // a * x is exact as a double; rounding the sum twice affects only the last bit.
          const exact = a * (x[i] ?? 0) + (before[i] ?? 0);
          const close = Math.abs(value - Math.fround(exact)) <= Math.abs(Math.fround(exact)) * 2 ** -23;
          assert(Object.is(value, Math.fround(exact)) || close, `${value}, not ${exact}`);
        });
      },
    ),
    20,
  );
});

everywhere("arrays", "a loop over the grid reaches every element with any grid", (module) => {
  check(
    fc.property(
      fc.array(fc.double(), { maxLength: 300, size: "max" }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 70 }),
      seeds,
      (values, blocks, threads, seed) => {
        const memory = new FlatMemory();
        const x = new Float64Array(values);
        const y = new Float64Array(values.toReversed());
        const z = new Float64Array(values.length).fill(-1);
        const args = [memory.add(x), memory.add(y), memory.add(z), BigInt(values.length)];
        launch(module, "add_strided", memory, args, { grid: [blocks, 1, 1], block: [threads, 1, 1], seed });
        assertEquals([...z], [...x].map((one, i) => one + (y[i] ?? 0)));
      },
    ),
    20,
  );
});

everywhere("arrays", "a transpose through shared memory", (module) => {
  check(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 12 }),
      seeds,
      (width, height, side, seed) => {
        const input = Float32Array.from({ length: width * height }, (_, i) => i + 0.5);
        const expected = input.map((_, i) => input[(i % height) * width + Math.floor(i / height)] ?? NaN);
        for (const name of ["transpose_static", "transpose_dynamic"]) {
          const memory = new FlatMemory();
          const output = new Float32Array(width * height);
          const tile = name === "transpose_static" ? 16 : side;
          const grid = [Math.ceil(width / tile), Math.ceil(height / tile), 1] as const;
          const args = [memory.add(input), memory.add(output), int(width), int(height)];
          launch(module, name, memory, args, {
            grid,
            block: tile === 16 && name === "transpose_static" ? [16, 4, 1] : [tile, tile, 1],
            shared: name === "transpose_static" ? 0 : tile * (tile + 1) * 4,
            seed,
          });
          assertEquals(output, expected, name);
        }
      },
    ),
    15,
  );
});

everywhere("arrays", "reductions by a tree and by shuffles", (module) => {
  check(
    fc.property(
      fc.array(fc.integer({ min: -1000, max: 1000 }), { maxLength: 400, size: "max" }),
      fc.integer({ min: 1, max: 3 }),
      fc.constantFrom(32, 64, 128),
      seeds,
      (values, blocks, threads, seed) => {
        const memory = new FlatMemory();
        const total = values.reduce((sum, value) => sum + value, 0);
        const sums = new Int32Array(blocks);
        const shape = { grid: [blocks, 1, 1], block: [threads, 1, 1], seed } as const;
        const args = [memory.add(new Int32Array(values)), memory.add(sums), int(values.length)];
        launch(module, "reduce_tree", memory, args, { ...shape, shared: threads * 4 });
        assertEquals(sums.reduce((sum, value) => sum + value, 0), total);
        // These integers are exact as floats: any order of summation gives the same.
        const float = new Float32Array(1);
        const others = [memory.add(new Float32Array(values)), memory.add(float), int(values.length)];
        launch(module, "reduce_shuffle", memory, others, shape);
        assertEquals(float[0], total);
      },
    ),
    15,
  );
});

everywhere("arrays", "a histogram by atomics, in shared memory and then in device memory", (module) => {
  check(
    fc.property(
      fc.uint8Array({ maxLength: 500, size: "max" }),
      fc.integer({ min: 1, max: 3 }),
      seeds,
      (bytes, blocks, seed) => {
        const memory = new FlatMemory();
        const bins = new Uint32Array(256);
        const args = [memory.add(bytes), memory.add(bins), int(bytes.length)];
        launch(module, "histogram", memory, args, { grid: [blocks, 1, 1], block: [64, 1, 1], seed });
        const expected = new Uint32Array(256);
        for (const byte of bytes) expected[byte] = (expected[byte] ?? 0) + 1;
        assertEquals(bins, expected);
      },
    ),
    10,
  );
});

everywhere("arrays", "a vector of 16 bytes is one access", (module) => {
  const memory = new FlatMemory();
  const input = Float32Array.from({ length: 40 }, (_, i) => i);
  const output = new Float32Array(40);
  memory.log = [];
  launch(module, "scale_vectors", memory, [memory.add(input), memory.add(output), { float: 3 }, int(10)], {
    block: [32, 1, 1],
  });
  assertEquals(output, input.map((value) => value * 3));
  assertEquals(memory.log.length, 20);
  assert(memory.log.every(({ bytes }) => bytes === 16));
});

everywhere("strided", "strided copies of elements of 1, 2, 4, 8 and 16 bytes", (module) => {
  const axes = fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.nat()), { minLength: 1, maxLength: 5 });
  check(
    fc.property(axes, fc.constantFrom(1, 2, 4, 8, 16), fc.boolean(), seeds, (list, itemsize, backwards, seed) => {
      const shape = list.map(([length]) => length);
      const count = shape.reduce((product, length) => product * length, 1);
      // The source is dense in C order; the target has its axes in another order, with gaps of one element.
      const order = list.map(([, key], i) => [key, i] as const).toSorted(([a], [b]) => a - b).map(([, i]) => i);
      const from: number[] = [];
      const to: number[] = [];
      let stride = 1;
      for (let i = shape.length - 1; i >= 0; i--) {
        from[i] = stride;
        stride *= shape[i] ?? 1;
      }
      stride = 2;
      for (const axis of order) {
        to[axis] = stride;
        stride *= shape[axis] ?? 1;
      }
      const source = Uint8Array.from({ length: count * itemsize }, (_, i) => i * 7 + 1);
      const target = new Uint8Array(2 * count * itemsize);
      const memory = new FlatMemory();
      let [start, sign] = [0n, 1];
      if (backwards) {
        // From the last element down: negative strides.
        start = BigInt((count - 1) * itemsize);
        sign = -1;
      }
      const layout = new Uint8Array(8 + 3 * 48);
      const view = new DataView(layout.buffer);
      view.setInt32(0, shape.length, true);
      shape.forEach((length, i) => {
        view.setBigInt64(8 + 8 * i, BigInt(length), true);
        view.setBigInt64(56 + 8 * i, BigInt((from[i] ?? 0) * sign), true);
        view.setBigInt64(104 + 8 * i, BigInt(to[i] ?? 0), true);
      });
      const args = [memory.add(source) + start, memory.add(target), layout, BigInt(count)];
      launch(module, `copy${itemsize}`, memory, args, { grid: [2, 1, 1], block: [32, 1, 1], seed });
      const expected = new Uint8Array(target.length);
      for (let i = 0; i < count; i++) {
        let [rest, offset] = [i, 0];
        for (let axis = shape.length - 1; axis >= 0; axis--) {
          offset += (rest % (shape[axis] ?? 1)) * (to[axis] ?? 0);
          rest = Math.floor(rest / (shape[axis] ?? 1));
        }
        const at = backwards ? count - 1 - i : i;
        expected.set(source.subarray(at * itemsize, (at + 1) * itemsize), offset * itemsize);
      }
      assertEquals(target, expected);
    }),
    15,
  );
});

everywhere("convert", "floats become half, bfloat16, double and integers, and back", (module) => {
  check(
    fc.property(fc.array(fc.float({ noNaN: true }), { minLength: 1, maxLength: 100 }), seeds, (values, seed) => {
      const memory = new FlatMemory();
      const n = values.length;
      const x = new Float32Array(values);
      const [h, b] = [new Uint16Array(n), new Uint16Array(n)];
      const [d, i, u, l] = [new Float64Array(n), new Int32Array(n), new Uint8Array(n), new BigInt64Array(n)];
      const shape = { grid: [Math.ceil(n / 32), 1, 1], block: [32, 1, 1], seed } as const;
      const places = [h, b, d, i, u, l].map((array) => memory.add(array));
      launch(module, "from_float", memory, [memory.add(x), ...places, int(n)], shape);
      assertEquals(d, new Float64Array(x));
      assertEquals(i, Int32Array.from(x, (one) => Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, Math.trunc(one)))));
      const floor = (one: number): bigint =>
        one >= 2 ** 63 ? 2n ** 63n - 1n : one <= -(2 ** 63) ? -(2n ** 63n) : BigInt(Math.floor(one));
      assertEquals(l, BigInt64Array.from(x, floor));
      const halves = new Float32Array(4 * n);
      launch(module, "to_float", memory, [
        ...[h, b, d, l].map((array) => memory.add(array)),
        memory.add(halves),
        int(n),
      ], shape);
      x.forEach((one, k) => {
        const [half = NaN, bfloat = NaN, single, large] = halves.subarray(4 * k, 4 * k + 4);
        // At most half a unit in the last place, and infinity from half a unit above the largest number.
        const isNear = Math.abs(half - one) <= Math.max(Math.abs(one) * 2 ** -11, 2 ** -25);
        assert(Math.abs(one) < 65520 ? isNear : Math.abs(half) === Infinity, `${half}, not ${one}`);
        assert(Math.abs(one) > 3e38 || Math.abs(bfloat - one) <= Math.max(Math.abs(one) * 2 ** -8, 2 ** -134));
        assertEquals([single, large], [one, Math.fround(Number(l[k]))]);
      });
    }),
    20,
  );
});

everywhere("convert", "arithmetic of half and bfloat16 is rounded once", (module) => {
  for (const [kernel, fractionBits] of [["half_math", 10], ["bfloat_math", 7]] as const) {
    // Small integers over 4: sums and products are exact as doubles, and are rounded here by counting units.
    check(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: -999, max: 999 }), fc.integer({ min: 1, max: 99 })), {
          minLength: 1,
          maxLength: 40,
        }),
        (pairs) => {
          const round = (value: number): number => {
            if (value === 0) return value;
            const unit = 2 ** (Math.floor(Math.log2(Math.abs(value))) - fractionBits);
            const units = Math.floor(value / unit);
            const rest = value / unit - units;
            return (rest > 0.5 || (rest === 0.5 && units % 2 !== 0) ? units + 1 : units) * unit;
          };
          const encode = (value: number): number => {
            const view = new DataView(new ArrayBuffer(4));
            view.setFloat32(0, value);
            const word = view.getUint32(0);
            if (fractionBits === 7) return word >>> 16;
            return value === 0 ? 0 : ((word >>> 16) & 0x8000) | (((word >>> 13) & 0x3ffff) - (112 << 10));
          };
          const [a, b] = [pairs.map(([x]) => round(x / 4)), pairs.map(([, y]) => round(y / 4))];
          const memory = new FlatMemory();
          const outputs = [0, 1, 2].map(() => new Uint16Array(pairs.length));
          const inputs = [a, b].map((list) => memory.add(Uint16Array.from(list, encode)));
          launch(module, kernel, memory, [...inputs, ...outputs.map((one) => memory.add(one)), int(pairs.length)], {
            block: [64, 1, 1],
          });
          const at = (list: number[], i: number): number => list[i] ?? NaN;
          assertEquals(outputs, [
            Uint16Array.from(a, (x, i) => encode(round(x + at(b, i)))),
            Uint16Array.from(a, (x, i) => encode(round(x * at(b, i)))),
            Uint16Array.from(a, (x, i) => encode(round(x * at(b, i) + x))),
          ]);
        },
      ),
      20,
    );
  }
});

everywhere("control", "functions call themselves", (module) => {
  const memory = new FlatMemory();
  const x = Int32Array.from({ length: 40 }, (_, i) => i % 13);
  const fibonacci = (n: number): number => n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
  const expected = x.map(fibonacci);
  launch(module, "recurse", memory, [memory.add(x)], { block: [40, 1, 1], seed: 5 });
  assertEquals(x, expected);
});

everywhere("control", "constants and variables of the module, and pointers to them", (module) => {
  const memory = new FlatMemory();
  const x = new Int32Array(8);
  launch(module, "constants", memory, [memory.add(x)], { block: [8, 1, 1] });
  assertEquals([...x], [21, -7, 28, 7, 21, -7, 28, 7]);
});

everywhere("control", "every ticket of a counter is taken once, in an order that the seed determines", (module) => {
  const orders = new Set<string>();
  for (let seed = 0; seed < 12; seed++) {
    const memory = new FlatMemory();
    const x = new Int32Array(96);
    launch(module, "tickets", memory, [memory.add(x)], { grid: [3, 1, 1], block: [32, 1, 1], seed });
    orders.add(x.join());
    assertEquals(x.toSorted(), Int32Array.from({ length: 96 }, (_, i) => i + 7));
  }
  assert(orders.size > 6, `${orders.size} orders`);
});

everywhere("control", "the same seed gives the same order", (module) => {
  const run = (seed: number): string => {
    const memory = new FlatMemory();
    const x = new Int32Array(96);
    launch(module, "tickets", memory, [memory.add(x)], { grid: [3, 1, 1], block: [32, 1, 1], seed });
    return x.join();
  };
  for (let seed = 0; seed < 10; seed++) assertEquals(run(seed), run(seed));
});

everywhere("control", "arrays in local memory belong to their thread", (module) => {
  check(
    fc.property(
      fc.array(fc.integer({ min: -99, max: 99 }), { minLength: 40, maxLength: 40 }),
      fc.nat({ max: 20 }),
      seeds,
      (list, n, seed) => {
        const memory = new FlatMemory();
        const input = new Int32Array(list);
        const output = new Int32Array(33);
        launch(module, "local_array", memory, [memory.add(input), memory.add(output), int(n)], {
          block: [33, 1, 1],
          seed,
        });
        const at = (i: number): number => input[i] ?? 0;
        const expected = output.map((_, t) => {
          const values = Int32Array.from({ length: 8 }, (_, k) => at(k + t));
          values[at(t) & 7] = (values[at(t) & 7] ?? 0) + 3;
          let sum = 0;
          for (let k = 0; k < n; k++) sum += values[(k * at(0)) & 7] ?? 0;
          return sum;
        });
        assertEquals(output, expected);
      },
    ),
    10,
  );
});

everywhere("control", "a switch jumps to the case of its value", (module) => {
  const memory = new FlatMemory();
  const input = Int32Array.from({ length: 32 }, (_, i) => i * 5 - 40);
  const output = new Int32Array(40);
  output[33] = 11;
  output[36] = 13;
  launch(module, "branches", memory, [memory.add(input), memory.add(output)], { block: [32, 1, 1], seed: 3 });
  const arms: ((x: number) => number)[] = [
    () => 3,
    (x) => x * 4,
    () => 16,
    (x) => x - 1,
    (x) => x ^ 77,
    (x) => x,
    (x) => -x,
    () => 39,
  ];
  assertEquals([...output.subarray(0, 32)], [...input].map((x) => (arms[x & 15] ?? ((y) => 1000 + y))(x)));
});

everywhere("control", "votes and exchanges over a warp", (module) => {
  check(
    fc.property(fc.array(fc.integer({ min: -9, max: 120 }), { minLength: 64, maxLength: 64 }), seeds, (list, seed) => {
      const memory = new FlatMemory();
      const output = new Uint32Array(64);
      launch(module, "votes", memory, [memory.add(new Int32Array(list)), memory.add(output)], {
        block: [64, 1, 1],
        seed,
      });
      const expected = output.map((_, t) => {
        const warp = list.slice(t & 32, (t & 32) + 32);
        const ballot = warp.reduce((bits, x, lane) => bits | (x > 0 ? 1 << lane : 0), 0);
        const other = warp[(t & 31) ^ 5] ?? 0;
        return ballot ^ (Number(warp.includes(5)) << 1) ^ Number(warp.every((x) => x < 100)) ^ (other << 8);
      });
      assertEquals(output, expected);
    }),
    10,
  );
});

everywhere("control", "a lock that threads spin on lets each in once, whatever the order", (module) => {
  for (let seed = 0; seed < 16; seed++) {
    const memory = new FlatMemory();
    const value = new Int32Array(1);
    const args = [memory.add(new Int32Array(1)), memory.add(value)];
    launch(module, "spin_lock", memory, args, { grid: [2, 1, 1], block: [8, 1, 1], seed, maxInstructions: 1e7 });
    assertEquals(value[0], 16, `seed ${seed}`);
  }
});

everywhere("control", "updates without atomics get lost in some order", (module) => {
  const counts = new Set<number>();
  for (let seed = 0; seed < 24; seed++) {
    const memory = new FlatMemory();
    const value = new Int32Array(1);
    launch(module, "lost_updates", memory, [memory.add(value)], { grid: [4, 1, 1], block: [32, 1, 1], seed });
    counts.add(value[0] ?? 0);
  }
  assert(counts.has(128) && Math.min(...counts) < 128, `${[...counts]}`);
});

test("registers and shared memory that were never written hold other values in each launch", () => {
  const text = `.version 8.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 out) {
      .reg .b32 %a, %b; .reg .b64 %o; .shared .b32 s;
      ld.param.u64 %o, [out]; ld.shared.b32 %b, [s]; st.global.b32 [%o], %a; st.global.b32 [%o+4], %b; ret;
    }`;
  const seen = [1, 2].map((seed) => {
    const memory = new FlatMemory();
    const out = new Uint32Array(2);
    launch(loadPtx(text), "k", memory, [memory.add(out)], { seed });
    return out;
  });
  assert(seen[0]?.[0] !== seen[1]?.[0] && seen[0]?.[1] !== seen[1]?.[1]);
});

test("a module says how large its variables and its kernels' shared memory are", () => {
  const module = loadPtx(committedPtx("control", "sm_90"));
  assertEquals(module.globals.get("coefficients"), {
    size: 16,
    align: 4,
    init: new Uint8Array(new Int32Array([3, -1, 4, 1]).buffer),
    relocations: [],
  });
  const arrays = loadPtx(committedPtx("arrays", "sm_90"));
  assertEquals(arrays.entry("transpose_static")?.staticSharedBytes, 16 * 17 * 4);
  assertEquals(arrays.entry("transpose_dynamic")?.staticSharedBytes, 0);
  assertEquals(arrays.entry("saxpy")?.params.map(({ offset, size }) => [offset, size]), [[0, 4], [8, 8], [16, 8], [
    24,
    4,
  ]]);
  assertEquals(arrays.entry("nothing"), null);
  assertEquals(place(arrays, new FlatMemory()).size, arrays.globals.size);
});
