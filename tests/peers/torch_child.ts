/** Functions of torch with views of host memory, in a process of its own: prints `true` if all of it is right. */
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { kwargs, liveExports, type PyObject, Python, PythonError, slice, StridedMemoryView } from "../../mod.ts";
import { collectGarbage } from "../support/collect.ts";

const python = Python.open();
const torch = python.import("torch");
const table = StridedMemoryView.fromTypedArray(Float32Array.of(-1, 2, -3, 4, 5, -6), { shape: [2, 3] });
const numbers = async (view: StridedMemoryView) => Array.from(await view.toTypedArray(), Number);

{
  using positive: StridedMemoryView = torch["nn"].functional.relu(table);
  assert(positive instanceof StridedMemoryView, `relu returned ${String(positive)}`);
  assertEquals([positive.device, [...positive.shape]], [null, [2, 3]]);
  assertEquals(await numbers(positive), [0, 2, 0, 4, 5, 0]);
  using product: StridedMemoryView = torch["matmul"](positive, table.permuted([1, 0]));
  assertEquals(await numbers(product), [4, 10, 6, 41]);
  using total: StridedMemoryView = torch["sum"](table, kwargs({ dim: 0 }));
  assertEquals(await numbers(total), [3, 7, -9]);
  using stacked: StridedMemoryView = torch["stack"]([table.sliced(0), Float32Array.of(7, 8, 9)]);
  assertEquals(await numbers(stacked), [-1, 2, -3, 7, 8, 9]);
  using column: StridedMemoryView = torch["mul"](table.sliced(slice(), 1), 10);
  assertEquals(await numbers(column), [20, 50]);
}
{
  // torch writes where our elements are, and we where its are.
  using added: StridedMemoryView = torch["add"](table, 1, kwargs({ out: table }));
  assertEquals(added.ptr, table.ptr);
  assertEquals(await numbers(table), [0, 3, -2, 5, 6, -5]);
  using tensor: PyObject = torch["zeros"].$call(3);
  using seen = StridedMemoryView.from(tensor);
  seen.copyFrom(Float32Array.of(1, 2, 3));
  using sum: PyObject = tensor["sum"].$call();
  assertEquals(sum["item"](), 6);
}
{
  using linear: PyObject = torch["nn"].Linear.$call(3, 1);
  const needsGradient = linear(table);
  assertEquals(typeof needsGradient, "function", "a tensor that needs a gradient stays in Python");
  using detached: StridedMemoryView = needsGradient.detach();
  assertEquals([...detached.shape], [2, 1]);
  needsGradient.$close();
  let message = "";
  try {
    torch["matmul"](table, table);
  } catch (error) {
    message = error instanceof PythonError ? error.message : `${error}`;
  }
  assert(message.includes("shapes cannot be multiplied"), message);
}
for (let i = 0; i < 20 && liveExports() > 0; i++) {
  await collectGarbage();
  python.run("import gc, sys; sys.last_value = sys.last_traceback = None; gc.collect()");
}
assertEquals(liveExports(), 0, "both sides have let go");
console.log(true);
process.exit(0); // torch has threads that a runtime would wait for
