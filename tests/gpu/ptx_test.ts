/**
 * The interpreter against a GPU: the same PTX, the same bytes. What PTX calls approximate is close, everything else
 * equal.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  type CudaStream,
  DeviceMemoryResource,
  HostMemoryResource,
  type KernelArg,
  type MemoryBuffer,
} from "../../mod.ts";
import { loadPtx } from "../../src/ptx/mod.ts";
import { type Argument, FlatMemory, launch, type Shape } from "../support/ptx/harness.ts";
import { anyBits, around, type Case, execute, heading, type Types } from "../support/ptx/instruction.ts";
import { committedPtx, type sources } from "../support/ptx/nvrtc.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { fc, scaled } from "../support/property.ts";

const missing = missingGpus();

/** An instruction and its operand types. */
type Line = readonly [line: string, types: Types];

function widthOf(type: string): number {
  return Number(/\d+/.exec(type)?.[0]);
}

function integerLines(): Line[] {
  const lines: Line[] = [];
  for (const type of ["u16", "s16", "u32", "s32", "u64", "s64"]) {
    const bits = widthOf(type);
    for (const name of ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"]) {
      lines.push([`${name}.${type} %d, %a, %b;`, [type, type]]);
    }
    for (const name of ["mad.lo", "mad.hi", "sad"]) lines.push([`${name}.${type} %d, %a, %b, %c;`, [type, type]]);
    lines.push([`shr.${type} %d, %a, %b;`, [type, type, "u32"]], [`shl.b${bits} %d, %a, %b;`, [type, type, "u32"]]);
    for (const name of ["eq", "ne", "lt", "le", "gt", "ge"]) {
      lines.push([`setp.${name}.${type} %d, %a, %b;`, ["pred", type]]);
    }
    if (bits < 64) lines.push([`mul.wide.${type} %d, %a, %b;`, [`${type[0]}${bits * 2}`, type]]);
    if (bits > 16) {
      lines.push([`bfe.${type} %d, %a, %b, %c;`, [type, type, "u32", "u32"]], [`bfind.${type} %d, %a;`, ["u32", type]]);
      lines.push([`bfind.shiftamt.${type} %d, %a;`, ["u32", type]]);
      lines.push([`add.cc.${type} %d, %a, %b; addc.${type} %d, %c, 0;`, [type, type]]);
      lines.push([`sub.cc.${type} %d, %a, %b; subc.cc.${type} %d, %c, %a; addc.${type} %d, %d, 0;`, [type, type]]);
      lines.push([`mad.lo.cc.${type} %d, %a, %b, %c; madc.hi.${type} %d, %a, %b, 0;`, [type, type]]);
    }
    if (type.startsWith("s")) lines.push([`abs.${type} %d, %a;`, [type, type]], [`neg.${type} %d, %a;`, [type, type]]);
  }
  for (const line of ["add.u16x2", "min.u16x2", "max.s16x2", "min.relu.s16x2", "add.s16x2"]) {
    lines.push([`${line} %d, %a, %b;`, ["b32", "b32"]]);
  }
  for (const opcode of ["vabsdiff2", "vabsdiff4"]) {
    lines.push([`${opcode}.u32.u32.u32 %d, %a, %b, %c;`, ["u32", "u32"]]);
    lines.push([`${opcode}.u32.u32.u32.add %d, %a, %b, %c;`, ["u32", "u32"]]);
  }
  for (const type of ["b16", "b32", "b64"]) {
    for (const name of ["and", "or", "xor"]) lines.push([`${name}.${type} %d, %a, %b;`, [type, type]]);
    lines.push([`not.${type} %d, %a;`, [type, type]], [`cnot.${type} %d, %a;`, [type, type]]);
  }
  for (const type of ["b32", "b64"]) {
    for (const name of ["popc", "clz"]) lines.push([`${name}.${type} %d, %a;`, ["u32", type]]);
    lines.push([`brev.${type} %d, %a;`, [type, type]]);
    lines.push([`bfi.${type} %d, %a, %b, %c, 9;`, [type, type, type, "u32"]]);
    lines.push([`bfi.${type} %d, %a, %b, 5, %c;`, [type, type, type, "u32"]]);
  }
  for (const mode of ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"]) {
    lines.push([`prmt.b32${mode} %d, %a, %b, %c;`, ["b32", "b32"]]);
  }
  for (const mode of ["l.wrap", "l.clamp", "r.wrap", "r.clamp"]) {
    lines.push([`shf.${mode}.b32 %d, %a, %b, %c;`, ["b32", "b32"]]);
  }
  for (const table of [0x80, 0x96, 0xca, 0x17]) lines.push([`lop3.b32 %d, %a, %b, %c, ${table};`, ["b32", "b32"]]);
  for (const types of ["u32.u32", "u32.s32", "s32.u32", "s32.s32"]) {
    lines.push([`dp4a.${types} %d, %a, %b, %c;`, ["b32", "b32"]], [`dp2a.lo.${types} %d, %a, %b, %c;`, ["b32", "b32"]]);
    lines.push([`dp2a.hi.${types} %d, %a, %b, %c;`, ["b32", "b32"]]);
  }
  for (const type of ["u32", "s32"]) {
    lines.push([`mul24.lo.${type} %d, %a, %b;`, [type, type]], [`mul24.hi.${type} %d, %a, %b;`, [type, type]]);
    lines.push([`szext.wrap.${type} %d, %a, %b;`, [type, type]], [`szext.clamp.${type} %d, %a, %b;`, [type, type]]);
  }
  lines.push(["add.sat.s32 %d, %a, %b;", ["s32", "s32"]], ["sub.sat.s32 %d, %a, %b;", ["s32", "s32"]]);
  lines.push(["mad.hi.sat.s32 %d, %a, %b, %c;", ["s32", "s32"]]);
  lines.push(["bmsk.wrap.b32 %d, %a, %b;", ["b32", "b32"]], ["bmsk.clamp.b32 %d, %a, %b;", ["b32", "b32"]]);
  return lines;
}

