/** The protective lines of views. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const viewMutations: readonly Mutation[] = [
  ...law("view/readElements", [
    [
      "    staging.pinUntilPassed(stream); // copies enqueued before the failure still write there\n",
      "",
      "A failed print leaves copies that write to released memory.",
    ],
    ["    hostWaits(buffer); // page-locked", "    // page-locked", "The printed elements are not written yet."],
    [
      "    hostWaitsForCopy(stream);\n  } catch (error) {",
      "  } catch (error) {",
      "The old contents are printed.",
    ],
  ]),
  ...law("view/isObject", [
    [
      " && !isOfOtherCopy(source)",
      "",
      "An array of Python of another copy of the package fails with an error of Python's.",
    ],
  ]),
  ...law("view/wayOut", [
    ['"getChild" in source\n', "false\n", "The error for a vector of apache-arrow names its data, which is no array."],
    ["  if (Array.isArray(source)) return", "  if (false) return", "The error for numbers only mentions protocols."],
  ]),
  ...law("view/StridedMemoryView.from", [
    [
      '    if (options !== none) checkPlace(options, "Cannot view an array");\n',
      "",
      "A number given as the device is ignored.",
    ],
    [
      "return isUsableAt(source, options) ? source : fromDlpack(source, options, make);",
      "return source;",
      "We read before the owner of a view has written.",
    ],
  ]),
  ...law("view/ShapedArray", [
    ["this.layout.transposed()", "this.layout", "An array's T is the array itself."],
    ["return this.reshaped([this.size]);", "return this.reshaped(this.shape);", "A flattened array has several axes."],
    ["at < extent; at++", "at < extent - 1; at++", "Iteration leaves out the last row."],
  ]),
  ...law("view/readElement", [
    ["  hostWaits(array.buffer);\n", "", "Elements are read before they are written."],
    ['  checkOnHost(array, "read an element of device memory");\n', "", "The host reads device memory."],
    ["  noteElement(array, at, false, call);\n", "", "A read that races with a stream is not reported."],
  ]),
  ...law("view/writeElement", [
    ["  hostWaits(array.buffer);\n", "", "A written element is overwritten by earlier work."],
    [
      'typeof value === "object" && value !== null ? copied(array.dtype, value) : value;',
      "value;",
      "A value that closes the memory fails with the engine's error.",
    ],
    [
      '  if (array.readonly) throw new TypeError("Cannot write an element of a read-only view: copy() it first");\n',
      "",
      "A read-only view is written.",
    ],
    ['  checkOnHost(array, "write an element of device memory");\n', "", "The host writes device memory."],
  ]),
  ...law("view/nestedArray", [
    ["  hostWaits(array.buffer);\n", "", "Elements are read before they are written."],
  ]),
  ...law("view/checkCount", [
    ["    count *= extent;\n", "    count = extent;\n", "A view of very many elements exhausts the memory."],
  ]),
  ...law("view/asTypedArray", [
    ["  hostWaits(buffer);\n", "", "The elements of the typed array are not written yet."],
    ["start % size !== 0 || ", "", "Unaligned elements fail with the engine's error."],
    [
      "placeOf(buffer, start, bytes)",
      "placeOf(buffer, 0, bytes)",
      "The typed array shows the start of the buffer.",
    ],
  ]),
  ...law("view/jsonOf", [
    ["if (Number.isSafeInteger(number)) return number;", "return number;", "Another number is written than there is."],
    ["  if (value instanceof Uint8Array) {\n", "  if (false) {\n", "Bytes are written as an object of numbers."],
    ["value.map(jsonOf)", "value", "A list of 64-bit integers cannot be written as JSON."],
  ]),
  ...law("view/asTypedArray.readonly", [
    [
      "    if (this.readonly && options.readonly !== true) throw notForWriting();\n",
      "",
      "Memory that others treat as constant is handed out as writable.",
    ],
  ]),
  ...law("view/toPrimitive", [
    [
      "  throw noArithmetic(this);",
      "  return this.toString();",
      "Arithmetic with arrays gives NaN, and a sum gives a text.",
    ],
    ['    if (hint === "string") return this.toString();\n', "", "An array in a template causes an error."],
  ]),
  ...law("view/hasEqualElements", [
    [
      ".dlpack.code !== dlpackCode.bool",
      ".dlpack.code !== -1",
      "A true value stored as another byte is not equal to true.",
    ],
    ["!one.dtype.equals(other.dtype) || ", "", "Arrays of different types are equal."],
  ]),
  ...law("view/copyOf", [
    ["hostWaitsForCopy(stream);", "void stream;", "A copy to the host is used before it is complete."],
    ['order === "K" ?', 'order === "C" ?', "The axes are nested in another order."],
  ]),
  ...law("view/newArray", [
    ["    buffer.close();\n", "", "A failed copy keeps its memory."],
    ["dtype, false, buffer)", "dtype, false, null)", "Closing a new array frees nothing."],
  ]),
  ...law("view/streamFor", [
    ["  if (given !== undefined) return given;\n", "", "The copy's home is not the requested stream."],
  ]),
  ...law("view/wanted", [
    [
      "throw noStreamOfHost();",
      "return { dtype, device, memory, stream: undefined };",
      "A stream that has no use is ignored.",
    ],
  ]),
  ...law("view/ShapedArray.view", [
    ["throw noLayout(layout);", "void noLayout(layout);", "A clone of a layout makes a view whose methods fail."],
  ]),
  ...law("view/zeros", [
    ["else if (what.memory !== undefined) buffer.fill(0);", "", "Zeros are the old contents of the memory."],
  ]),
  ...law("view/allocateIn", [
    ["wanted !== undefined && !isAt", "wanted === null && !isAt", "An array is not in the requested place."],
    ["buffer.setHomeStream(home);", "void home;", "Memory of another allocator has no order."],
    ["    buffer.close();\n", "", "Refused memory is never freed."],
  ]),
  ...law("view/create", [
    ["bytes, stream ?? null)", "bytes, null)", "The home is not the requested stream."],
  ]),
  ...law("view/fromBuffer", [
    [
      "if (!(buffer instanceof MemoryBuffer)) throw noBuffer(buffer);",
      "",
      "A view without memory is created, and fails later.",
    ],
  ]),
  ...law("view/range", [
    ["Math.max(0, Math.ceil(", "Math.max(0, Math.floor(", "The last number is missing."],
    ["(step > 0n ? 1n : -1n)) / step", "0n) / step", "The stop is included in the range."],
  ]),
  ...law("view/writtenAs", [
    ["i * dtype.itemsize", "i", "Elements are written over each other."],
  ]),
  ...law("view/nestedValues", [
    [
      "    if (count !== expected) throw",
      "    if (count > expected) throw",
      "The missing elements of short rows are undefined.",
    ],
    ["if (shape.length > 64)", "if (shape.length > 1e9)", "A container that contains itself is followed without end."],
  ]),
  ...law("view/copyFrom", [
    [
      "using view = this[viewAny](source); // not",
      "const view = this[viewAny](source); // not",
      "A foreign array is kept until it is collected.",
    ],
    [
      "if (source instanceof CopyableArray) return explainCopy",
      "if (false) return explainCopy",
      "An explanation closes the array that it is about.",
    ],
  ]),
  ...law("view/repackedFor", [
    [
      "  if (layout.volume === 0) return { layout: emptyOf(layout, itemsize), offset };\n",
      "",
      "An array without elements cannot be viewed with another type.",
    ],
    ["if (first % BigInt(alignment) !== 0n) throw", "if (false) throw", "Elements of another size are not aligned."],
    [
      "itemsize: layout.itemsize, sliceOffset: 0 })",
      "itemsize: layout.itemsize, sliceOffset: layout.sliceOffset })",
      "Elements of another size are sought further on.",
    ],
  ]),
  ...law("view/dtypeOfNested", [
    [
      "    if (other.name === dtype.name) return;",
      "    return;",
      "Typed arrays of several types are rounded to the first one's.",
    ],
  ]),
  ...law("view/describeArray", [
    ['buffer.kind !== "host" || ', "", "Printing to the console waits for a stream."],
    ["  if (buffer.isClosed) return `${about}, closed`;\n", "", "A closed array is printed as open."],
    ["of [MAX_IN_ROWS, 0]", "of [MAX_IN_ROWS]", "Only one row of a large table is printed."],
    [
      "    if (rowsOf(array, count > most) > FEW_LINES) continue; // checked first, because there may be very many\n",
      "",
      "The console hangs.",
    ],
    ['if (text.split("\\n").length <= FEW_LINES) return text;', "return text;", "Long rows fill the console."],
  ]),
];
