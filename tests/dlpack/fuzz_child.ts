/**
 * Malformed tensors, in a separate process. Each struct, its shape and its strides end right before an unreadable page,
 * and pointers that the struct does not vouch for point to unmapped memory: one read too many kills the process.
 *
 * Prints what was tried as JSON.
 */
import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { DlpackTensor } from "../../src/dlpack/tensor.ts";
import { ExchangeError } from "../../mod.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { check, fc } from "../support/property.ts";
import { nextCase } from "../support/fuzz.ts";
import { GuardedMemory, nowhere } from "../support/guarded_memory.ts";
import { CountingDeleter, type Kind, type RawTensor, structBytes, writeRaw } from "../support/raw_dlpack.ts";

const memory = new GuardedMemory();

function writeNumbers(values: readonly bigint[]): bigint {
  const { address, bytes } = memory.bytes(values.length * 8);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  values.forEach((value, i) => view.setBigInt64(i * 8, value, true));
  return address;
}

/**
 * A pointer to numbers: correct, NULL, misaligned, or to unmapped memory (only where it must not be read).
 */
type Pointer = "right" | "null" | "odd" | "nowhere";

interface Case {
  readonly kind: Kind;
  readonly raw: Omit<RawTensor, "shape" | "strides" | "ndim" | "deleter" | "managerContext">;
  readonly ndim: number;
  readonly shape: readonly bigint[];
  readonly strides: readonly bigint[];
  readonly shapePointer: Pointer;
  readonly stridesPointer: Pointer;
}

const wild64 = fc.oneof(
  fc.constantFrom(-1n, 1n << 31n, 1n << 32n, 1n << 52n, 1n << 53n, (1n << 63n) - 1n, -(1n << 63n), -(1n << 62n)),
  fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n }),
);
const wildU64 = fc.oneof(
  fc.constantFrom(0n, 1n, 8n, nowhere, (1n << 47n) - 1n, (1n << 63n) + 5n, (1n << 64n) - 1n, (1n << 64n) - 64n),
  fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
);

function mostly<T>(usual: fc.Arbitrary<T>, wild: fc.Arbitrary<T>, weight = 8): fc.Arbitrary<T> {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: wild });
}

const extents = mostly(fc.bigInt({ min: 0n, max: 5n }), wild64);
const steps = mostly(fc.bigInt({ min: -9n, max: 9n }), wild64);
const dimensions = mostly(
  fc.nat(5),
  fc.constantFrom(-1, -(2 ** 31), 2 ** 31 - 1, 63, 64, 65, 1000, 2 ** 20),
);
const types = mostly(
  fc.constantFrom<[number, number]>([2, 32], [0, 8], [1, 64], [5, 128], [6, 8], [4, 16], [17, 4], [15, 6], [1, 1]),
  fc.tuple(fc.nat(255), fc.nat(255)),
);

const cases: fc.Arbitrary<Case> = fc.record({
  kind: fc.constantFrom<Kind>("versioned", "legacy"),
  major: mostly(fc.constant(1), fc.constantFrom(0, 2, 3, 2 ** 31, 2 ** 32 - 1), 20),
  minor: fc.constantFrom(0, 3, 9, 2 ** 32 - 1),
  flags: mostly(fc.bigInt({ min: 0n, max: 7n }), wildU64),
  data: mostly(fc.constantFrom(0x5000n, 0x7fff_0000_0000n), wildU64, 4),
  byteOffset: mostly(fc.constantFrom(0n, 0n, 16n), wildU64, 10),
  deviceType: mostly(fc.constantFrom(1, 1, 1, 3), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), 20),
  deviceId: fc.constantFrom(0, 0, 7, -1, 2 ** 31 - 1),
  type: types,
  lanes: mostly(fc.constant(1), fc.constantFrom(0, 2, 3, 4, 0xffff)),
  ndim: dimensions,
  numbers: fc.tuple(
    fc.array(extents, { minLength: 64, maxLength: 64 }),
    fc.array(steps, { minLength: 64, maxLength: 64 }),
  ),
  pointers: fc.tuple(
    mostly(fc.constant<Pointer>("right"), fc.constantFrom<Pointer>("null", "odd", "nowhere")),
    mostly(fc.constant<Pointer>("right"), fc.constantFrom<Pointer>("null", "odd", "nowhere")),
  ),
}).map(({ kind, type: [code = 0, bits = 0], ndim, numbers: [shape, strides], pointers, ...raw }) => {
  // Axes beyond the sixth have extent 1: otherwise nearly all such tensors would be refused for their element count.
  const count = ndim < 0 || ndim > 64 ? 0 : ndim;
  const one: Case = {
    kind,
    raw: { ...raw, code, bits },
    ndim,
    shape: shape.slice(0, count).map((extent, axis) => axis > 5 ? 1n : extent),
    strides: strides.slice(0, count),
    shapePointer: pointers[0],
    stridesPointer: pointers[1],
  };
  // A tensor vouches for these pointers as long as all earlier fields are valid.
  const vouches = count > 0 && isKnown(one);
  const soften = (pointer: Pointer) => vouches && pointer === "nowhere" ? "right" : pointer;
  return { ...one, shapePointer: soften(one.shapePointer), stridesPointer: soften(one.stridesPointer) };
});