function floatLines(): Line[] {
  const lines: Line[] = [];
  for (const type of ["f32", "f64"]) {
    for (const mode of ["rn", "rz", "rm", "rp"]) {
      for (const ftz of type === "f32" ? ["", ".ftz"] : [""]) {
        for (const name of ["add", "sub", "mul", "div"]) {
          lines.push([`${name}.${mode}${ftz}.${type} %d, %a, %b;`, [type, type]]);
        }
        lines.push([`fma.${mode}${ftz}.${type} %d, %a, %b, %c;`, [type, type]]);
        lines.push([`rcp.${mode}${ftz}.${type} %d, %a;`, [type, type]]);
        lines.push([`sqrt.${mode}${ftz}.${type} %d, %a;`, [type, type]]);
      }
    }
    lines.push([`copysign.${type} %d, %a, %b;`, [type, type]]);
    for (const what of ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]) {
      lines.push([`testp.${what}.${type} %d, %a;`, ["pred", type]]);
    }
  }
  lines.push(["add.sat.f32 %d, %a, %b;", ["f32", "f32"]], ["fma.rn.sat.f32 %d, %a, %b, %c;", ["f32", "f32"]]);
  lines.push(["min.ftz.f32 %d, %a, %b;", ["f32", "f32"]], ["abs.ftz.f32 %d, %a;", ["f32", "f32"]]);
  lines.push(["neg.ftz.f32 %d, %a;", ["f32", "f32"]], ["max.xorsign.abs.f32 %d, %a, %b;", ["f32", "f32"]]);
  lines.push(["setp.lt.ftz.f32 %d, %a, %b;", ["pred", "f32"]], ["set.gtu.u32.f32 %d, %a, %b;", ["u32", "f32"]]);
  lines.push(["slct.b32.s32 %d, %a, %b, %c;", ["b32", "b32"]], ["slct.b32.f32 %d, %a, %b, %c;", ["b32", "b32"]]);
  for (const type of ["f16", "bf16"]) {
    for (const name of ["add", "sub", "mul"]) lines.push([`${name}.rn.${type} %d, %a, %b;`, [type, type]]);
    lines.push([`fma.rn.${type} %d, %a, %b, %c;`, [type, type]], [`fma.rn.relu.${type} %d, %a, %b, %c;`, [type, type]]);
    lines.push([`add.${type}x2 %d, %a, %b;`, ["b32", "b32"]], [`fma.rn.${type}x2 %d, %a, %b, %c;`, ["b32", "b32"]]);
    lines.push([`max.${type}x2 %d, %a, %b;`, ["b32", "b32"]], [`min.NaN.${type}x2 %d, %a, %b;`, ["b32", "b32"]]);
  }
  lines.push(["add.sat.f16 %d, %a, %b;", ["f16", "f16"]], ["mul.ftz.f16 %d, %a, %b;", ["f16", "f16"]]);
  lines.push(["fma.rn.ftz.f16 %d, %a, %b, %c;", ["f16", "f16"]], ["add.ftz.f16x2 %d, %a, %b;", ["b32", "b32"]]);
  lines.push(["mul.ftz.f16x2 %d, %a, %b;", ["b32", "b32"]], ["neg.f16x2 %d, %a;", ["b32", "b32"]]);
  for (const type of ["f16", "bf16"]) {
    for (const name of ["lt", "neu", "nan"]) {
      lines.push([`set.${name}.${type}.${type} %d, %a, %b;`, [type, type]]);
      lines.push([`set.${name}.u16.${type} %d, %a, %b;`, ["u16", type]]);
      lines.push([`set.${name}.${type}x2.${type}x2 %d, %a, %b;`, ["b32", "b32"]]);
      lines.push([`set.${name}.u32.${type}x2 %d, %a, %b;`, ["b32", "b32"]]);
      lines.push([`setp.${name}.${type}x2 %q|%d, %a, %b;`, ["pred", "b32"]]);
    }
  }
  for (const type of ["f16", "bf16", "f32", "f64"]) {
    for (const name of ["min", "max"]) lines.push([`${name}.${type} %d, %a, %b;`, [type, type]]);
    if (type !== "f64") lines.push([`min.NaN.${type} %d, %a, %b;`, [type, type]]);
    for (const name of ["abs", "neg"]) lines.push([`${name}.${type} %d, %a;`, [type, type]]);
    for (const name of ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]) {
      lines.push([`setp.${name}.${type} %d, %a, %b;`, ["pred", type]]);
    }
  }
  return lines;
}

