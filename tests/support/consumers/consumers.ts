/**
 * Every kind of array that we and a Python library both support, handed over in both directions, by each convention:
 * the same address, the same elements, and nothing retained once both sides have released it.
 *
 * What a library refuses is up to the library, and is reported. What it accepts must be right.
 *
 * @module
 */
import { liveExports } from "../../../src/order/reclaim.ts";
import {
  type Cuda,
  DeviceMemoryResource,
  DType,
  HostMemoryResource,
  type MemoryBuffer,
  type PyObject,
  type Python,
  PythonError,
  slice,
  StridedMemoryView,
} from "../../../mod.ts";
import { collectGarbage } from "../collect.ts";
import { pattern, positionsOf } from "../arrays.ts";
import type { Convention, Library, Place } from "./libraries.ts";

/**
 * The outcome for one part of an array. `none`: it cannot be made, or the convention cannot express it; `refused`: the
 * consumer does not accept it; `copied`: the library makes a copy; `kept`: the library never releases it; `wrong`: it
 * is accepted, but is not what was handed over; `died`: the process ended.
 */
export interface Outcome {
  readonly part: string;
  readonly result: "ok" | "none" | "refused" | "copied" | "kept" | "wrong" | "died";
  readonly why: string;
}

/** The outcomes for one element type. */
export interface Cell {
  readonly convention: Convention;
  /** `to` the library, or `from` it. */
  readonly direction: "to" | "from";
  readonly dtype: string;
  readonly outcomes: readonly Outcome[];
}

/** The outcomes for all element types, conventions and directions. */
export interface Matrix {
  readonly version: string;
  /** Options that the library has passed to `__dlpack__`, as name=value. */
  readonly asked: readonly string[];
  readonly cells: readonly Cell[];
}

/** Parts of an array of shape (4, 8), on our side and in Python. */
const parts: readonly {
  readonly name: string;
  readonly of: (whole: StridedMemoryView) => StridedMemoryView;
  readonly python: string;
}[] = [
  { name: "whole", of: (whole) => whole, python: "array" },
  { name: "rows", of: (whole) => whole.sliced(slice(1, 3)), python: "array[1:3]" },
  {
    name: "every other",
    of: (whole) => whole.sliced(slice(1, 3), slice(null, null, 2)),
    python: "array[1:3, ::2]",
  },
  { name: "transposed", of: (whole) => whole.permuted([1, 0]), python: "array.T" },
  { name: "column", of: (whole) => whole.sliced(slice(), 2), python: "array[:, 2]" },
  { name: "scalar", of: (whole) => whole.sliced(2, 3), python: "array[2, 3:4].reshape(())" },
  { name: "empty", of: (whole) => whole.sliced(slice(2, 2)), python: "array[2:2]" },
  { name: "read-only", of: frozen, python: "frozen(array)" },
];

function frozen({ buffer, shape, dtype }: StridedMemoryView): StridedMemoryView {
  return StridedMemoryView.fromBuffer(buffer, { shape, dtype, readonly: true });
}

const common = `
import sys, numpy
asked = set()

class Only:
    "An array that speaks one protocol only."
    def __init__(self, array): self.array = array

class Dlpack(Only):
    def __dlpack_device__(self): return self.array.__dlpack_device__()
    def __dlpack__(self, **options):
        if type(self.array).__name__ == "Array": # ours, and not theirs, which we ask
            asked.update("%s=%s" % (name, value) for name, value in options.items() if value is not None)
        return self.array.__dlpack__(**options)

class Cai(Only):
    __cuda_array_interface__ = property(lambda self: self.array.__cuda_array_interface__)
    dtype = property(lambda self: self.array.dtype)

class Interface(Only):
    __array_interface__ = property(lambda self: self.array.__array_interface__)
    dtype = property(lambda self: self.array.dtype)

class Arrow(Only):
    def __arrow_c_schema__(self): return self.array.__arrow_c_schema__()
    def __arrow_c_array__(self, requested_schema=None): return self.array.__arrow_c_array__(requested_schema)

class Device(Only):
    def __arrow_c_schema__(self): return self.array.__arrow_c_schema__()
    def __arrow_c_device_array__(self, requested_schema=None, **options):
        return self.array.__arrow_c_device_array__(requested_schema, **options)

speakers = {"DLPack": Dlpack, "CUDA array interface": Cai, "array interface": Interface, "Arrow": Arrow, "Arrow device": Device}

def only(array, convention): return array if convention == "DLPack table" else speakers[convention](array)

def values(data, dtype, shape):
    try: kind = numpy.dtype(dtype)
    except TypeError:
        import ml_dtypes
        kind = numpy.dtype(getattr(ml_dtypes, dtype))
    return numpy.frombuffer(bytes(numpy.asarray(data)), kind).reshape(shape).copy()

def frozen(array):
    array.setflags(write=False)
    return array

def said(array, convention):
    "Asks for what needs no consumer."
    if convention.startswith("Arrow"): array.__arrow_c_schema__()
    else: getattr(array, {"DLPack": "__dlpack_device__", "array interface": "__array_interface__"}.get(convention, "__cuda_array_interface__"))

def look(array):
    return [str(address(array)), kind(array), list(shape(array)), elements(array), writable(array)]

def cut(array, part):
    "A part of an array of the library."
    return part(array)

def references(array): return sys.getrefcount(array)
`;

