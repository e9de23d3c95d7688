/** The protective lines of Vortex's files. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const vortexFileMutations: readonly Mutation[] = [
  ...law("vortex/ReadAhead.take", [
    [
      "      checkThere(bytes.buffer); // a source's bytes are used in place\n",
      "",
      "Bytes that were read, and transferred before they were used, fail with the engine's error.",
    ],
  ]),
  ...law("vortex/bytesReader", [
    ["  checkThere(memory);\n  const bytes", "  const bytes", "Bytes that were transferred are a file of 0 bytes."],
    [
      "    checkThere(memory); // it may be gone by now\n",
      "",
      "A read of bytes that were transferred fails with the engine's error.",
    ],
  ]),
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
  ...law("vortex/survivors", [
    [
      "const zone = Math.floor(start / known.zones.length);",
      "const zone = Math.ceil(start / known.zones.length);",
      "Rows are skipped because of the next zone's bounds.",
    ],
    [
      "await unlessWrong(() => file.statistics()) ?? []",
      "file.statistics()",
      "Rows cannot be read because of unusable statistics.",
    ],
  ]),
  ...law("vortex/batchesOfScan", [
    [
      "ahead.wanted < plan.readAhead && planned.length < windowsAhead",
      "true",
      "Reads are planned for all rows before the first row is returned.",
    ],
    [
      "numbers.getOrInsertComputed(layout, () => ahead.add(rangeOf(file, layout)))",
      "numbers.set(layout, ahead.add(rangeOf(file, layout)))",
      "Segments are read again for each batch that needs them.",
    ],
    ["      file.reader.checkOpen();\n", "", "A closed file gives all rows that were read already."],
  ]),
  ...law("vortex/planScan", [
    [
      "[...wanted, ...new Set(roots.filter((root) => !wanted.includes(root)))]",
      "wanted",
      "A filter needs columns that are not read.",
    ],
    ["fields.length - wanted.length", "0", "Columns that only the filter needs are returned."],
    ["start <= end && end <= layout.rows", "start <= end", "Rows that do not exist are read."],
    [
      "if (twice !== undefined) throw",
      "if (twice === null) throw",
      "A column that is requested twice fails far from the request.",
    ],
  ]),
  ...law("vortex/batchesOfPieces", [
    ["Math.min(end, at + most)", "end", "A batch has all rows of a column that is in one piece."],
    ["border - start < least", "border - start < 0", "Pieces of one row become batches of one row."],
    [
      "pieceEnd(field, start, nearest, least)",
      "pieceEnd(field, start, end, least)",
      "Columns before the last are concatenated.",
    ],
    ["Math.min(end, starts[at + 1] ?? end)", "end", "A batch continues past the end of a piece, and is concatenated."],
  ]),
  ...law("vortex/keptRows", [
    ["Math.floor(at / zone) + 1) * zone", "Math.floor(at / zone) + 2) * zone", "Zones are skipped."],
    ["      if (from < at) yield { start: from, end: at };\n", "", "Rows before a skipped zone are skipped."],
  ]),
  ...law("vortex/boundsOfZone", [
    [
      "valueAt(unknown, zone) === false",
      "valueAt(unknown, zone) !== undefined",
      "An unknown bound is trusted.",
    ],
  ]),
  ...law("vortex/zonesOf", [
    [
      "if (column === undefined) return null;",
      "if (column === undefined) continue;",
      "Zones with an unknown aggregate are read with the wrong columns.",
    ],
    [
      "if (metadata[0] !== 1) return null;",
      "if (metadata[0] === 0) return null;",
      "Zones of a later version are mistaken for the current one.",
    ],
  ]),
  ...law("vortex/openVortex", [
    ["    reader.close();\n", "", "A refused file stays open."],
  ]),
  ...law("vortex/readContainer", [
    [
      "if (dtypePart === null && dtype === undefined) fail(",
      "if (dtypePart === undefined) fail(",
      "The error for a file without a dtype does not say how to read it.",
    ],
  ]),
  ...law("vortex/segmentsOf", [
    ["if (offset < before)", "if (offset < 0)", "Segments that no writer would write are accepted."],
    ["if (offset + length > size)", "if (offset > size)", "A segment past the end of the file is read."],
    [
      "spec.getUint8(13) !== 0 || spec.getUint16(14, true) !== 0",
      "false",
      "Compressed bytes are read as if they were not compressed.",
    ],
  ]),
  ...law("vortex/layoutOf", [
    ["  if (depth === 0) table", "  if (depth === -1e9) table", "Nested layouts overflow the stack."],
    ["segment >= segmentCount", "segment > segmentCount", "A segment that does not exist is read."],
  ]),
  ...law("vortex/typedLayout", [
    [
      'if (read === undefined) return fail("is unknown");',
      'if (read === undefined) return fail("");',
      "The error does not say what is unknown.",
    ],
    ["if (starts.at(-1) !== node.rows)", "if (false)", "Rows that the file declares are missing."],
    ["rows !== null && child.rows !== rows", "false", "Columns have a different number of rows than their table."],
    ["length < children[0] || length > children[1]", "length < children[0]", "Extra children of a layout are ignored."],
    ["raw.segments.length !== segments", "false", "A layout without a segment gets the rows of the first segment."],
    [
      "message.bool(2) ?? node.dtype.nullable",
      "message.bool(2) ?? false",
      "Dictionaries of old files cannot be read.",
    ],
  ]),
  ...law("vortex/layoutTree", [
    [
      "segments[one.segment]?.length ?? 0 : sum",
      "1 : sum",
      "The size of a column is not reported.",
    ],
  ]),
  ...law("vortex/fileStatistics", [
    ["max: bound(2)", "max: bound(0)", "Files with requested rows are skipped."],
  ]),
  ...law("vortex/CheckedReader.read", [
    ["bytes.length !== length", "bytes.length > length", "A truncated source silently returns fewer bytes."],
    [
      "      if (bytes instanceof Uint8Array) checkThere(bytes.buffer);\n",
      "",
      "Bytes that are transferred while they are read seem to be cut off.",
    ],
  ]),
  ...law("vortex/CheckedReader.close", [
    [
      "if (this.#underWay === 0) this.#reader.close?.();",
      "this.#reader.close?.();",
      "A descriptor is closed during a read.",
    ],
    ["register(user, this.#open)", "register(user, this)", "In Deno a file is never collected."],
  ]),
  ...law("vortex/isFalsified", [
    [
      "predicate.parts.every(isPartFalsified)",
      "predicate.parts.some(isPartFalsified)",
      "Rows for which one part of an `or` is true are skipped.",
    ],
  ]),
  ...law("vortex/isTestFalsified", [
    [
      "return nullCount === 0;",
      "return nullCount === rows;",
      "Rows that are null, and requested as such, are skipped.",
    ],
  ]),
  ...law("vortex/isComparisonFalsified", [
    [
      '  if (literal.order === "float" && nanCount !== 0) return false;\n',
      "",
      "NaN rows, which are greater than everything, are skipped.",
    ],
  ]),
  ...law("vortex/batchesOf", [
    ["Math.min(end, at + most)", "at + most", "The last batch has rows that were not requested."],
  ]),
  ...law("vortex/matches", [
    [
      "new Uint8Array(array.length).fill(Number(isAnd))",
      "new Uint8Array(array.length)",
      "No row matches an `and`.",
    ],
  ]),
  ...law("vortex/wideOrder", [
    ["const flip = isSigned ? 0x8000_0000 : 0;", "const flip = 0;", "Negative numbers are greater than all others."],
    [
      "return () => wanted < 0n ? 1 : -1;",
      "return () => 0;",
      "A literal outside the range of the values equals all of them.",
    ],
    ["if (top !== high) return", "if (top < high) return", "Large numbers are compared by their lower halves."],
  ]),
  ...law("vortex/textOrder", [
    ["isEquality && size !== wanted.length", "size !== wanted.length", "Shorter texts are greater than all others."],
    [
      "return size === wanted.length ? 0 :",
      "return 0; return size === wanted.length ? 0 :",
      "A text equals its own prefix.",
    ],
  ]),
  ...law("vortex/HttpReader.check", [
    ['Number(range["start"]) !== offset || ', "", "Another range is accepted as the requested one."],
  ]),
  ...law("vortex/HttpReader.body", [
    [
      "if (done + part.value.length > length) {",
      "if (done < 0) {",
      "A server that sends more than requested causes a JavaScript error.",
    ],
  ]),
  ...law("vortex/compareWith", [
    ["order !== 0 || literal.isExact ? order : -1", "order", "A decimal equals a literal that was rounded to it."],
  ]),
  ...law("vortex/HttpReader.known", [
    ["      this.#version = undefined;\n", "", "A server that was busy once stays so to a program."],
  ]),
  ...law("vortex/floatOrder", [
    [" && ((words[each * row + last] ?? 0) & sign) !== 0", "", "Every NaN is below everything."],
    ["const isBelow = Number.isNaN(value) &&", "const isBelow = false &&", "A NaN is above everything in one runtime."],
  ]),
  ...law("vortex/floatKey", [
    ["key ^ 0x7fff_ffff_ffff_ffffn", "key", "Negative floats are in the reverse order."],
  ]),
  ...law("vortex/decimalLiteral", [
    [' - (parts["rest"] ?? "").length', "", "A decimal of 1.5 becomes 15."],
  ]),
  ...law("vortex/legacyZones", [
    [
      'sumOf(dtype.kind === "extension" ? dtype.storage : dtype)',
      "sumOf(dtype)",
      "Zones of dates in old files skip nothing.",
    ],
    ['        add("min_is_truncated", "minCut", boolDType);\n', "", "The zones of old files cannot be read."],
  ]),
  ...law("vortex/coalesce", [
    ["offset - last.end <= gap", "offset - last.end <= gap + 1", "More unneeded bytes are read than allowed."],
  ]),
  ...law("vortex/bindFilter", [
    ["negated ? opposite[op] : op", "op", "Negation has no effect on a comparison."],
  ]),
  ...law("vortex/bindGroup", [
    ["else if (group.kind !== kind)", "else if (false)", 'The parts of an "and" within an "or" are parts of the "or".'],
    ["if (depth > mostNested) throw tooNested();", "", "A filter that is nested too deep ends in a stack overflow."],
  ]),
  ...law("vortex/columnOf", [
    ["dtype.names.lastIndexOf(name) !== index", "index < 0", "Of two columns with the same name, the first is used."],
  ]),
  ...law("vortex/postscriptOf", [
    [
      "view.getUint32(tail + 4, true) !== MAGIC",
      "view.getUint32(tail + 4, true) === 0",
      "Any file with the right ending is accepted.",
    ],
    ["if (version !== VERSION)", "if (version === 0)", "A later version is read as the current one."],
  ]),
];
