/**
 * A fake device for Python: its memory is host memory, and stand-ins for the driver's functions log their calls, on the
 * one thread that may call JavaScript.
 *
 * @module
 */
import { HostMemoryResource, type PyObject, type StridedMemoryView } from "../../mod.ts";
import { wrap } from "../../src/python/object.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { ffiPort } from "../../src/ffi/port.ts";

/** The driver's functions in the order in which they are passed to Python, and how many arguments each has. */
const ordering = { push: 1, pop: 1, create: 2, destroy: 1, record: 2, wait: 3 } as const;
const memory = { allocate: 2, free: 1, copy: 4, synchronize: 1, mode: 1, retain: 2, release: 1 } as const;

/** Presents a view's memory to Python as device memory, and logs Python's calls to the driver. */
export class FakeDevice {
  readonly log: string[] = [];
  /** The call that fails, and the code that it returns. */
  failing: readonly [name: string, code: number] = ["", 0];
  readonly #interpreter: ReturnType<typeof openInterpreter>;
  readonly #allocated = new Map<bigint, ReturnType<HostMemoryResource["allocate"]>>();
  readonly #callbacks: ReturnType<ReturnType<typeof ffiPort>["callback"]>[] = [];

  /** @param home the environment whose interpreter runs */
  constructor(home: string) {
    this.#interpreter = openInterpreter({ home });
    const made = (functions: Readonly<Record<string, number>>) =>
      Object.entries(functions).map(([name, count]) => {
        const args = Array.from({ length: count }, () => "u64" as const);
        const callback = ffiPort().callback({ args, returns: "i32" }, (...given) => this.#call(name, given));
        this.#callbacks.push(callback);
        return this.#interpreter.integer(callback.address);
      });
    this.#interpreter.hasExports = true;
    this.#interpreter.locked(() => {
      this.#interpreter.release(this.#interpreter.callHelper("bind_cuda", made(ordering)));
      this.#interpreter.release(this.#interpreter.callHelper("bind_memory", made(memory)));
    });
  }

  /** How many of its allocations are not freed. */
  get allocated(): number {
    return this.#allocated.size;
  }

  /** A Python array over a view, on device 3, in context 0xc0, with the home stream 0x77 or none. */
  exportArray(view: StridedMemoryView, stream: bigint | null = 0x77n): PyObject {
    const python = this.#interpreter;
    const { none, false: no } = python.singletons;
    const tensor = view.toDlpack().take();
    return python.locked(() => {
      const made = python.callHelper("Array", [
        python.integer(tensor),
        python.text(view.dtype.name),
        python.retain(none),
        python.retain(none),
        python.tuple(view.shape.map((extent) => python.integer(BigInt(extent)))),
        python.retain(none),
        view.dtype.typestr === null ? python.retain(none) : python.text(view.dtype.typestr),
        python.integer(view.ptr),
        python.retain(no),
        python.tuple([python.integer(2n), python.integer(3n)]),
        python.integer(0xc0n),
        stream === null ? python.retain(none) : python.integer(stream),
      ]);
      return wrap(python, made, {});
    });
  }

  /** The calls since this was last called. */
  asked(): string[] {
    return this.log.splice(0);
  }

  [Symbol.dispose](): void {
    for (const callback of this.#callbacks) callback.close();
  }

  #call(name: string, [first = 0n, second = 0n, size = 0n, stream = 0n]: readonly (bigint | number)[]): number {
    const [to, from, bytes] = [BigInt(first), BigInt(second), Number(size)];
    const write = (value: bigint) => new DataView(ffiPort().memory(to, 8)).setBigUint64(0, value, true);
    this.log.push(name === "copy" ? `copy ${bytes} on ${stream}` : this.#shown(name, to, from));
    if (this.failing[0] === name) return this.failing[1];
    if (name === "create") write(0xe0n);
    if (name === "copy") {
      new Uint8Array(ffiPort().memory(to, bytes)).set(new Uint8Array(ffiPort().memory(from, bytes)));
    }
    if (name === "allocate") {
      const buffer = new HostMemoryResource().allocate(Number(from));
      this.#allocated.set(buffer.ptr, buffer);
      write(buffer.ptr);
    }
    if (name === "free") {
      this.#allocated.get(to)?.close();
      this.#allocated.delete(to);
    }
    return 0;
  }

  #shown(name: string, first: bigint, second: bigint): string {
    switch (name) {
      case "allocate":
        return `allocate ${second}`;
      case "mode": {
        const mode = new DataView(ffiPort().memory(first, 4));
        const given = mode.getInt32(0, true);
        mode.setInt32(0, 2 - given, true); // global before, relaxed between the two calls
        return `mode ${given}`;
      }
      case "retain":
        return `retain ${second & 0xffffffffn}`;
      case "record":
        return `record on ${second}`;
      case "push":
      case "wait":
      case "synchronize":
        return `${name} ${first}`;
      case "release":
        return `${name} ${first & 0xffffffffn}`;
      default:
        return name;
    }
  }
}