/** Functions of the library's namespace. */
type Space = (name: string) => PyObject;

/** Where arrays are made, and how they are read. */
class Here {
  readonly cuda: Cuda | null;
  readonly #streams: { readonly stream?: ReturnType<NonNullable<Cuda["devices"][number]>["createStream"]> };

  constructor(cuda: Cuda | null) {
    this.cuda = cuda;
    this.#streams = cuda === null ? {} : { stream: cuda.device(0).createStream() };
  }

  /** Options of an import. */
  get options() {
    return this.#streams;
  }

  buffer(bytes: Uint8Array): MemoryBuffer {
    const host = new HostMemoryResource().allocate(bytes.length);
    host.bytes().set(bytes);
    const { stream } = this.#streams;
    if (this.cuda === null || stream === undefined) return host;
    const device = new DeviceMemoryResource(this.cuda.device(0)).allocate(bytes.length, { stream });
    device.copyFrom(host, { stream });
    stream.synchronize();
    host.close();
    return device;
  }

  /** The elements of a view in C order, byte by byte. */
  bytesOf({ buffer, layout, offset, dtype, device, stream, nbytes }: StridedMemoryView): Uint8Array {
    if (layout.volume === 0) return new Uint8Array(0);
    const all = device === null ? buffer.bytes() : this.#download(buffer, stream ?? device.defaultStream);
    if (dtype.isPacked) {
      const packed = all.slice(offset + layout.sliceOffsetInBytes).slice(0, nbytes); // made contiguous
      const rest = (layout.volume * dtype.bits) % 8; // bits used in the last byte; the others are unspecified
      return packed.map((byte, i) => i === nbytes - 1 && rest > 0 ? byte & (2 ** rest - 1) : byte);
    }
    const positions = positionsOf({ layout, offset, size: buffer.size });
    return Uint8Array.from(positions.flatMap((at) => [...all.slice(at, at + dtype.itemsize)]));
  }

  #download(buffer: MemoryBuffer, order: NonNullable<StridedMemoryView["stream"]>): Uint8Array {
    using host = new HostMemoryResource().allocate(buffer.size);
    buffer.copyTo(host, { stream: order });
    order.synchronize();
    return host.bytes().slice();
  }
}

/** Bytes that are valid values of the type: for booleans, the low bit of each only. */
function sample(dtype: DType, count: number): Uint8Array<ArrayBuffer> {
  const mask = dtype.name === "bool" ? 1 : dtype.bits < 8 && !dtype.isPacked ? 2 ** dtype.bits - 1 : 0x3f; // no NaN
  return pattern(Math.ceil(count * dtype.itemsize), 7).map((byte) => byte & mask);
}

const wrong = (part: string, why: string): Outcome => ({ part, result: "wrong", why });

/** The first line of an exception's message, without what differs from type to type. */
function reason(error: PythonError, dtype: string): string {
  const [line = ""] = error.message.split("\n");
  return line.replaceAll(dtype, "...").slice(0, 140);
}

/** The object to hand over by a convention, or the reason in words where our side cannot express it. */
function givenTo(space: Space, view: StridedMemoryView, convention: Convention): PyObject | string {
  const given = space("only").$call(view, convention);
  try {
    space("said").$call(given, convention).$close();
    return given;
  } catch (error) {
    given.$close();
    if (error instanceof PythonError) return reason(error, view.dtype.name);
    throw error;
  }
}

