/** The protective lines of views. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const viewMutations: readonly Mutation[] = [
  ...law("view/readElements", [
    [
      "    staging.pinUntilPassed(stream); // copies enqueued before the failure still write there\n",
      "",
      "A print that fails leaves copies to memory that was given back.",
    ],
    ["    hostWaits(buffer); // page-locked", "    // page-locked", "What is printed is not written yet."],
    [
      "    hostWaitsForCopy(stream);\n  } catch (error) {",
      "  } catch (error) {",
      "What is printed is what was there before.",
    ],
  ]),
  ...law("view/wayOut", [
    ["  if (Array.isArray(source)) return", "  if (false) return", "Who gives numbers is told of protocols alone."],
  ]),
  ...law("view/StridedMemoryView.from", [
    ['    if (options !== none) checkPlace(options, "Cannot view an array");\n', "", "A number for a device is none."],
    [
      "return isUsableAt(source, options) ? source : fromDlpack(source, options, make);",
      "return source;",
      "We read before the owner of a view has written.",
    ],
  ]),
  ...law("view/ShapedArray", [
    ["this.layout.transposed()", "this.layout", "An array's T is the array."],
    ["return this.reshaped([this.size]);", "return this.reshaped(this.shape);", "A flattened array has several axes."],
    ["at < extent; at++", "at < extent - 1; at++", "Iteration leaves out the last row."],
    [", { dataPtr: buffer.ptr + BigInt(offset) }", "", "Elements of another size are not aligned."],
  ]),
  ...law("view/readElement", [
    ["  hostWaits(array.buffer);\n", "", "What is read was not written yet."],
    ['  checkOnHost(array, "read an element of device memory");\n', "", "The host reads device memory."],
    ["  noteElement(array, at, false, call);\n", "", "A read that races with a stream is not reported."],
  ]),
  ...law("view/writeElement", [
    ["  hostWaits(array.buffer);\n", "", "What is written is overwritten by work of before."],
    [
      '  if (array.readonly) throw new TypeError("Cannot write an element of a read-only view: copy() it first");\n',
      "",
      "A read-only view is written to.",
    ],
    ['  checkOnHost(array, "write an element of device memory");\n', "", "The host writes device memory."],
  ]),
  ...law("view/nestedArray", [
    ["  hostWaits(array.buffer);\n", "", "What is read was not written yet."],
  ]),
  ...law("view/asTypedArray", [
    ["  hostWaits(buffer);\n", "", "What is seen was not written yet."],
    ["start % size !== 0 || ", "", "Elements that are not aligned fail with the engine's error."],
    ["bytes.byteOffset + start", "bytes.byteOffset", "The first elements of the buffer are seen."],
  ]),
  ...law("view/asTypedArray.readonly", [
    [
      "    if (this.readonly && options.readonly !== true) throw notForWriting();\n",
      "",
      "What others take to be constant is given away to be written to.",
    ],
  ]),
  ...law("view/toPrimitive", [
    ["  throw noArithmetic(this);", "  return this.toString();", "Arithmetic with arrays is NaN, and a sum a text."],
    ['    if (hint === "string") return this.toString();\n', "", "An array in a template is an error."],
  ]),
  ...law("view/hasEqualElements", [
    [".dlpack.code !== BOOL", ".dlpack.code !== -1", "True is not true if another byte says so."],
    ["!one.dtype.equals(other.dtype) || ", "", "Arrays of other types are equal."],
  ]),
  ...law("view/copyOf", [
    ["hostWaitsForCopy(stream);", "void stream;", "What is copied to the host is used before it is there."],
    ["    buffer.close();\n", "", "A copy that fails keeps its memory."],
    ["dtype, false, buffer)", "dtype, false, null)", "Closing a copy frees nothing."],
    ['order === "K" ?', 'order === "C" ?', "The axes are nested in another order."],
  ]),
  ...law("view/streamFor", [
    ["  if (given !== undefined) return given;\n", "", "The copy's home is not the stream that was asked for."],
  ]),
  ...law("view/wanted", [
    [
      "throw noStreamOfHost();",
      "return { dtype, device, memory, stream: undefined };",
      "A stream that is of no use is left aside.",
    ],
  ]),
  ...law("view/ShapedArray.view", [
    ["throw noLayout(layout);", "void noLayout(layout);", "A clone of a layout makes a view whose methods fail."],
  ]),
  ...law("view/zeros", [
    ["else if (what.memory !== undefined) buffer.fill(0);", "", "Zeros are whatever was in the memory."],
  ]),
  ...law("view/allocateFrom", [
    ["wanted !== undefined && !isAt", "wanted === null && !isAt", "An array is elsewhere than it was asked to be."],
    ["buffer.setHomeStream(home);", "void home;", "Memory of another allocator has nobody's order."],
    ["    buffer.close();\n", "", "Memory that is refused is never freed."],
  ]),
  ...law("view/create", [
    ["bytes, stream ?? null)", "bytes, null)", "The home is not the stream asked for."],
    ["dtype, false, buffer)", "dtype, false, null)", "Closing an array that was made frees nothing."],
  ]),
  ...law("view/fromBuffer", [
    [
      "if (!(buffer instanceof MemoryBuffer)) throw noBuffer(buffer);",
      "",
      "A view of no memory is made, and fails later.",
    ],
  ]),
  ...law("view/range", [
    ["Math.max(0, Math.ceil(", "Math.max(0, Math.floor(", "The last number is missing."],
    ["step > 0n ? value < stop", "step > 0n ? value <= stop", "The stop is in the range."],
  ]),
  ...law("view/writtenAs", [
    ["at * dtype.itemsize", "at", "Elements are written over each other."],
  ]),
  ...law("view/nestedValues", [
    [
      "    if (item.length !== expected) {\n",
      "    if (item.length > expected) {\n",
      "Short rows have elements of undefined.",
    ],
    ["if (shape.length > 64)", "if (shape.length > 1e9)", "An array that contains itself is never done."],
  ]),
  ...law("view/describeArray", [
    ['buffer.kind !== "host" || ', "", "A console waits for a stream."],
    ["  if (buffer.isClosed) return `${about}, closed`;\n", "", "A closed array is shown as open."],
    ["of [FEW_OF_ROWS, 0]", "of [FEW_OF_ROWS]", "Of a large table one row of numbers is shown."],
    [
      "    if (rowsOf(array, count > most) > FEW_LINES) continue; // checked first, because there may be very many\n",
      "",
      "A console hangs.",
    ],
    ['if (text.split("\\n").length <= FEW_LINES) return text;', "return text;", "Long rows fill the console."],
  ]),
];
