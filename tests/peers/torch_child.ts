/** torch functions on views of host memory, in their own process: prints `true` if all is right. */
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { liveExports } from "../../src/order/reclaim.ts";
import { kwargs, type PyObject, Python, slice, StridedMemoryView } from "../../mod.ts";
import { collectGarbage } from "../support/collect.ts";

const python = Python.open();
const torch = python.import("torch");
const table = StridedMemoryView.fromTypedArray(Float32Array.of(-1, 2, -3, 4, 5, -6), { shape: [2, 3] });
const messageOf = (call: () => unknown) => {
  try {
    call();
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : `${error}`;
  }
};
/** Numbers as nested lists. */
const nested = (flat: readonly number[], [extent, ...inner]: readonly number[]): unknown => {
  if (extent === undefined) return flat[0];
  const size = flat.length / extent;
  return Array.from({ length: extent }, (_, i) => nested(flat.slice(i * size, (i + 1) * size), inner));
};
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
  // torch writes to our elements in place, and we to its.
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
  assert(messageOf(() => torch["matmul"](table, table)).includes("shapes cannot be multiplied"));
}
{
  // A tensor that torch makes of a view has the view's shape, type and order, whether NumPy is loaded or not: from
  // Python 3.12 on torch.asarray() took the bytes for numbers of its default type. Before 2.0 it asks only NumPy.
  python.run(`
import sys, torch
def make(view, way): return getattr(torch, way)(view)
def said(tensor): return [str(tensor.dtype), list(tensor.shape), tensor.tolist()]
def unload(): return [sys.modules.pop(name) for name in ["numpy"] if name in sys.modules]
def load(modules): sys.modules.update(numpy=modules[0]) if modules else None
`);
  const isModern = Number(String(torch["__version__"]).split(".")[0]) >= 2;
  const integers = StridedMemoryView.fromTypedArray(Int32Array.from({ length: 12 }, (_, i) => i), { shape: [3, 4] });
  const views = [
    integers,
    integers.permuted([1, 0]),
    integers.sliced(slice(1), slice(null, null, 2)),
    integers.sliced(1, 2),
  ];
  for (const way of ["asarray", "as_tensor", "tensor", "from_dlpack"]) {
    for (const view of views) {
      for (const isLoaded of [true, false]) {
        if (!isLoaded && !isModern && way !== "from_dlpack") continue;
        const modules: PyObject | null = isLoaded ? null : python.evaluate("unload").$call();
        using passed: PyObject = python.evaluate("lambda view: view").$call(view);
        if (modules !== null) python.evaluate("load")(modules);
        using tensor: PyObject = python.evaluate("make").$call(passed, way);
        using found: PyObject = python.evaluate("said").$call(tensor);
        const expected = ["torch.int32", [...view.shape], nested(await numbers(view), view.shape)];
        assertEquals(found.$value(), expected, `${way}, NumPy ${isLoaded ? "loaded" : "not loaded"}`);
      }
    }
  }
  assert(messageOf(() => torch["sum"](integers.sliced(slice(null, null, -1)))).includes("toDense()"));
}
{
  // The memory of a tensor with the conjugate or the negative bit holds other numbers than the tensor.
  python.run("import torch\nz = torch.tensor([1 + 2j, 3 - 4j])\nx = torch.tensor([1., 2.])");
  const bits = { "z.conj()": "conj", "z.conj().imag": "neg", "torch._neg_view(x)": "neg", "torch._neg_view(z)": "neg" };
  for (const [expression, bit] of Object.entries(bits)) {
    const tensor: PyObject = python.evaluate(expression);
    assertEquals(typeof tensor, "function", `${expression} stays in Python`);
    assert(messageOf(() => StridedMemoryView.from(tensor)).includes(`call resolve_${bit}() first`), expression);
    using values: PyObject = python.evaluate(
      `(lambda t: (torch.view_as_real(t) if t.is_complex() else t).tolist())((${expression}).resolve_conj().resolve_neg())`,
    );
    using resolved: StridedMemoryView = tensor[`resolve_${bit}`]();
    assertEquals(await numbers(resolved), (values.$value() as number[]).flat(), expression);
    tensor.$close();
  }
  using imaginary: StridedMemoryView = python.evaluate("z.imag");
  assertEquals(await numbers(imaginary), [2, -4]);
}
for (let i = 0; i < 20 && liveExports() > 0; i++) {
  await collectGarbage();
  python.run("import gc, sys; sys.last_value = sys.last_traceback = None; gc.collect()");
}
assertEquals(liveExports(), 0, "both sides have released");
console.log(true);
process.exit(0); // torch has threads that a runtime would wait for
