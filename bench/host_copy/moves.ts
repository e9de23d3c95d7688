/**
 * Copies between layouts of one type in host memory: the cases and their goals.
 *
 * @module
 */
import { slice, StridedMemoryView } from "../../mod.ts";
import { newArrayBuffer } from "../../src/native/mod.ts";

/** A copy, and how long it may take, as a multiple of NumPy's time. */
export interface HostCase {
  readonly name: string;
  readonly goal: number;
  /** Allocates the arrays, when it is the case's turn. */
  readonly make: () => {
    /** Copies, `copies` times. */
    readonly run: () => void;
    readonly copies: number;
    /** What the peer is to do. */
    readonly question: readonly [kind: string, spec: object];
  };
}

/** A copy: the source's memory seen through `from`, to an array in C order or one seen through `to`. */
interface Pattern {
  readonly type: keyof typeof types;
  /** Shape of the source's memory. */
  readonly shape: readonly number[];
  readonly from?: (view: StridedMemoryView) => StridedMemoryView;
  /** Shape of the destination's memory, if it differs from that of `from`. */
  readonly toShape?: readonly number[];
  readonly to?: (view: StridedMemoryView) => StridedMemoryView;
}

const types = { u8: Uint8Array, u16: Uint16Array, f32: Float32Array, f64: Float64Array } as const;

function array(type: keyof typeof types | "c128", shape: readonly number[]): StridedMemoryView {
  const count = shape.reduce((product, extent) => product * extent, 1);
  if (type === "c128") {
    const floats = StridedMemoryView.fromTypedArray(new Float64Array(newArrayBuffer(count * 16)).fill(1));
    return StridedMemoryView.fromBuffer(floats.buffer, { shape, dtype: "complex128" });
  }
  const TypedArray = types[type];
  // NumPy's large arrays are on large pages as well.
  const elements = new TypedArray(newArrayBuffer(count * TypedArray.BYTES_PER_ELEMENT)).fill(1);
  return StridedMemoryView.fromTypedArray(elements, { shape });
}

function made({ type, shape, from = same, toShape, to = same }: Pattern): ReturnType<HostCase["make"]> {
  const source = from(array(type, shape));
  const target = to(array(type, toShape ?? source.layout.shape));
  return {
    run: () => target.copyFrom(source),
    copies: 1,
    question: ["open", { shape: target.layout.shape, to: sideOf(target), from: sideOf(source) }],
  };
}

function sideOf({ buffer, offset, layout, dtype }: StridedMemoryView) {
  const { itemsize } = dtype;
  return {
    bytes: buffer.size,
    itemsize,
    offset: offset + layout.sliceOffsetInBytes,
    strides: layout.strides.map((stride) => stride * itemsize),
  };
}

function same(view: StridedMemoryView): StridedMemoryView {
  return view;
}

const turned = (...axes: number[]) => (view: StridedMemoryView) => view.permuted(axes);
const second = (view: StridedMemoryView) => view.sliced("...", slice(null, null, 2));
const third = (view: StridedMemoryView) => view.sliced("...", slice(null, null, 3));
const reversed = (view: StridedMemoryView) => view.sliced("...", slice(null, null, -1));
const repeated = (shape: number[]) => (view: StridedMemoryView) =>
  view.view({ layout: view.layout.broadcastTo(shape) });
const each = (item: ReturnType<typeof slice>) => (view: StridedMemoryView) =>
  view.sliced(...view.layout.shape.map(() => item));

const transposes: Record<string, [large: Pattern | null, inCache: Pattern | null]> = {
  "transpose u8": [{ type: "u8", shape: [4096, 4096], from: turned(1, 0) }, {
    type: "u8",
    shape: [256, 256],
    from: turned(1, 0),
  }],
  "transpose f32": [{ type: "f32", shape: [4096, 4096], from: turned(1, 0) }, {
    type: "f32",
    shape: [256, 256],
    from: turned(1, 0),
  }],
  "transpose f64": [{ type: "f64", shape: [4096, 4096], from: turned(1, 0) }, {
    type: "f64",
    shape: [128, 128],
    from: turned(1, 0),
  }],
  "transpose f32, odd": [{ type: "f32", shape: [3001, 4099], from: turned(1, 0) }, {
    type: "f32",
    shape: [123, 259],
    from: turned(1, 0),
  }],
  "C to F, 3-d f32": [{ type: "f32", shape: [256, 256, 256], from: turned(2, 1, 0) }, {
    type: "f32",
    shape: [40, 40, 40],
    from: turned(2, 1, 0),
  }],
  "NHWC to NCHW f32": [{ type: "f32", shape: [16, 224, 224, 64], from: turned(0, 3, 1, 2) }, {
    type: "f32",
    shape: [1, 28, 28, 64],
    from: turned(0, 3, 1, 2),
  }],
  "NCHW to NHWC f32": [{ type: "f32", shape: [16, 64, 224, 224], from: turned(0, 2, 3, 1) }, {
    type: "f32",
    shape: [1, 64, 28, 28],
    from: turned(0, 2, 3, 1),
  }],
  "HWC to CHW u8": [{ type: "u8", shape: [2160, 3840, 3], from: turned(2, 0, 1) }, {
    type: "u8",
    shape: [128, 128, 3],
    from: turned(2, 0, 1),
  }],
  "CHW to HWC u8": [{ type: "u8", shape: [3, 2160, 3840], from: turned(1, 2, 0) }, {
    type: "u8",
    shape: [3, 128, 128],
    from: turned(1, 2, 0),
  }],
};