/** Whether a type holds all integers of another: then there is nothing to saturate. */
function holdsAll(to: string, from: string): boolean {
  if (to.startsWith("u") && from.startsWith("s")) return false;
  const gained = to.startsWith("s") && from.startsWith("u") ? 1 : 0;
  return widthOf(to) - gained >= widthOf(from);
}

function conversionLines(): Line[] {
  const lines: Line[] = [];
  const integers = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
  const register = (type: string): string => widthOf(type) === 8 ? `${type[0]}16` : type;
  for (const to of integers) {
    for (const from of integers) {
      lines.push([`cvt.${to}.${from} %d, %a;`, [register(to), register(from)]]);
      if (!holdsAll(to, from)) lines.push([`cvt.sat.${to}.${from} %d, %a;`, [register(to), register(from)]]);
    }
    for (const from of ["f16", "f32", "f64"]) {
      for (const mode of ["rni", "rzi", "rmi", "rpi"]) {
        lines.push([`cvt.${mode}.${to}.${from} %d, %a;`, [register(to), from]]);
      }
    }
    for (const float of ["f16", "f32", "f64"]) {
      for (const mode of ["rn", "rz", "rm", "rp"]) {
        lines.push([`cvt.${mode}.${float}.${to} %d, %a;`, [float, register(to)]]);
      }
    }
  }
  for (const mode of ["rn", "rz", "rm", "rp"]) {
    lines.push([`cvt.${mode}.f32.f64 %d, %a;`, ["f32", "f64"]], [`cvt.${mode}.ftz.f32.f64 %d, %a;`, ["f32", "f64"]]);
    lines.push([`cvt.${mode}.f16.f32 %d, %a;`, ["f16", "f32"]], [`cvt.${mode}.f16.f64 %d, %a;`, ["f16", "f64"]]);
    lines.push([`cvt.${mode}i.f32.f32 %d, %a;`, ["f32", "f32"]], [`cvt.${mode}i.f64.f64 %d, %a;`, ["f64", "f64"]]);
  }
  for (const mode of ["rn", "rz"]) {
    lines.push([`cvt.${mode}.bf16.f32 %d, %a;`, ["bf16", "f32"]], [`cvt.${mode}.f16x2.f32 %d, %a, %b;`, [
      "b32",
      "f32",
    ]]);
    lines.push([`cvt.${mode}.bf16x2.f32 %d, %a, %b;`, ["b32", "f32"]]);
    lines.push([`cvt.${mode}.relu.f16.f32 %d, %a;`, ["f16", "f32"]]);
  }
  lines.push(["cvt.f64.f32 %d, %a;", ["f64", "f32"]], ["cvt.f32.f16 %d, %a;", ["f32", "f16"]]);
  lines.push(["cvt.f32.bf16 %d, %a;", ["f32", "bf16"]], ["cvt.f64.f16 %d, %a;", ["f64", "f16"]]);
  lines.push(["cvt.ftz.f64.f32 %d, %a;", ["f64", "f32"]], ["cvt.sat.f32.f32 %d, %a;", ["f32", "f32"]]);
  lines.push(["cvt.rzi.ftz.s32.f32 %d, %a;", ["s32", "f32"]], ["cvt.rn.sat.f32.s32 %d, %a;", ["f32", "s32"]]);
  return lines;
}