/** Hands a view to the library, and checks what it sees. */
function give(space: Space, here: Here, view: StridedMemoryView, convention: Convention, part: string): Outcome {
  const made = givenTo(space, view, convention);
  if (typeof made === "string") return { part, result: "none", why: made };
  using given = made;
  const refused = (error: unknown): Outcome => {
    if (error instanceof PythonError) return { part, result: "refused", why: reason(error, view.dtype.name) };
    throw error;
  };
  let array: PyObject;
  try {
    array = space("take").$call(given, convention);
  } catch (error) {
    return refused(error);
  }
  try {
    space("look").$call(array).$close();
  } catch (error) {
    array.$close(); // some accept what they cannot show
    return refused(error);
  }
  try {
    using seen = space("look").$call(array);
    const [address, kind, shape, elements, writable] = seen.$value() as [string, string, number[], unknown, unknown];
    const is = { kind, shape: shape.join(), elements: elements === null ? null : show(elements) };
    const { dtype } = view;
    const must = {
      kind: dtype.name,
      shape: view.shape.join(),
      elements: elements === null ? null : show(here.bytesOf(view)),
    };
    if (JSON.stringify(is) !== JSON.stringify(must)) {
      return wrong(part, `${JSON.stringify(is)} of ${JSON.stringify(must)}`);
    }
    if (view.layout.volume > 0 && BigInt(address) !== view.ptr) {
      return { part, result: "copied", why: "the library makes a copy of its own" };
    }
    if (view.readonly && writable === true) {
      return { part, result: "refused", why: "it is taken as if it could be written to" };
    }
    return { part, result: "ok", why: "" };
  } finally {
    array.$close();
  }
}

function show(bytes: unknown): string {
  return bytes instanceof Uint8Array ? bytes.toHex() : String(bytes);
}

/** Takes an array from the library, and checks what we see. */
function take(
  space: Space,
  here: Here,
  whole: PyObject,
  { name: part, python }: typeof parts[number],
  dtype: DType,
  convention: Convention,
): Outcome {
  let array: PyObject;
  try {
    array = space(`part ${python}`).$call(whole);
  } catch (error) {
    if (error instanceof PythonError) return { part, result: "none", why: reason(error, dtype.name) };
    throw error;
  }
  try {
    const before = space("references")(array);
    const outcome = takePart(space, here, array, part, convention);
    const after = space("references")(array);
    return outcome.result === "ok" && after !== before
      ? wrong(part, `${after - before} references are kept after the view was closed`)
      : outcome;
  } finally {
    array.$close();
  }
}

function takePart(
  space: Space,
  here: Here,
  array: PyObject,
  part: string,
  convention: Convention,
): Outcome {
  using given = space("only").$call(array, convention);
  let view: StridedMemoryView;
  try {
    view = convention.startsWith("Arrow")
      ? StridedMemoryView.fromArrowDevice(given, here.options)
      : StridedMemoryView.from(given, here.options);
  } catch (error) {
    if (error instanceof Error) {
      return { part, result: "refused", why: `${error.message.split("\n")[0]}`.slice(0, 140) };
    }
    throw error;
  }
  try {
    space("look").$call(array).$close();
  } catch (error) {
    view.close();
    if (error instanceof PythonError) return { part, result: "none", why: "the library cannot show its own elements" };
    throw error;
  }
  try {
    using seen = space("look").$call(array);
    const [address, kind, shape, elements] = seen.$value() as [string, string, number[], unknown];
    const is = {
      kind: view.dtype.name,
      shape: view.shape.join(),
      address: view.layout.volume === 0 ? "" : `${view.ptr}`,
      elements: elements === null ? null : show(here.bytesOf(view)),
      gpu: view.device !== null,
    };
    const must = {
      kind,
      shape: shape.join(),
      address: view.layout.volume === 0 ? "" : address,
      elements: elements === null ? null : show(elements),
      gpu: here.cuda !== null,
    };
    if (JSON.stringify(is) !== JSON.stringify(must)) {
      return wrong(part, `${JSON.stringify(is)} of ${JSON.stringify(must)}`);
    }
    return part !== "read-only" || view.readonly
      ? { part, result: "ok", why: "" }
      : wrong(part, "it can be written to");
  } finally {
    view.close();
  }
}

/** Element types that some library may support. */
const dtypes: readonly DType[] = DType.all().filter(({ name, isPacked, bits }) =>
  isPacked ? bits === 4 || name === "bool1_packed" : bits >= 4 && !/^u?int[567]$|handle/.test(name)
);

