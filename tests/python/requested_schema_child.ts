/**
 * Imports an array from a producer that releases the requested schema at once, and lets JavaScript free it, all before
 * it returns. Prints the values, and how many exports are left. The C library has to fill what it frees.
 */
import process from "node:process";
import { liveExports } from "../../src/order/reclaim.ts";
import { ArrowArray, arrowField, type PyObject, Python, StridedMemoryView } from "../../mod.ts";

const python = Python.open({ home: process.argv[2] ?? "" });
python.run(`
import ctypes
address_in = ctypes.pythonapi.PyCapsule_GetPointer
address_in.restype, address_in.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
class Producer:
    def __init__(self, array, poll): self.array, self.poll = array, poll
    def __arrow_c_array__(self, requested_schema=None):
        struct = address_in(requested_schema, b"arrow_schema")
        release = ctypes.c_void_p.from_address(struct + 56).value
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release)(struct)
        self.poll()
        return self.array.__arrow_c_array__()
`);
const ours = ArrowArray.from(StridedMemoryView.fromTypedArray(Int32Array.of(1, 2, 3)));
const { Producer } = python.import("__main__");
const values: unknown[] = [];
{
  using producer: PyObject = Producer.$call(ours, liveExports);
  using array = ArrowArray.from(producer, { requestedSchema: arrowField("i") });
  values.push(...array.toArray());
}
ours.close();
python.run("import gc; gc.collect()");
console.log(JSON.stringify(values), liveExports());