/** Results just below the smallest normal number, which some directions round up to it. */
const singleEdges: readonly Case[] = [0x00ffffffn, 0x80ffffffn, 0x00800001n, 0x80800001n].flatMap((a) =>
  [0x3f7ffffen, 0x3f000000n, 0x40000000n, 0xbf800001n, 0x3f7fffffn, 0x807fffffn, 0x00800000n].map((
    b,
  ): Case => [a, b, 0n])
);

/** The same in binary16, alone and packed with another number. */
const halfEdges: readonly Case[] = [0x0401n, 0x8401n, 0x3c000401n, 0x04018401n].flatMap((a) =>
  [0x3bfen, 0xbbfen, 0x3bfe3bfen, 0x38003bfen].map((b): Case => [a, b, 0n])
);

/** Several NaNs, and a number that binary32 rounds up to its smallest normal one. */
const doubleEdges: readonly Case[] = [
  ...[0x7ff0000000000001n, 0xfff8000000000002n, 0x3ff0000000000000n].flatMap((a) =>
    [0x7ff8000000000004n, 0xfff0000000000008n, 0x4000000000000000n].flatMap((b) =>
      [0x7ff8000000000010n, 0xfff8000000000020n, 0n].map((c): Case => [a, b, c])
    )
  ),
  [0x380fffffffffffffn, 0xb80fffffffffffffn, 0n],
];

/** Operands: edges of integers and floats, numbers around one, and anything. */
function casesFor([, [, a, b = a, c = a]]: Line): Case[] {
  const one = (type: string): fc.Arbitrary<bigint> => {
    const bits = widthOf(type);
    const fraction = type === "bf16" ? 7 : { 16: 10, 32: 23, 64: 52 }[bits] ?? 0;
    const bias = (1n << BigInt(bits - 2 - fraction)) - 1n;
    const near = fc.tuple(fc.bigInt({ min: -30n, max: 66n }), anyBits(fraction), fc.boolean()).map(
      ([exponent, low, negative]) => {
        const field = (bias + exponent < 0n ? 0n : bias + exponent) << BigInt(fraction);
        return BigInt.asUintN(bits - 1, field | low) | (negative ? 1n << BigInt(bits - 1) : 0n);
      },
    );
    const special = fc.constantFrom(...[0n, 1n, 2n * bias + 1n].flatMap((field) => {
      const code = field << BigInt(fraction);
      return [code, code + 1n, code | (1n << BigInt(fraction - 1)), code | (1n << BigInt(bits - 1))];
    }));
    return fc.oneof(anyBits(bits), near, special);
  };
  return [
    ...fc.sample(fc.tuple(one(a), one(b), one(c)), scaled(256)),
    ...(a === "f64" ? doubleEdges : singleEdges),
    ...halfEdges,
  ]
    .map((
      [x, y, z],
    ): Case => [BigInt.asUintN(widthOf(a), x), BigInt.asUintN(widthOf(b), y), BigInt.asUintN(widthOf(c), z)]);
}

/** Copies arrays to the device, runs work on their addresses, and copies them back. */
function onDevice(
  stream: CudaStream,
  arrays: readonly Uint8Array[],
  work: (addresses: readonly bigint[]) => void,
): void {
  const { device } = stream;
  const [pool, host] = [new DeviceMemoryResource(device), new HostMemoryResource()];
  const buffers: [MemoryBuffer, MemoryBuffer][] = arrays.map((bytes) => {
    const pair: [MemoryBuffer, MemoryBuffer] = [pool.allocate(bytes.length, { stream }), host.allocate(bytes.length)];
    pair[1].bytes().set(bytes);
    pair[0].copyFrom(pair[1], { stream });
    return pair;
  });
  work(buffers.map(([there]) => there.ptr));
  buffers.forEach(([there, here]) => there.copyTo(here, { stream }));
  stream.synchronize();
  buffers.forEach(([there, here], i) => {
    arrays[i]?.set(here.bytes());
    there.close();
    here.close();
  });
}

