/** The protective lines of Vortex's files. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const vortexFileMutations: readonly Mutation[] = [
  ...law("vortex/ReadAhead.fill", [
    [
      "next === undefined || this.#held + next.length > this.#options.bytes && this.#held > 0",
      "next === undefined",
      "Everything is read ahead.",
    ],
  ]),
  ...law("vortex/ReadAhead.plan", [
    ["      if (group.length > 0 && total + length > budget) break;\n", "", "Everything is read at once."],
  ]),
  ...law("vortex/VortexFile.survivors", [
    [
      "const zone = Math.floor(start / zones.length);",
      "const zone = Math.ceil(start / zones.length);",
      "Rows are left out by what is true of the next zone.",
    ],
  ]),
  ...law("vortex/fileStatistics", [
    ["max: bound(2)", "max: bound(0)", "Files are left out whose rows are wanted."],
  ]),
  ...law("vortex/CheckedReader.read", [
    ["bytes.length !== length", "bytes.length > length", "A source that was cut off gives fewer bytes in silence."],
  ]),
  ...law("vortex/CheckedReader.close", [
    [
      "if (this.#underWay === 0) this.#reader.close?.();",
      "this.#reader.close?.();",
      "A descriptor is closed below a read.",
    ],
  ]),
  ...law("vortex/isFalsified", [
    [
      "predicate.parts.every(isPartFalsified)",
      "predicate.parts.some(isPartFalsified)",
      "Rows are left out of which one part of an `or` is true.",
    ],
  ]),
  ...law("vortex/isTestFalsified", [
    ["return nullCount === 0;", "return nullCount === rows;", "Rows are left out that are null, and wanted as such."],
  ]),
  ...law("vortex/isComparisonFalsified", [
    [
      '  if (literal.order === "float" && nanCount !== 0) return false;\n',
      "",
      "Rows are left out that are NaN, which is greater than everything.",
    ],
  ]),
  ...law("vortex/batchesOf", [
    ["Math.min(end, at + most)", "at + most", "The last batch has rows that were not wanted."],
  ]),
  ...law("vortex/matches", [
    [
      "new Uint8Array(array.length).fill(Number(isAnd))",
      "new Uint8Array(array.length)",
      "No row is wanted by an `and`.",
    ],
  ]),
  ...law("vortex/HttpReader.check", [
    ['Number(range["start"]) !== offset || ', "", "Another range is taken for the one that was asked for."],
  ]),
  ...law("vortex/HttpReader.body", [
    [
      "if (done + part.value.length > length) {",
      "if (done < 0) {",
      "A server that sends more than it was asked for is an error of JavaScript's.",
    ],
  ]),
  ...law("vortex/compareWith", [
    ["order !== 0 || literal.isExact ? order : -1", "order", "A decimal is equal to what it was rounded from."],
  ]),
  ...law("vortex/floatKey", [
    ["key ^ 0x7fff_ffff_ffff_ffffn", "key", "Negative floats stand the wrong way round."],
  ]),
  ...law("vortex/decimalLiteral", [
    [' - (parts["rest"] ?? "").length', "", "A decimal of 1.5 is 15."],
  ]),
  ...law("vortex/legacyZones", [
    ['        add("min_is_truncated", "minCut", boolDType);\n', "", "The zones of old files cannot be read."],
  ]),
  ...law("vortex/coalesce", [
    ["offset - last.end <= gap", "offset - last.end <= gap + 1", "More is read that nobody wants than was said."],
  ]),
  ...law("vortex/bindFilter", [
    ["negated ? opposite[op] : op", "op", "Negation does nothing to a comparison."],
  ]),
  ...law("vortex/columnOf", [
    ["dtype.names.lastIndexOf(name) !== index", "index < 0", "Of two columns with a name the first is meant."],
  ]),
  ...law("vortex/postscriptOf", [
    [
      "view.getUint32(tail + 4, true) !== MAGIC",
      "view.getUint32(tail + 4, true) === 0",
      "Whatever ends like a file is read as one.",
    ],
  ]),
];