/** Bits of each code of DLPack 1.3. */
const widths: ReadonlyMap<number, readonly number[]> = new Map([
  [0, [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]],
  [1, [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]],
  [2, [16, 32, 64]],
  [3, [64]],
  [4, [16]],
  [5, [32, 64, 128]],
  [6, [1, 8]],
  ...Array.from({ length: 8 }, (_, i): [number, number[]] => [7 + i, [8]]),
  [15, [6]],
  [16, [6]],
  [17, [4]],
]);

/** Whether version, element type and device are supported. */
function isKnown({ kind, raw }: Case): boolean {
  const { major, code, bits, lanes, deviceType, flags } = raw;
  const isPadded = kind === "versioned" && (flags & 4n) !== 0n && bits < 8;
  return (kind === "legacy" || major === 1) && (widths.get(code)?.includes(bits) ?? false) && lanes >= 1 &&
    !(isPadded && lanes > 1) && (deviceType === 1 || deviceType === 3);
}

/** The exact span of the elements in bits, end exclusive, relative to `data + byte_offset`. */
function spanInBits({ kind, raw, ndim, shape, strides, stridesPointer }: Case): { min: bigint; end: bigint } | null {
  if (shape.some((extent) => extent === 0n)) return null;
  let step = 1n;
  const dense = shape.map(() => 0n);
  for (let axis = ndim - 1; axis >= 0; axis--) {
    dense[axis] = step;
    step *= shape[axis] ?? 0n;
  }
  let min = 0n;
  let max = 0n;
  (stridesPointer === "null" ? dense : strides).forEach((stride, axis) => {
    const reach = stride * ((shape[axis] ?? 0n) - 1n);
    if (reach < 0n) min += reach;
    else max += reach;
  });
  const isPadded = kind === "versioned" && (raw.flags & 4n) !== 0n;
  const bits = BigInt(raw.bits * raw.lanes);
  const size = raw.bits < 8 && raw.lanes === 1 && !isPadded ? bits : (bits + 7n) / 8n * 8n;
  return { min: min * size, end: (max + 1n) * size };
}

/** Whether a pointer that must be read is misaligned. */
function isOdd({ ndim, shapePointer, stridesPointer }: Case): boolean {
  return ndim > 0 && (shapePointer === "odd" || stridesPointer === "odd");
}

/** Whether a tensor is entirely valid, and not near any limit. */
function isPlainlyRight(one: Case): boolean {
  if (!isKnown(one) || one.ndim < 0 || one.ndim > 64 || (one.ndim > 0 && one.shapePointer === "null")) return false;
  if (isOdd(one)) return false;
  if (one.shape.some((extent) => extent < 0n || extent > 100n)) return false;
  if (one.strides.some((stride) => stride < -100n || stride > 100n)) return false;
  const span = spanInBits(one);
  if (span === null) return true;
  const start = one.raw.data + one.raw.byteOffset + span.min / 8n - 1n;
  return one.raw.data !== 0n && start > 0n && start + (span.end - span.min) / 8n + 2n < 1n << 64n;
}