/** Executes lines on a GPU; results are the bits of each %d. */
function executeOnGpu(lines: readonly Line[], cases: readonly (readonly Case[])[]): bigint[][] {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using stream = device.createStream();
  const text = heading + lines.map(([line, types], i) => around(`{ ${line} }`, types, `k${i}`)).join("\n");
  using program = device.loadPtx(text);
  return lines.map((_, i) => {
    const list = cases[i] ?? [];
    const input = new Uint8Array(new BigUint64Array(list.flat()).buffer);
    const output = new Uint8Array(list.length * 8);
    onDevice(stream, [input, output], ([from = 0n, to = 0n]) => {
      program.kernel(`k${i}`).launch(stream, Math.ceil(list.length / 64), 64, [from, to, ["int32", list.length]]);
    });
    return [...new BigUint64Array(output.buffer)];
  });
}

/**
 * What PTX promises of a result. It promises nothing about the NaN that `abs` and `neg` return: the same GPU keeps the
 * operand's bits, makes it quiet or returns the type's one NaN, depending on what the instruction is fused with.
 */
function promised([line, [type]]: Line, result: bigint): bigint {
  if (!/^(abs|neg)\./.test(line)) return result;
  const bits = type.startsWith("b32") ? 16 : widthOf(type);
  const fraction = line.includes(".bf16") ? 7n : { 16: 10n, 32: 23n, 64: 52n }[bits] ?? 0n;
  const infinity = ((1n << BigInt(bits - 1)) - 1n) >> fraction << fraction;
  let all = 0n;
  for (let at = 0n; at < BigInt(widthOf(type)); at += BigInt(bits)) {
    const lane = BigInt.asUintN(bits, result >> at);
    const isNan = BigInt.asUintN(bits - 1, lane) > infinity;
    all |= (isNan ? infinity + 1n : lane) << at;
  }
  return all;
}

function compare(lines: readonly Line[]): void {
  const cases = lines.map(casesFor);
  const real = executeOnGpu(lines, cases);
  const differences: string[] = [];
  lines.forEach(([line, types], i) => {
    const list = cases[i] ?? [];
    const wrong = execute(line, types, list).flatMap((computed, k) => {
      const result = promised([line, types], computed);
      const gpu = promised([line, types], real[i]?.[k] ?? -1n);
      if (result === gpu) return [];
      const operands = list[k]?.map((bits) => bits.toString(16)).join(" ");
      return [`${line} of ${operands}: GPU ${gpu.toString(16)}, interpreter ${result.toString(16)}`];
    });
    if (wrong.length > 0) differences.push(`${wrong.length} of ${list.length}: ${wrong[0]}`);
  });
  assertEquals(differences.join("\n"), "");
}

test(...needs(missing, "integer instructions give a GPU's bits"), () => compare(integerLines()));
test(...needs(missing, "floating-point instructions give a GPU's bits"), () => compare(floatLines()));
test(...needs(missing, "conversions give a GPU's bits"), () => compare(conversionLines()));

test(...needs(missing, "approximations are near a GPU's"), () => {
  const lines = ["rcp", "sqrt", "rsqrt", "lg2", "ex2", "sin", "cos", "tanh"].map((name): Line => [
    `${name}.approx.f32 %d, %a;`,
    ["f32", "f32"],
  ]);
  // Between 1/4 and 4, where each of them is accurate to some bits.
  const inputs = fc.sample(fc.integer({ min: 0x3e800000, max: 0x40800000 }), 500);
  const cases = lines.map(() => inputs.map((bits): Case => [BigInt(bits), 0n, 0n]));
  const real = executeOnGpu(lines, cases);
  const toFloat = (bits: bigint): number => {
    const view = new DataView(new ArrayBuffer(4));
    view.setUint32(0, Number(bits));
    return view.getFloat32(0);
  };
  lines.forEach(([line, types], i) => {
    execute(line, types, cases[i] ?? []).forEach((result, k) => {
      const [one, other] = [toFloat(result), toFloat(real[i]?.[k] ?? 0n)];
      assert(Math.abs(one - other) <= 2 ** -10 * Math.abs(one) + 2 ** -18, `${line}: ${one}, GPU ${other}`);
    });
  });
});

