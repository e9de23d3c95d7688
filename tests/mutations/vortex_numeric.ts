/** The protective lines of Vortex's numbers. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const vortexNumericMutations: readonly Mutation[] = [
  ...law("vortex/numeric.words", [
    [
      "Int32Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / 4))",
      "Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2)",
      "Columns of more than 2 GiB cannot be decoded.",
    ],
  ]),
  ...law("vortex/bitAt", [
    ["bits[Math.floor(at / 8)]", "bits[at >> 3]", "Rows beyond 2^31 are not valid."],
  ]),
  ...law("vortex/numeric.indicesOf", [
    ["0x1_0000_0000 * (", "0 * (", "An index beyond 2^32 becomes another one, which may be in bounds."],
  ]),
  ...law("vortex/numeric.unpack", [
    [
      "shift + width < bits || (bits === 8 && shift > 0)",
      "shift + width < bits",
      "The last word of a lane of bytes contains bits of its neighbour.",
    ],
    ["...maskFrom(bits, high, width), ", "", "Words that span two contain bits of the next one."],
  ]),
  ...law("vortex/numeric.steps", [
    ["...mask(bits, bits - 1, bits === 8),\n", "", "Small signed bytes contain bits of their neighbours."],
    ["splat(0x4530_0000_8010_0000n)", "splat(0x4530_0000_8000_0000n)", "Integers become wrong fractions."],
  ]),
  ...law("vortex/numeric.unpackInto", [
    [
      "const skipped = offset * bits / 8;",
      "const skipped = offset;",
      "A slice begins with words from outside it.",
    ],
  ]),
  ...law("vortex/numeric.applySteps", [
    ["Math.ceil(block.length / 64)", "Math.floor(block.length / 64)", "The last words keep their old contents."],
  ]),
  ...law("vortex/numeric.alpStep", [
    [
      "if (!(e <= most[bits] && f <= most[bits])) {",
      "if (false) {",
      "An exponent that no encoder produces makes all values infinite.",
    ],
  ]),
  ...law("vortex/numeric.lookUpLeft", [
    [
      "value === undefined && isValid(validity, row)",
      "false",
      "A float is made up from an invalid code.",
    ],
    [
      "value === undefined && isValid(validity, row)",
      "value === undefined",
      "The value under a null causes an error.",
    ],
  ]),
  ...law("vortex/numeric.joinInto", [
    ["  } else if (width >= 32) {", "  } else if (width > 32) {", "A lower part of 32 bits loses its upper part."],
    [
      "(left[row] ?? 0) * carried | ",
      "",
      "The bits of the upper part that belong to the upper half are lost.",
    ],
  ]),
  ...law("vortex/numeric.joinTimesInto", [
    [
      'bits === 64 ? "i64.load"',
      'bits === 32 ? "i64.load"',
      "Seconds of 32 bits take their neighbour as their upper half.",
    ],
    ['isSigned ? "s" : "u"', 'isSigned ? "u" : "u"', "Days before 1970 become days far in the future."],
  ]),
  ...law("vortex/numeric.joinPartsInto", [
    [
      "to[row * stride + word] = high >> 31;",
      "to[row * stride + word] = 0;",
      "A negative decimal becomes a large one.",
    ],
    ["<< sign >> sign", "", "A negative decimal of one byte becomes a positive one."],
  ]),
  ...law("vortex/numeric.deltaInto", [
    [
      "if (!Number.isInteger(blocks) || bases.length !== 128 * blocks) {",
      "if (false) {",
      "Lanes without a base begin with 0.",
    ],
    ["low >>> 0 < base >>> 0 ? 1 : 0", "0", "A sum of 64 bits loses its carry."],
  ]),
  ...law("vortex/numeric.rleCodes", [
    [
      "else if (isValid(validity, at - offset)) {",
      "else if (false) {",
      "An invalid index becomes the first of all values.",
    ],
    ["isValid(validity, at - offset)", "true", "The index under a null causes an error."],
    [
      "if (!(start <= end && end <= count)) {",
      "if (false) {",
      "A block reads values that do not exist.",
    ],
    ["end - start === 1 ? 0 : ", "", "A block of one value reads meaningless indices."],
    ["  const origin = starts[0] ?? 0;", "  const origin = 0;", "All values of a slice are shifted."],
  ]),
  ...law("vortex/numeric.checkRuns", [
    ["if (end <= previous) throw", "if (end < previous) throw", "A run without rows is accepted."],
    ["let previous = offset - 1;", "let previous = -1;", "Runs that end before the first row are accepted."],
    [
      "if (length > 0 && !(ends.length > 0 && previous >= offset + length)) {",
      "if (false) {",
      "The search for rows past the last run never ends.",
    ],
  ]),
  ...law("vortex/numeric.runsInto", [
    [
      "for (let word = 0; word < count; word++) {",
      "for (let word = 0; word < 1; word++) {",
      "For values of several words, all but the first word are 0.",
    ],
  ]),
  ...law("vortex/numeric.patchInto", [
    ["if (!(place >= 0 && place < length)) {", "if (!(place < length)) {", "A patch before the first row is lost."],
    ["if (values.length !== indices.length * width) {", "if (false) {", "Patches without a value are 0."],
  ]),
  ...law("vortex/numeric.patchLanesInto", [
    [
      "if (from > to || to > places.length) {",
      "if (from > to) {",
      "Patches that do not exist appear in the first row.",
    ],
    [
      "if (place < 0 || place >= length) continue;",
      "if (place < 0) continue;",
      "Patches outside a slice cause an error.",
    ],
  ]),
  ...law("vortex/numeric.indexColumn", [
    ["if (bits === 64) context.charge(8 * array.length, node);\n", "", "Indices do not count towards the limit."],
  ]),
  ...law("vortex/numeric.ptypeIn", [
    ["if (families[family](ptype)) return ptype;", "return ptype;", "Ends of runs can be negative."],
  ]),
  ...law("vortex/numeric.blockOffset", [
    ["  if (offset < 1024) return offset;\n", "  return offset;\n", "A slice begins in a block that is not its first."],
  ]),
  ...law("vortex/numeric.openPatches", [
    ["if (count < 1 || count > node.length) {", "if (count < 1) {", "There are more patches than rows."],
    [
      "if (count < 1 || count > node.length) {",
      "if (count > node.length) {",
      "Patches without any patch are accepted.",
    ],
  ]),
  ...law("vortex/numeric.forEncoding", [
    [
      "withNullable(dtype, false), node.path",
      "dtype, node.path",
      "A null reference causes an unrelated error.",
    ],
  ]),
  ...law("vortex/numeric.zigzagEncoding", [
    [
      "    if (!isSigned(dtype.ptype)) node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected signed`);\n",
      "",
      "An unsigned dtype is accepted for signed integers.",
    ],
  ]),
  ...law("vortex/numeric.bitPackedEncoding", [
    [
      "    if (width > bits) node.fail(`${node.id} packs ${node.typeText} to ${width} bits. Expected 0 to ${bits}`);\n",
      "",
      "A width without a loop reaches the engine.",
    ],
    ["node.expectSize(0, bytes, bytes);", "", "Words past the end of the buffer repeat what was decoded before."],
  ]),
  ...law("vortex/numeric.bitPackedV2Encoding", [
    ["node.expectChildren(fixed, fixed + 1);", "", "Unknown children are accepted."],
    ["hasValidity && !dtype.nullable", "false", "A non-nullable dtype has nulls."],
  ]),
  ...law("vortex/numeric.forV2Encoding", [
    [
      "Math.max(0, block * 1024 - offset)",
      "Math.max(0, block * 1024)",
      "Words get the reference of the previous block.",
    ],
  ]),
  ...law("vortex/numeric.decodeWords", [
    ["part.first === 0 ? offset : 0", "offset", "Blocks of another width are read from their middle."],
    [
      "width >= 0 && width <= bits && end <= size",
      "width >= 0 && width <= bits",
      "Words past the end of the buffer repeat what was decoded before.",
    ],
    [
      "width >= 0 && width <= bits && end <= size",
      "width >= 0 && end <= size",
      "A width without a loop reaches the engine.",
    ],
  ]),
  ...law("vortex/numeric.alpEncoding", [
    [
      "patchWords(bytes, bits, node, patches, context);",
      "",
      "Values that cannot be encoded as fractions are decoded as fractions.",
    ],
    ["node.expectChildren(1 + childrenOf(patches));", "", "Unknown children are accepted."],
  ]),
  ...law("vortex/numeric.alpRdEncoding", [
    ["if (width >= bits || width < bits - 16) {", "if (width >= bits) {", "Bits between the two parts are made up."],
    ["if (one >= 2 ** room) ", "if (one > 0xffff) ", "Upper parts lose their highest bits."],
    [
      "count > maxEntries || count > dictionary.length",
      "count > maxEntries",
      "Codes refer to entries that are not listed.",
    ],
    ["if (leftCode !== 1) ", "if (false) ", "Upper parts are read as a different type."],
  ]),
  ...law("vortex/numeric.runEndEncoding", [
    ["inNode(node, () => checkRuns(ends, node.length, offset));", "", "Runs are not checked."],
    ["while ((ends[first] ?? 0) <= offset) first++;", "", "A run without rows is kept."],
    [
      "Math.min((ends[first + run] ?? 0) - offset, length)",
      "(ends[first + run] ?? 0) - offset",
      "The last run that is kept ends past the last row.",
    ],
    ["if (bitAt(bits, from + run)) ", "", "Nulls become values."],
  ]),
  ...law("vortex/numeric.deltaEncoding", [
    [
      "count % 1024 !== 0 || count < offset + node.length",
      "count % 1024 !== 0",
      "There are more rows than differences.",
    ],
  ]),
  ...law("vortex/numeric.rleEncoding", [
    ['if (code !== "u8" && code !== "u16") ', "if (false) ", "Indices of a type that no encoder writes are accepted."],
    [
      "const { validity } = sliceOf(indices, offset, offset + length, context.allocator(node));",
      "const { validity } = indices;",
      "Nulls are in the wrong rows.",
    ],
  ]),
  ...law("vortex/numeric.sparseEncoding", [
    [
      "bits[at] = isThere ? (bits[at] ?? 0) | bit : (bits[at] ?? 0) & ~bit;",
      "bits[at] = (bits[at] ?? 0) | bit;",
      "Nulls among the values become values.",
    ],
    ["if (filled === null) fillBits(bits, 0, node.length);", "", "Rows with the fill value are null."],
  ]),
  ...law("vortex/numeric.patchedEncoding", [
    ["if (lanes < 1) ", "if (false) ", "An array without lanes loses its patches."],
    ["    out.set(bytesOf(inner));\n", "", "All values except the patches are 0."],
  ]),
  ...law("vortex/numeric.dateTimePartsEncoding", [
    ["[1e9, 1e6, 1e3, 1]", "[1e9, 1e6, 1e3, 1, 1]", "Instants of an unknown unit are read as seconds."],
  ]),
  ...law("vortex/numeric.decimalPartsEncoding", [
    ["if (count !== 0) ", "if (false) ", "Lower parts are lost."],
  ]),
  ...law("vortex/numeric.decimalPartsV2Encoding", [
    ["everyNumber(2)", "everyNumber(2).toReversed()", "Lower parts are read with the types of each other."],
  ]),
];