/** Fails unless a view claims memory in the address space for all of the tensor's elements, and no more. */
function assertSafe(one: Case, view: StridedMemoryView): void {
  assert(isKnown(one) && !isOdd(one) && one.ndim >= 0 && one.ndim <= 64 && one.shape.every((extent) => extent >= 0n));
  assertEquals(view.shape.map(BigInt), [...one.shape]);
  if (one.stridesPointer !== "null" && one.ndim > 0) assertEquals(view.strides.map(BigInt), [...one.strides]);
  assertEquals(view.readonly, one.kind === "versioned" && (one.raw.flags & 1n) !== 0n);
  const span = spanInBits(one);
  const { ptr, size } = view.buffer;
  if (span === null) {
    assertEquals([ptr, size], [0n, 0]);
    return;
  }
  const first = (one.raw.data + one.raw.byteOffset) * 8n;
  const [start, end] = [first + span.min, first + span.end];
  assert(ptr > 0n && ptr + BigInt(size) <= 1n << 64n, `${size} bytes at ${ptr}`);
  assert(ptr * 8n <= start && start - ptr * 8n < 8n, "the claim begins with the byte of the lowest element");
  const claimed = (ptr + BigInt(size)) * 8n;
  assert(end <= claimed && claimed - end < 8n, "the claim ends with the byte of the highest element");
  assertEquals(view.ptr, one.raw.data + one.raw.byteOffset);
}

using deleter = new CountingDeleter();
const tally = { taken: 0, refused: 0, plain: 0 };

check(
  fc.property(cases, (one) => {
    nextCase(one);
    memory.reset();
    const { address: ptr } = memory.bytes(structBytes[one.kind]);
    const pointers = {
      right: { shape: writeNumbers(one.shape), strides: writeNumbers(one.strides) },
      null: { shape: 0n, strides: 0n },
      odd: { shape: nowhere + 4n, strides: nowhere + 1n },
      nowhere: { shape: nowhere, strides: nowhere },
    };
    writeRaw(ptr, one.kind, {
      ...one.raw,
      ndim: one.ndim,
      managerContext: nowhere,
      deleter: deleter.address,
      shape: pointers[one.shapePointer].shape,
      strides: pointers[one.stridesPointer].strides,
    });
    const tensor = new DlpackTensor(ptr, one.kind === "versioned" ? [1, 3] : null, { isReleased: () => false });
    deleter.calls.clear();
    let view: StridedMemoryView;
    try {
      view = StridedMemoryView.fromDlpack(tensor);
    } catch (error) {
      assertInstanceOf(error, ExchangeError, String(error));
      assert(!isPlainlyRight(one), `${error.message} (for a valid tensor)`);
      assertEquals([tensor.take(), deleter.calls.size], [ptr, 0], "nothing is taken");
      tally.refused++;
      return;
    }
    assertSafe(one, view);
    view.close();
    assertEquals(deleter.callsFor(ptr), 1);
    tally.taken++;
    if (isPlainlyRight(one)) tally.plain++;
  }),
  16_000,
);

// For a tensor of another major version only the version is read: the fields behind `flags` would lie in the unreadable
// page.
for (const major of [0, 2, 3, 2 ** 32 - 1]) {
  const { address: ptr, bytes } = memory.bytes(32);
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(0, major, true);
  const tensor = new DlpackTensor(ptr, [major, 0], { isReleased: () => false });
  let message = "";
  try {
    StridedMemoryView.fromDlpack(tensor);
  } catch (error) {
    assertInstanceOf(error, ExchangeError);
    message = error.message;
  }
  assertEquals(message.startsWith(`Cannot import a tensor of DLPack ${major}.`), true, message);
  tensor.take();
}

// Addresses that cannot hold a struct are not read.
for (const ptr of [0n, nowhere + 1n, nowhere + 4n]) {
  const tensor = new DlpackTensor(ptr, [1, 3], { isReleased: () => false });
  let refused = false;
  try {
    StridedMemoryView.fromDlpack(tensor);
  } catch (error) {
    assertInstanceOf(error, ExchangeError, String(error));
    refused = true;
  }
  assert(refused, `a tensor at ${ptr}`);
  tensor.take();
}
console.log(JSON.stringify(tally));