/** Runs a committed kernel in both places on copies of the same arrays and compares all bytes. */
function sameBytes(
  source: (typeof sources)[number],
  name: string,
  arrays: readonly ArrayBufferView[],
  args: (addresses: readonly bigint[]) => Argument[],
  shape: Shape,
): void {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using stream = device.createStream();
  const text = committedPtx(source, "sm_90").replace(/^\.version .*$/m, ".version 8.0");
  using program = device.loadPtx(text);
  const copies = (): Uint8Array[] =>
    arrays.map((one) => new Uint8Array(one.buffer, one.byteOffset, one.byteLength).slice());
  const [real, simulated] = [copies(), copies()];
  onDevice(stream, real, (addresses) => {
    const passed = args(addresses).map((argument): KernelArg => {
      if (typeof argument === "bigint") return argument;
      if ("int" in argument) return ["int32", argument.int];
      if ("float" in argument) return ["float32", argument.float];
      throw new TypeError("a struct");
    });
    const { grid = [1, 1, 1], block = [1, 1, 1], shared = 0 } = shape;
    program.kernel(name).launch(stream, grid, block, passed, { sharedBytes: shared });
  });
  const memory = new FlatMemory();
  launch(loadPtx(text), name, memory, args(simulated.map((bytes) => memory.add(bytes))), shape);
  assertEquals(simulated, real, name);
}

test(...needs(missing, "kernels leave the same bytes"), () => {
  const int = (number: number): { int: number } => ({ int: number });
  const [n, width, height] = [5000, 77, 50];
  const floats = (count: number): Float32Array =>
    Float32Array.from({ length: count }, () => (Math.random() - 0.5) * 1e6);
  const ints = (count: number): Int32Array => Int32Array.from({ length: count }, () => Math.random() * 2 ** 32);
  const pointers = (...more: Argument[]) => (addresses: readonly bigint[]): Argument[] => [...addresses, ...more];
  const line = { grid: [20, 1, 1], block: [256, 1, 1] } as const;
  sameBytes("arrays", "saxpy", [floats(n), floats(n)], (all) => [{ float: 1.7 }, ...all, int(n)], line);
  const transpose = [floats(width * height), floats(width * height)];
  sameBytes("arrays", "transpose_static", transpose, pointers(int(width), int(height)), {
    grid: [5, 4, 1],
    block: [16, 4, 1],
  });
  const tile = { grid: [10, 7, 1], block: [8, 8, 1], shared: 9 * 8 * 4 } as const;
  sameBytes("arrays", "transpose_dynamic", transpose, pointers(int(width), int(height)), tile);
  sameBytes("arrays", "reduce_tree", [ints(n), ints(20)], pointers(int(n)), { ...line, shared: 1024 });
  // One block, so that the floats are added in the same order.
  sameBytes("arrays", "reduce_shuffle", [floats(n), new Float32Array(1)], pointers(int(n)), { block: [256, 1, 1] });
  sameBytes("arrays", "histogram", [ints(n / 4), new Uint32Array(256)], pointers(int(n)), line);
  sameBytes("arrays", "scale_vectors", [floats(n), floats(n)], pointers({ float: 3.3 }, int(n / 4)), line);
  const halves = [0, 1, 2, 3, 4].map(() => Uint16Array.from({ length: n }, () => Math.random() * 65536));
  sameBytes("convert", "half_math", halves, pointers(int(n)), line);
  sameBytes("convert", "bfloat_math", halves, pointers(int(n)), line);
  const outputs = [2, 2, 8, 4, 1, 8].map((itemsize) => new Uint8Array(n * itemsize));
  sameBytes("convert", "from_float", [floats(n), ...outputs], pointers(int(n)), line);
  sameBytes("control", "votes", [ints(64), ints(64)], pointers(), { block: [64, 1, 1] });
  sameBytes("control", "recurse", [Int32Array.from({ length: 32 }, (_, i) => i % 15)], pointers(), {
    block: [32, 1, 1],
  });
  sameBytes("control", "local_array", [ints(40), ints(33)], pointers(int(9)), { block: [33, 1, 1] });
  sameBytes("control", "branches", [ints(32), ints(40)], pointers(), { block: [32, 1, 1] });
});