/** Counts live exports, after garbage collection on both sides. */
class Balance {
  readonly #python: Python;
  #kept = 0;

  constructor(python: Python) {
    this.#python = python;
  }

  /** The outcome, unless new exports are still live. */
  async after(outcome: Outcome): Promise<Outcome> {
    for (let i = 0; i < 4 && liveExports() > this.#kept; i++) {
      if (i > 0) await collectGarbage();
      this.#python.run("import gc; gc.collect()");
    }
    const more = liveExports() - this.#kept;
    this.#kept += more;
    return more === 0 || outcome.result === "wrong"
      ? outcome
      : { part: outcome.part, result: "kept", why: "the library never releases it" };
  }
}

/** The functions that a library's code defines, and those that the parts of arrays need. */
function load(python: Python, { code }: Library, place: Place): Space {
  const namespace: PyObject = python.builtins["dict"].$call({ place });
  python.builtins["exec"](common + code, namespace);
  const found = new Map<string, PyObject>();
  return (name) => {
    const known = found.get(name);
    if (known !== undefined) return known;
    const source = name.startsWith("part ") ? `lambda array: cut(array, lambda array: ${name.slice(5)})` : name;
    const made: PyObject = python.builtins["eval"].$call(source, namespace);
    found.set(name, made);
    return made;
  };
}

/** What is tried next. */
export type Trial = Omit<Cell, "outcomes">;

/** What a run reports as it proceeds, so that its progress is known if a library ends the process. */
export type Event =
  | { readonly version: string }
  | { readonly trial: Trial }
  | { readonly cell: Cell }
  | { readonly asked: readonly string[] };

/**
 * Tries everything with a library.
 *
 * @param without trials to skip
 */
export async function runMatrix(
  python: Python,
  library: Library,
  place: { readonly cuda: Cuda | null; readonly conventions: readonly Convention[] },
  without: readonly Trial[],
  say: (event: Event) => void,
): Promise<void> {
  const { cuda, conventions } = place;
  const space = load(python, library, cuda === null ? "cpu" : "gpu");
  say({ version: String(space("version")) });
  const here = new Here(cuda);
  const balance = new Balance(python);
  for (const trial of conventions.flatMap(trialsOf)) {
    if (without.some((one) => JSON.stringify(one) === JSON.stringify(trial))) continue;
    say({ trial });
    const { convention, direction } = trial;
    const dtype = DType.from(trial.dtype);
    const outcomes = direction === "to"
      ? await giveAll(space, here, dtype, convention, balance)
      : await takeAll(space, here, dtype, convention, balance, library.makes ?? [4, 8]);
    say({ cell: { ...trial, outcomes } });
  }
  using names = space("sorted").$call(space("asked"));
  say({ asked: names.$value() as string[] });
}

function trialsOf(convention: Convention): Trial[] {
  const directions = convention === "DLPack table" ? ["from"] as const : ["to", "from"] as const;
  return dtypes.flatMap(({ name: dtype }) => directions.map((direction) => ({ convention, direction, dtype })));
}

async function giveAll(
  space: Space,
  here: Here,
  dtype: DType,
  convention: Convention,
  balance: Balance,
): Promise<Outcome[]> {
  using buffer = here.buffer(sample(dtype, 32));
  const whole = StridedMemoryView.fromBuffer(buffer, { shape: [4, 8], dtype });
  const outcomes: Outcome[] = [];
  for (const { name: part, of } of parts) {
    let view: StridedMemoryView;
    try {
      view = of(whole);
    } catch (error) {
      outcomes.push({ part, result: "none", why: error instanceof Error ? error.message : String(error) });
      continue;
    }
    outcomes.push(await balance.after(give(space, here, view, convention, part)));
  }
  return outcomes;
}

async function takeAll(
  space: Space,
  here: Here,
  dtype: DType,
  convention: Convention,
  balance: Balance,
  shape: readonly number[],
): Promise<Outcome[]> {
  let whole: PyObject;
  try {
    whole = space("make").$call(sample(dtype, 32), dtype.name, [...shape], convention);
  } catch (error) {
    if (error instanceof PythonError) return [{ part: "all", result: "none", why: reason(error, dtype.name) }];
    throw error;
  }
  const outcomes: Outcome[] = [];
  for (const part of parts) outcomes.push(await balance.after(take(space, here, whole, part, dtype, convention)));
  whole.$close();
  return outcomes;
}
