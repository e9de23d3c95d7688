/**
 * Arrays of every type that PyVortex takes from Arrow: it encodes them, plain or compressed, and they arrive by
 * messages and as Arrow with the same values; and they go back.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { ArrowArray, type PyObject } from "../../../mod.ts";
import { decodeVortexIpc, encodeVortexIpc } from "../../../src/vortex/mod.ts";
import { models, type Quirks, valueOf } from "../../support/arrow_model.ts";
import { patiently } from "../../support/child.ts";
import { needs } from "../../support/needs.ts";
import { check, fc } from "../../support/property.ts";
import {
  arrayOfValues,
  bytesOfList,
  isVortexType,
  missingPyVortex,
  openPyVortex,
} from "../../support/vortex/python_arrays.ts";

/** How Rust's Arrow handles slices and gaps is out of scope here. */
const plain: Quirks = { offset: 0, tail: 0, countUnknown: false, idleBitmap: false, gap: 0 };

const [name, options] = needs(missingPyVortex, "arrays of every type are received by messages and sent back");

test(name, { ...options, ...patiently }, () => {
  const python = openPyVortex();
  const [toVortex, toMessages, ofMessages] = ["to_vortex", "to_messages", "of_messages"].map((one) =>
    python.evaluate(one)
  );
  const cases = models.filter(isVortexType).chain((model) =>
    fc.record({
      model: fc.constant(model),
      values: fc.array(valueOf(model), { maxLength: 20 }),
      quirk: fc.constant(plain),
      isCompressed: fc.boolean(),
    })
  );
  check(
    fc.property(cases, ({ model, values, quirk, isCompressed }) => {
      using made = arrayOfValues(model, values, quirk);
      using encoded: PyObject = toVortex.$call(made.own, isCompressed);
      using messages: PyObject = toMessages.$call(encoded);
      const [message, dtype] = bytesOfList(messages);
      const options = dtype === undefined ? {} : { dtype };
      const array = decodeVortexIpc(message ?? new Uint8Array(), options);
      assertEquals(array.length, values.length);
      assertEquals(array.toArrow().toArray() as unknown, values);

      const back = encodeVortexIpc(array);
      using theirs: PyObject = ofMessages.$call(back.array, back.dtype);
      using again = ArrowArray.from(theirs);
      assertEquals(again.toArray() as unknown, values);

      const half = array.slice(values.length >> 1);
      assertEquals(half.toArrow().toArray() as unknown, values.slice(values.length >> 1));
      const cutBack = encodeVortexIpc(half);
      using cut: PyObject = ofMessages.$call(cutBack.array, cutBack.dtype);
      using cutAgain = ArrowArray.from(cut);
      assertEquals(cutAgain.toArray() as unknown, values.slice(values.length >> 1));
    }),
    300,
  );
});
