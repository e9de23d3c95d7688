/**
 * Single instructions: a kernel that loads three operands, executes one line and stores the result, once per thread.
 *
 * @module
 */
import { loadPtx } from "../../../src/ptx/mod.ts";
import { fc } from "../property.ts";
import { FlatMemory, launch } from "./harness.ts";

/** Operands as bits, and the result as bits. */
export type Case = readonly [a: bigint, b: bigint, c: bigint];

/** Types of the result and of a, b and c: `pred` is allowed for the result. */
export type Types = readonly [d: string, a: string, b?: string, c?: string];

function bitsOf(type: string): number {
  return Number(/\d+/.exec(type)?.[0]);
}

/** The header of a module. */
export const heading = ".version 8.0\n.target sm_90\n.address_size 64\n";

/** A kernel around a line that writes %d from %a, %b and %c; %p and %q are scratch predicates. */
export function around(line: string, [d, a, b = a, c = a]: Types, name = "k"): string {
  const raw = (type: string): string => `b${Math.max(16, bitsOf(type))}`;
  const result = d === "pred"
    ? ["selp.b32 %w, 1, 0, %d;", "st.global.b32 [%out], %w;"]
    : [`st.global.${raw(d)} [%out], %d;`];
  return [
    `.visible .entry ${name}(.param .u64 k_in, .param .u64 k_out, .param .u32 k_n)`,
    "{",
    `.reg .${d === "pred" ? d : raw(d)} %d; .reg .${raw(a)} %a; .reg .${raw(b)} %b; .reg .${raw(c)} %c;`,
    ".reg .b32 %i, %w, %n; .reg .b64 %in, %out; .reg .pred %p, %q;",
    "mov.u32 %i, %ctaid.x;",
    "mov.u32 %w, %tid.x;",
    "mad.lo.u32 %i, %i, 64, %w;",
    "ld.param.u32 %n, [k_n];",
    "setp.ge.u32 %p, %i, %n;",
    "@%p exit;",
    "ld.param.u64 %in, [k_in];",
    "ld.param.u64 %out, [k_out];",
    "mad.wide.u32 %in, %i, 24, %in;",
    "mad.wide.u32 %out, %i, 8, %out;",
    `ld.global.${raw(a)} %a, [%in];`,
    `ld.global.${raw(b)} %b, [%in+8];`,
    `ld.global.${raw(c)} %c, [%in+16];`,
    line,
    ...result,
    "ret;",
    "}",
  ].join("\n");
}

/** Executes a line for every case; results are the bits of %d, 0 or 1 for a predicate. */
export function execute(line: string, types: Types, cases: readonly Case[]): bigint[] {
  const memory = new FlatMemory();
  const input = new BigUint64Array(cases.flat());
  const output = new BigUint64Array(cases.length);
  const args = [memory.add(input), memory.add(output), { int: cases.length }];
  launch(loadPtx(heading + around(line, types)), "k", memory, args, {
    grid: [Math.ceil(cases.length / 64), 1, 1],
    block: [64, 1, 1],
  });
  return [...output];
}

/** Bits of an operand, often the edges of some width or format. */
export function anyBits(bits: number): fc.Arbitrary<bigint> {
  const width = BigInt(bits);
  const edges = new Set<bigint>();
  for (const power of [0n, 1n, 5n, 8n, 15n, 16n, 24n, 31n, 32n, 33n, 52n, 53n, 63n, 64n]) {
    for (const near of [-1n, 0n, 1n]) {
      edges.add(BigInt.asUintN(bits, (1n << power) + near));
      edges.add(BigInt.asUintN(bits, -(1n << power) + near));
    }
  }
  return fc.oneof(
    fc.constantFrom(...edges),
    fc.bigInt({ min: 0n, max: (1n << width) - 1n }),
    fc.bigInt({ min: 0n, max: 40n }),
  );
}

/** Lists of cases for operands of these widths in bits. */
export function anyCases(a: number, b: number = a, c: number = a): fc.Arbitrary<Case[]> {
  return fc.array(fc.tuple(anyBits(a), anyBits(b), anyBits(c)), { minLength: 1, maxLength: 150, size: "max" });
}
