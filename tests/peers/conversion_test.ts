/** Our host copies convert numbers to the same values as NumPy and ml_dtypes. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { ffiPort } from "../../src/ffi/port.ts";
import { DType, type Scalar, StridedLayout } from "../../src/layout/mod.ts";
import { bytesOf, conversionOf, isInteger, type NumberType } from "../../src/copy/conversion.ts";
import { convertHost } from "../../src/copy/host_conversion.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython, TestPython } from "../support/python.ts";
import { elements, pairsOfTypes, shown } from "../support/numbers.ts";

const found = findPython("numpy", "ml_dtypes");
const missing = typeof found === "string" ? found : null;

function real(value: Scalar): number {
  return typeof value === "object" ? value.re : Number(value);
}

/**
 * Whether the peer defines the result: NumPy leaves floats that overflow an integer type undefined, and ml_dtypes
 * converts everything to float32 first, which may round twice.
 */
function isDefined(value: Scalar, from: NumberType, to: NumberType): boolean {
  const number = real(value);
  if (to.kind === "bfloat") return typeof value !== "bigint" && Object.is(Math.fround(number), number);
  if (!isInteger(to) || isInteger(from) || from.kind === "bool") return true;
  const end = 2 ** (to.kind === "int" ? to.bits - 1 : to.bits);
  const whole = Math.trunc(number);
  return whole < end && whole >= (to.kind === "int" ? -end : 0);
}

test(...needs(missing, "numbers of every type are converted as by NumPy and ml_dtypes"), () => {
  if (typeof found === "string") throw new Error(found);
  const python = TestPython.open(found);
  python.run(`
import ctypes, warnings
import numpy as np
import ml_dtypes
warnings.simplefilter("ignore")
def array(address, count, name):
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(int(address))
    return np.frombuffer(memory, dtype=dtype)
`);
  for (const { from, to } of pairsOfTypes) {
    const conversion = conversionOf(DType.from(from.name), DType.from(to.name));
    if (conversion === null) continue;
    check(
      fc.property(fc.array(elements(from), { minLength: 100, maxLength: 200 }), (drawn) => {
        const [read, written] = [DType.from(from.name), DType.from(to.name)];
        const element = new DataView(new ArrayBuffer(16));
        const values = drawn.filter((value) => {
          read.write(element, 0, value);
          return isDefined(read.read(element, 0) as Scalar, from, to); // one lane
        });
        if (values.length === 0) return;
        const count = values.length;
        const room = (size: number) => new Uint8Array(new ArrayBuffer(count * size));
        const [source, ours, theirs] = [room(bytesOf(from)), room(bytesOf(to)), room(bytesOf(to))];
        values.forEach((value, i) => read.write(new DataView(source.buffer), i * bytesOf(from), value));
        const side = (bytes: Uint8Array<ArrayBuffer>, { itemsize }: DType) => ({
          bytes,
          offset: 0,
          layout: StridedLayout.dense([count], itemsize),
        });
        convertHost(side(source, read), side(ours, written), conversion);
        const at = (bytes: Uint8Array<ArrayBuffer>, { name }: NumberType) =>
          `array("${ffiPort().addressOf(bytes.buffer)}", ${count}, "${name}")`;
        python.run(`${at(theirs, to)}[...] = ${at(source, from)}.astype(${at(theirs, to)}.dtype)`);
        const differences = values.flatMap((value, i) => {
          const [one, other] = [ours, theirs].map((bytes) =>
            shown(written.read(new DataView(bytes.buffer), i * bytesOf(to)))
          );
          return one === other ? [] : [`${from.name} ${shown(value)} to ${to.name}: ${one}, and theirs ${other}`];
        });
        assertEquals(differences, []);
      }),
      2,
    );
  }
});
