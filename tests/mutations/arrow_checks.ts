/** What is checked of Arrow structs before they are believed, and of arrays before they go out. */
import { inFile, type Mutation } from "./mutation.ts";

const fuzz = "tests/cdata/fuzz_test.ts";
const views = "tests/view/arrow_test.ts";
const releases = "tests/arrow/release_test.ts";

/** What can be broken there. */
export const arrowCheckMutations: readonly Mutation[] = [
  ...inFile("src/cdata/walk.ts", [fuzz, views], [
    ['    this.pointer(address, "address");\n', "", "A struct at NULL, or between two words, is read."],
    ["    if (depth > maxDepth) throw", "    if (false) throw", "Structs are followed without end."],
    [
      "    if (this.#seen.has(address)) throw",
      "    if (false) throw",
      "A struct that contains itself is followed without end.",
    ],
    ["    this.#seen.add(address);\n", "", "A struct that contains itself is followed without end."],
    ["    if (address === 0n) throw", "    if (false) throw", "What is at NULL is read."],
    ["    if (address % 8n !== 0n) throw", "    if (false) throw", "A wild pointer is followed."],
    ["    if (value >= 0n) return", "    return", "Negative counts are believed."],
    ["    if (count > maxStructs) throw", "    if (false) throw", "As much is read as a broken struct says."],
  ]),
  ...inFile("src/cdata/array_import.ts", [fuzz, views], [
    ["  walk.enter(address, depth);\n", "", "A struct that contains itself is followed without end."],
    ["  if (raw.release === 0n) throw", "  if (false) throw", "What was released is taken."],
    ["  if (!Number.isSafeInteger(start + length)) {\n", "  if (false) {\n", "An end that is no number is believed."],
    [
      "  if ((values === null) !== (raw.dictionary === 0n)) {\n",
      "  if (false) {\n",
      "A dictionary at NULL is read.",
    ],
    ["value >= -1n && value <= length", "true", "More nulls than elements are believed."],
    [
      "  if (hasViews(type) ? n < expected : n !== expected) {\n",
      "  if (false) {\n",
      "Buffers that are not there are read.",
    ],
    ["  if (n !== fields.length) throw", "  if (false) throw", "Children that are not there are read."],
    ["    if (pointer === 0n) throw", "    if (false) throw", "Offsets at NULL are read."],
    ["  if (ptr === 0n) throw", "  if (false) throw", "Elements at NULL are believed."],
    ["  if (ptr + BigInt(size) > 1n << 64n) {\n", "  if (false) {\n", "Memory beyond the end of memory is believed."],
  ]),
  ...inFile("src/cdata/schema_import.ts", ["tests/arrow/array_test.ts", fuzz], [
    ["  if (schema.release === 0n) throw", "  if (false) throw", "What was released is taken."],
    ["  if (schema.format === 0n) throw", "  if (false) throw", "A format at NULL is read."],
    [
      '  if (type.kind !== "int" && type.kind !== "uint") {\n',
      "  if (false) {\n",
      "Indices are read that are no integers.",
    ],
  ]),
  ...inFile("src/cdata/validate.ts", [views], [
    ["    if (!Number.isSafeInteger(value) || value < 0) refuse", "    if (false) refuse", "Negative lengths go out."],
    [
      "  if (nullCount > 0 && count > 0 && (buffers[0] ?? null) === null) {\n",
      "  if (false) {\n",
      "Nulls go out that nobody can find.",
    ],
    [
      "    if (size < bytes && !(i === 0 && buffer === null)) {\n",
      "    if (false) {\n",
      "A consumer reads behind a buffer.",
    ],
    ["    if (child.length < needs.childLength) {\n", "    if (false) {\n", "A consumer reads behind a child."],
  ]),
  ...inFile("src/arrow/array.ts", [views, releases, "tests/arrow/array_test.ts"], [
    ["    checkNode(this);\n", "", "A consumer reads behind a buffer of an array of ours."],
    ["    this.#onClose?.();\n", "", "An imported array is never given back."],
    ["    this.#check(index);\n", "", "Elements beyond the end are read."],
    [
      "    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= this.length)) {\n",
      "    if (false) {\n",
      "A slice reaches beyond its array.",
    ],
    ["this.#nullCount === 0 ? 0 : -1", "this.#nullCount", "A slice tells of the nulls of the whole array."],
  ]),
  ...inFile("src/cdata/buffers.ts", [views, "tests/arrow/array_test.ts", fuzz], [
    ["  if (first < 0n || last < first) {\n", "  if (false) {\n", "Offsets that decrease are believed."],
    [
      "  if (Number.isSafeInteger(value) && value >= 0) return value;\n",
      "  return value;\n",
      "Sizes that are no numbers are believed.",
    ],
    ["(end + 1) * (bits / 8)", "end * (bits / 8)", "The last offset is read behind its buffer."],
  ]),
  ...inFile("src/cdata/metadata.ts", [fuzz, "tests/arrow/array_test.ts"], [
    ["    if (value >= 0) return value;\n", "    return value;\n", "Texts of negative length are read."],
    ["  if (count > maxPairs) {\n", "  if (false) {\n", "As many pairs are read as a broken schema says."],
  ]),
  ...inFile("src/cdata/numbers.ts", [views], [
    [
      "hasNulls(child) && hasNullsIn(child, first, length)",
      "hasNulls(child)",
      "Nulls of other lists are held against one.",
    ],
    [
      "if (isNullAt(array, i)) return true;",
      "if (isNullAt(array, i - first)) return true;",
      "Nulls of other lists are asked.",
    ],
    ["  if (hasNulls(array)) throw nullsInView(array);\n", "", "Nulls are taken for values."],
    [
      "    checkTree(node);\n",
      "",
      "Lists of bits with fewer inside than they say are a view of what lies behind them.",
    ],
    [
      "  if (!layout.isContiguousC) return refuse",
      "  if (false) return refuse",
      "Elements out of order go out as if they were in it.",
    ],
  ]),
  ...inFile("src/cdata/requested_schema.ts", [releases], [
    [
      "type.children.map((one) => renamedLike(one, theirs))",
      "type.children.map(child)",
      "Columns are given each other's names.",
    ],
    [
      "const other = areNamed ? wanted.find(({ name }) => name === child.name) : wanted[i];",
      "const other = wanted[i];",
      "Columns that are requested in another order are refused.",
    ],
    [
      "  if (ours === undefined || theirs === undefined) return field;\n",
      "  return field;\n",
      "A consumer gets what it cannot use.",
    ],
  ]),
];