const moves: typeof transposes = {
  "permute (1,0,2), rows of 256 B": [{ type: "f32", shape: [512, 512, 64], from: turned(1, 0, 2) }, {
    type: "f32",
    shape: [16, 32, 64],
    from: turned(1, 0, 2),
  }],
  "::2 f32": [{ type: "f32", shape: [2 ** 24], from: second }, { type: "f32", shape: [2 ** 16], from: second }],
  "::3 u8": [{ type: "u8", shape: [3 * 2 ** 24], from: third }, { type: "u8", shape: [3 * 2 ** 15], from: third }],
  "::2 f64": [{ type: "f64", shape: [2 ** 23], from: second }, { type: "f64", shape: [2 ** 15], from: second }],
  "into ::2 f32": [{ type: "f32", shape: [2 ** 23], toShape: [2 ** 24], to: second }, {
    type: "f32",
    shape: [2 ** 15],
    toShape: [2 ** 16],
    to: second,
  }],
  "reversed f32": [{ type: "f32", shape: [2 ** 23], from: reversed }, {
    type: "f32",
    shape: [2 ** 14],
    from: reversed,
  }],
  "columns flipped u8": [{ type: "u8", shape: [4096, 4096], from: reversed }, {
    type: "u8",
    shape: [256, 256],
    from: reversed,
  }],
  "column of (n,64) f32": [{ type: "f32", shape: [2 ** 18, 64], from: (view) => view.sliced(slice(), 5) }, {
    type: "f32",
    shape: [2 ** 10, 64],
    from: (view) => view.sliced(slice(), 5),
  }],
  "column repeated f32": [
    { type: "f32", shape: [4096, 1], from: repeated([4096, 4096]) },
    { type: "f32", shape: [128, 1], from: repeated([128, 128]) },
  ],
  "rows of 64 B": [
    { type: "f32", shape: [2 ** 19, 32], from: (view) => view.sliced(slice(), slice(0, 16)) },
    { type: "f32", shape: [2 ** 9, 32], from: (view) => view.sliced(slice(), slice(0, 16)) },
  ],
  "rows of 100 B u8": [
    { type: "u8", shape: [2 ** 18, 128], from: (view) => view.sliced(slice(), slice(0, 100)) },
    { type: "u8", shape: [2 ** 9, 128], from: (view) => view.sliced(slice(), slice(0, 100)) },
  ],
  "rows of 3 f32": [
    { type: "f32", shape: [2 ** 21, 4], from: (view) => view.sliced(slice(), slice(0, 3)) },
    { type: "f32", shape: [2 ** 11, 4], from: (view) => view.sliced(slice(), slice(0, 3)) },
  ],
  "8-d ::2 f32": [
    { type: "f32", shape: Array(8).fill(8), from: each(slice(null, null, 2)) },
    { type: "f32", shape: Array(8).fill(4), from: each(slice(null, null, 2)) },
  ],
  "8-d 1:7 f32": [{ type: "f32", shape: Array(8).fill(8), from: each(slice(1, 7)) }, {
    type: "f32",
    shape: Array(8).fill(5),
    from: each(slice(1, 4)),
  }],
};

const contiguous: typeof transposes = {
  "contiguous f32": [{ type: "f32", shape: [2 ** 24] }, { type: "f32", shape: [2 ** 14] }],
  "rows of 1 KiB": [{ type: "f32", shape: [65536, 300], from: (view) => view.sliced(slice(), slice(0, 256)) }, null],
  "rows of 4 KiB": [{ type: "f32", shape: [16384, 1200], from: (view) => view.sliced(slice(), slice(0, 1024)) }, null],
  "rows of 16 KiB": [{ type: "f32", shape: [4096, 5000], from: (view) => view.sliced(slice(), slice(0, 4096)) }, null],
};

const small: Record<string, Pattern> = {
  "1 f32": { type: "f32", shape: [1] },
  "10 f32": { type: "f32", shape: [10] },
  "100 f32": { type: "f32", shape: [100] },
  "10 f32, ::2": { type: "f32", shape: [20], from: second },
  "100 f32, ::2": { type: "f32", shape: [200], from: second },
  "3 x 3 f64, transposed": { type: "f64", shape: [3, 3], from: turned(1, 0) },
  "10 x 10 f32, transposed": { type: "f32", shape: [10, 10], from: turned(1, 0) },
  "4 x 25 f32, columns reversed": { type: "f32", shape: [4, 25], from: reversed },
};

function* casesOf(
  patterns: typeof transposes,
  goals: readonly [large: number, inCache: number],
): Generator<HostCase> {
  for (const [name, sizes] of Object.entries(patterns)) {
    for (const [i, size] of (["large", "in cache"] as const).entries()) {
      const pattern = sizes[i];
      if (pattern === undefined || pattern === null) continue;
      yield { name: `${name}, ${size}`, goal: goals[i] ?? NaN, make: () => made(pattern) };
    }
  }
}

/** All copies that only move elements. */
export function moveCases(): HostCase[] {
  const few = Object.entries(small).map(([name, pattern]) => ({ name, goal: 1, make: () => made(pattern) }));
  return [
    ...casesOf(transposes, [0.6, 1.5]),
    ...casesOf(moves, [1.3, 1.5]),
    ...casesOf(contiguous, [1.05, 1.2]),
    ...few,
  ];
}
