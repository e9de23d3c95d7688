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
  ...law("vortex/survivors", [
    [
      "const zone = Math.floor(start / known.zones.length);",
      "const zone = Math.ceil(start / known.zones.length);",
      "Rows are left out by what is true of the next zone.",
    ],
    [
      "await unlessWrong(() => file.statistics()) ?? []",
      "file.statistics()",
      "Rows cannot be read because of statistics that say nothing.",
    ],
  ]),
  ...law("vortex/batchesOfScan", [
    [
      "ahead.wanted < plan.readAhead && planned.length < windowsAhead",
      "true",
      "What is read is planned for all rows before the first one comes.",
    ],
    ["    if (!numbers.has(layout)) numbers", "    numbers", "Segments are read once for each batch that needs them."],
  ]),
  ...law("vortex/planScan", [
    [
      "[...wanted, ...new Set(roots.filter((root) => !wanted.includes(root)))]",
      "wanted",
      "A filter looks at columns that are not read.",
    ],
    ["fields.length - wanted.length", "0", "Columns come that only the filter needs."],
    ["start <= end && end <= layout.rows", "start <= end", "Rows are read that are not there."],
    [
      "if (twice !== undefined) throw",
      "if (twice === null) throw",
      "A column that is asked for twice fails far from there.",
    ],
  ]),
  ...law("vortex/batchesOfPieces", [
    ["Math.min(end, at + most)", "end", "A batch has the rows of a whole column that is in one piece."],
    ["border - start < least", "border - start < 0", "Pieces of a row are batches of a row."],
    [
      "pieceEnd(field, start, nearest, least)",
      "pieceEnd(field, start, end, least)",
      "Columns before the last are put together.",
    ],
    ["Math.min(end, starts[at + 1] ?? end)", "end", "A batch goes on where a piece ends, and is put together."],
  ]),
  ...law("vortex/keptRows", [
    ["Math.floor(at / zone) + 1) * zone", "Math.floor(at / zone) + 2) * zone", "Zones are passed over."],
    ["      if (from < at) yield { start: from, end: at };\n", "", "Rows before a zone that is left out are left out."],
  ]),
  ...law("vortex/boundsOfZone", [
    [
      "valueAt(unknown, zone) === false",
      "valueAt(unknown, zone) !== undefined",
      "A bound is believed that nobody knows.",
    ],
  ]),
  ...law("vortex/zonesOf", [
    ["if (column === undefined) return null;", "if (column === undefined) continue;", "Zones are read as others."],
    [
      "if (metadata[0] !== 1) return null;",
      "if (metadata[0] === 0) return null;",
      "Zones of a later version are taken for today's.",
    ],
  ]),
  ...law("vortex/openVortex", [
    ["    reader.close();\n", "", "A file that is refused stays open."],
  ]),
  ...law("vortex/readContainer", [
    [
      "if (dtypePart === null && dtype === undefined) fail(",
      "if (dtypePart === undefined) fail(",
      "A file without a dtype is refused without saying how it can be read.",
    ],
  ]),
  ...law("vortex/segmentsOf", [
    ["if (offset < before)", "if (offset < 0)", "Segments that no writer would write are accepted."],
    ["if (offset + length > size)", "if (offset > size)", "A segment is looked for behind the end."],
    ["spec.getUint8(13) !== 0 || spec.getUint16(14, true) !== 0", "false", "Compressed bytes are read as they are."],
  ]),
  ...law("vortex/layoutOf", [
    ["  if (depth === 0) table", "  if (depth === -1e9) table", "Layouts in each other use up the stack."],
    ["segment >= segmentCount", "segment > segmentCount", "A segment is read that is not there."],
  ]),
  ...law("vortex/typedLayout", [
    [
      'if (read === undefined) return fail("is unknown");',
      'if (read === undefined) return fail("");',
      "Nobody learns what is missing.",
    ],
    ["if (starts.at(-1) !== node.rows)", "if (false)", "Rows are missing that the file says it has."],
    ["rows !== null && child.rows !== rows", "false", "Columns have other rows than their table."],
    ["length < children[0] || length > children[1]", "length < children[0]", "What else a layout has is left aside."],
    ["raw.segments.length !== segments", "false", "A layout without a segment has the first one's rows."],
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
      "Nobody learns how large a column is.",
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
  ...law("vortex/wideOrder", [
    ["const flip = isSigned ? 0x8000_0000 : 0;", "const flip = 0;", "Negative numbers are greater than all others."],
    ["return () => wanted < 0n ? 1 : -1;", "return () => 0;", "A literal that no value can be is equal to all."],
    ["if (top !== high) return", "if (top < high) return", "Large numbers are compared by their lower halves."],
  ]),
  ...law("vortex/textOrder", [
    ["isEquality && size !== wanted.length", "size !== wanted.length", "Shorter texts are greater than all others."],
    [
      "return size === wanted.length ? 0 :",
      "return 0; return size === wanted.length ? 0 :",
      "A text is equal to what it begins with.",
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
    [
      'sumOf(dtype.kind === "extension" ? dtype.storage : dtype)',
      "sumOf(dtype)",
      "Zones of dates in old files spare nothing.",
    ],
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
  ...law("vortex/columnsNear", [
    ["2 * letters <= near.length", "true", "Whatever column is asked for, another one is proposed."],
    ["names.slice(0, listed)", "names", "A mistyped name is answered with thousands of others."],
  ]),
  ...law("vortex/postscriptOf", [
    [
      "view.getUint32(tail + 4, true) !== MAGIC",
      "view.getUint32(tail + 4, true) === 0",
      "Whatever ends like a file is read as one.",
    ],
    ["if (version !== VERSION)", "if (version === 0)", "A later version is read as if it were today's."],
  ]),
];
