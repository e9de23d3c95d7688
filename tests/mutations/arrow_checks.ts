/** What is checked of Arrow structs before they are believed, and of arrays before they go out. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const arrowCheckMutations: readonly Mutation[] = [
  ...law("cdata/Walk.enter", [
    ['    this.pointer(address, "address");\n', "", "A struct at NULL, or between two words, is read."],
    ["    if (depth > maxDepth) throw", "    if (false) throw", "Structs are followed without end."],
    [
      "    if (this.#seen.has(address)) throw",
      "    if (false) throw",
      "A struct that contains itself is followed without end.",
    ],
    ["    this.#seen.add(address);\n", "", "A struct that contains itself is followed without end."],
  ]),
  ...law("cdata/Walk.pointer", [
    ["    if (address === 0n) throw", "    if (false) throw", "What is at NULL is read."],
    ["    if (address % 8n !== 0n) throw", "    if (false) throw", "A wild pointer is followed."],
  ]),
  ...law("cdata/Walk.count", [
    ["    if (value >= 0n) return", "    return", "Negative counts are believed."],
  ]),
  ...law("cdata/Walk.pointers", [
    ["    if (count > maxStructs) throw", "    if (false) throw", "As much is read as a broken struct says."],
  ]),
  ...law("cdata/readArray", [
    ["  walk.enter(address, depth);\n", "", "A struct that contains itself is followed without end."],
    ["  if (raw.release === 0n) throw", "  if (false) throw", "What was released is taken."],
    ["  if (!Number.isSafeInteger(start + length)) {\n", "  if (false) {\n", "An end that is no number is believed."],
    ["  if ((values === null) !== (raw.dictionary === 0n)) {\n", "  if (false) {\n", "A dictionary at NULL is read."],
  ]),
  ...law("cdata/readNullCount", [
    ["value >= -1n && value <= length", "true", "More nulls than elements are believed."],
  ]),
  ...law("cdata/readBuffers", [
    [
      "  if (hasViews(type) ? n < expected : n !== expected) {\n",
      "  if (false) {\n",
      "Buffers that are not there are read.",
    ],
  ]),
  ...law("cdata/readChildren", [
    ["  if (n !== fields.length) throw", "  if (false) throw", "Children that are not there are read."],
  ]),
  ...law("cdata/probe", [
    ["    if (pointer === 0n) throw", "    if (false) throw", "Offsets at NULL are read."],
  ]),
  ...law("cdata/makeBuffer", [
    ["  if (ptr === 0n) throw", "  if (false) throw", "Elements at NULL are believed."],
    ["  if (ptr + BigInt(size) > 1n << 64n) {\n", "  if (false) {\n", "Memory beyond the end of memory is believed."],
  ]),
  ...law("cdata/readField", [
    ["  if (schema.release === 0n) throw", "  if (false) throw", "What was released is taken."],
    ["  if (schema.format === 0n) throw", "  if (false) throw", "A format at NULL is read."],
  ]),
  ...law("cdata/readType", [
    [
      '  if (type.kind !== "int" && type.kind !== "uint") {\n',
      "  if (false) {\n",
      "Indices are read that are no integers.",
    ],
  ]),
  ...law("cdata/checkNode", [
    ["    if (!Number.isSafeInteger(value) || value < 0) refuse", "    if (false) refuse", "Negative lengths go out."],
    [
      "  if (nullCount > 0 && count > 0 && (buffers[0] ?? null) === null) {\n",
      "  if (false) {\n",
      "Nulls go out that nobody can find.",
    ],
  ]),
  ...law("cdata/checkSizes", [
    [
      "    if (size < bytes && !(i === 0 && buffer === null)) {\n",
      "    if (false) {\n",
      "A consumer reads behind a buffer.",
    ],
    ["    if (child.length < needs.childLength) {\n", "    if (false) {\n", "A consumer reads behind a child."],
  ]),
  ...law("arrow/ArrowArray.constructor", [
    ["    checkNode(this);\n", "", "A consumer reads behind a buffer of an array of ours."],
  ]),
  ...law("arrow/ArrowArray.close", [
    ["    this.#onClose?.();\n", "", "An imported array is never given back."],
  ]),
  ...law("arrow/ArrowArray.isNull", [
    ["    this.#check(index);\n", "", "Elements beyond the end are read."],
  ]),
  ...law("arrow/ArrowArray.sliced", [
    [
      "    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= this.length)) {\n",
      "    if (false) {\n",
      "A slice reaches beyond its array.",
    ],
    ["this.#nullCount === 0 ? 0 : -1", "this.#nullCount", "A slice tells of the nulls of the whole array."],
  ]),
  ...law("cdata/lastOffset", [
    ["  if (first < 0n || last < first) {\n", "  if (false) {\n", "Offsets that decrease are believed."],
  ]),
  ...law("cdata/safe", [
    [
      "  if (Number.isSafeInteger(value) && value >= 0) return value;\n",
      "  return value;\n",
      "Sizes that are no numbers are believed.",
    ],
  ]),
  ...law("cdata/offsetBytes", [
    ["(end + 1) * (bits / 8)", "end * (bits / 8)", "The last offset is read behind its buffer."],
  ]),
  ...law("cdata/readMetadata", [
    ["    if (value >= 0) return value;\n", "    return value;\n", "Texts of negative length are read."],
    ["  if (count > maxPairs) {\n", "  if (false) {\n", "As many pairs are read as a broken schema says."],
  ]),
  ...law("cdata/valuesOf", [
    [
      "hasNulls(child) && hasNullsIn(child, first, length)",
      "hasNulls(child)",
      "Nulls of other lists are held against one.",
    ],
  ]),
  ...law("cdata/hasNullsIn", [
    [
      "if (isNullAt(array, i)) return true;",
      "if (isNullAt(array, i - first)) return true;",
      "Nulls of other lists are asked.",
    ],
  ]),
  ...law("cdata/numbersOf", [
    ["  if (hasNulls(array)) throw nullsInView(array);\n", "", "Nulls are taken for values."],
  ]),
  ...law("cdata/importNumbers", [
    [
      "    checkTree(node);\n",
      "",
      "Lists of bits with fewer inside than they say are a view of what lies behind them.",
    ],
  ]),
  ...law("cdata/nodeOfNumbers", [
    [
      "  if (!layout.isContiguousC) return refuse",
      "  if (false) return refuse",
      "Elements out of order go out as if they were in it.",
    ],
  ]),
  ...law("cdata/renamed", [
    [
      "type.children.map((one) => renamedLike(one, theirs))",
      "type.children.map(child)",
      "Columns are given each other's names.",
    ],
  ]),
  ...law("cdata/clash", [
    [
      "const other = areNamed ? wanted.find(({ name }) => name === child.name) : wanted[i];",
      "const other = wanted[i];",
      "Columns that are requested in another order are refused.",
    ],
  ]),
  ...law("cdata/applyRequestedSchema", [
    [
      "  if (ours === undefined || theirs === undefined) return field;\n",
      "  return field;\n",
      "A consumer gets what it cannot use.",
    ],
  ]),
];
