/**
 * How Python orders two streams, call by call: with functions in place of the driver's that record their calls, on the
 * one thread that may call JavaScript. The calls' effect is tested on a GPU (tests/gpu/python_test.ts).
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { Cuda, type PyObject, Python, PythonError, StridedMemoryView } from "../../mod.ts";
import { reportOrders } from "../../src/python/export_array.ts";
import { wrap } from "../../src/python/object.ts";
import { openInterpreter } from "../../src/python/start_interpreter.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;

/** The driver's functions in the order in which Python receives them, and each one's number of arguments. */
const functions = { push: 1, pop: 1, create: 2, destroy: 1, record: 2, wait: 3 } as const;

test(
  ...needs(
    missing,
    "a consumer's stream waits for the home stream: event created, recorded, waited for, destroyed, context restored",
  ),
  () => {
    const home = typeof found === "string" ? "" : found.executable;
    const python = Python.open({ home });
    const interpreter = openInterpreter({ home });
    const log: string[] = [];
    let failing = "";
    const callbacks = Object.entries(functions).map(([name, count]) =>
      ffiPort().callback({ args: Array.from({ length: count }, () => "u64" as const), returns: "i32" }, (...args) => {
        const [first = 0n, second = 0n] = args;
        if (name === "create") new DataView(ffiPort().memory(first, 8)).setBigUint64(0, 0xe0n, true);
        const shown = {
          push: [first],
          pop: [],
          create: [second & 0xffffffffn],
          destroy: [first],
          record: [first, second],
        };
        log.push([name, ...(name === "wait" ? [first, second] : shown[name as keyof typeof shown])].join(" "));
        return name === failing ? 1 : 0;
      })
    );
    interpreter.hasExports = true;
    const tensor = StridedMemoryView.fromTypedArray(new Float32Array(4)).toDlpack().take();
    const [array, numbers] = interpreter.locked(() => {
      const { integer, text, tuple, share } = bind(interpreter);
      interpreter.release(interpreter.callHelper("bind_cuda", callbacks.map(({ address }) => integer(address))));
      const made = interpreter.callHelper("Array", [
        integer(tensor),
        text("float32"),
        share(interpreter.singletons.none),
        share(interpreter.singletons.none),
        tuple([integer(4n)]),
        share(interpreter.singletons.none),
        text("<f4"),
        integer(4096n),
        share(interpreter.singletons.false),
        tuple([integer(2n), integer(0n)]),
        integer(0xc0n),
        integer(0x77n),
      ]);
      return [wrap(interpreter, made, {}), python.evaluate("lambda array, options: str(array.__dlpack__(**options))")];
    });
    const ask = (options: object) => {
      log.length = 0;
      numbers(array, options);
      return [...log];
    };
    const ordered = (consumer: number) => [
      `push ${0xc0}`,
      "create 2",
      `record ${0xe0} ${0x77}`,
      `wait ${consumer} ${0xe0}`,
      `destroy ${0xe0}`,
      "pop",
    ];
    assertEquals(ask({ stream: 0x99 }), ordered(0x99));
    assertEquals(ask({ stream: 1 }), ordered(1));
    assertEquals(ask({ stream: 2, max_version: [1, 0] }), ordered(2));
    assertEquals(ask({}), ordered(1), "no stream means the legacy default one");
    assertEquals(ask({ stream: -1 }), [], "-1 asks for no order");
    assertEquals(ask({ stream: 0x77 }), [], "a stream need not wait for itself");
    assertThrows(() => ask({ stream: 0 }), PythonError, "stream 0");
    assertEquals(log, []);
    for (failing of ["push", "create", "record", "wait"]) {
      assertThrows(() => ask({ stream: 0x99 }), PythonError, "CUDA driver returned error 1");
      const until = ordered(0x99).slice(
        0,
        Object.keys({ push: 0, create: 0, record: 0, wait: 0 }).indexOf(failing) + 1,
      );
      const cleanup = [...(failing === "record" || failing === "wait" ? [`destroy ${0xe0}`] : []), "pop"];
      assertEquals(log, failing === "push" ? until : [...until, ...cleanup], failing);
    }
    failing = "";
    const notices: bigint[][] = [];
    const check = { orderedElsewhere: (...order: bigint[]) => notices.push(order) };
    interpreter.locked(() => {
      reportOrders(interpreter, 0xc0n, check);
      ask({ stream: 0x99 }); // as in the export of an array for a call
    });
    ask({ stream: -1 });
    ask({});
    assertEquals(notices, [[0xc0n, 0x77n, 0x99n], [0xc0n, 0x77n, 1n]], "a checker is notified of each");
    interpreter.beforeUnlock = null;

    assertEquals(array["__cuda_array_interface__"].$value().get("stream"), 0x77);
    assertEquals("__array_interface__" in array, false);
    array.$close();
    numbers.$close();
    assertEquals(liveExports(), 0);
    for (const callback of callbacks) callback.close();
  },
);

function bind(interpreter: ReturnType<typeof openInterpreter>) {
  return {
    integer: (value: bigint) => interpreter.integer(value),
    text: (value: string) => interpreter.text(value),
    tuple: (items: readonly bigint[]) => interpreter.tuple(items),
    share: (object: bigint) => interpreter.retain(object),
  };
}

test(...needs(missing, "an array that stays an object is viewed on the stream that Python was opened with"), () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using memory = device.memory.allocate(16, { stream });
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable, stream });
  python.run(`
class Described:
    def __init__(self, address): self.address = address
    @property
    def __cuda_array_interface__(self):
        return {"shape": (4,), "typestr": "<f4", "data": (self.address, False), "version": 3}
`);
  using make: PyObject = python.evaluate("Described");
  using described = make.$call(memory.ptr);
  using view = StridedMemoryView.from(described);
  assertEquals([view.ptr, view.stream], [memory.ptr, stream]);
  using other = device.createStream();
  using elsewhere = StridedMemoryView.from(described, { stream: other });
  assertEquals(elsewhere.stream, other);
});
