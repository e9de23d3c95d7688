/** The protective lines of Vortex's numbers. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const vortexNumericMutations: readonly Mutation[] = [
  ...law("vortex/numeric.indicesOf", [
    ["0x1_0000_0000 * (", "0 * (", "An index beyond 2^32 is another one, which may be in bounds."],
  ]),
  ...law("vortex/numeric.unpack", [
    [
      "shift + width < bits || (bits === 8 && shift > 0)",
      "shift + width < bits",
      "The last word of a lane of bytes has bits of its neighbour.",
    ],
    ["...maskFrom(bits, high, width), ", "", "Words that lie across two have bits of the next one."],
  ]),
  ...law("vortex/numeric.steps", [
    ["...mask(bits, bits - 1, bits === 8),\n", "", "Small signed bytes have bits of their neighbours."],
    ["splat(0x4530_0000_8010_0000n)", "splat(0x4530_0000_8000_0000n)", "Integers become other fractions."],
  ]),
  ...law("vortex/numeric.unpackInto", [
    [
      "const skipped = offset * bits / 8;",
      "const skipped = offset;",
      "A slice begins with words that are not its own.",
    ],
  ]),
  ...law("vortex/numeric.applySteps", [
    ["Math.ceil(block.length / 64)", "Math.floor(block.length / 64)", "The last words are what was there before."],
  ]),
  ...law("vortex/numeric.alpStep", [
    [
      "if (!(e <= most[bits] && f <= most[bits])) {",
      "if (false) {",
      "An exponent that no encoder makes gives infinity for all values.",
    ],
  ]),
  ...law("vortex/numeric.lookUpLeft", [
    [
      "value === undefined && isValid(validity, row)",
      "false",
      "A float is made up from a code that stands for nothing.",
    ],
    [
      "value === undefined && isValid(validity, row)",
      "value === undefined",
      "What stands under a null makes an error.",
    ],
  ]),
  ...law("vortex/numeric.joinInto", [
    ["  } else if (width >= 32) {", "  } else if (width > 32) {", "A lower part of 32 bits loses its upper part."],
    [
      "(left[row] ?? 0) * carried | ",
      "",
      "The upper part's bits that lie in the upper half are lost.",
    ],
  ]),
  ...law("vortex/numeric.joinTimesInto", [
    [
      'bits === 64 ? "i64.load"',
      'bits === 32 ? "i64.load"',
      "Seconds of 32 bits take their neighbour for their upper half.",
    ],
    ['isSigned ? "s" : "u"', 'isSigned ? "u" : "u"', "Days before 1970 are far in the future."],
  ]),
  ...law("vortex/numeric.joinPartsInto", [
    ["to[row * stride + word] = high >> 31;", "to[row * stride + word] = 0;", "A negative decimal is a large one."],
    ["<< sign >> sign", "", "A negative decimal of one byte is a positive one."],
  ]),
  ...law("vortex/numeric.deltaInto", [
    [
      "if (!Number.isInteger(blocks) || bases.length !== 128 * blocks) {",
      "if (false) {",
      "Lanes without a base begin with 0.",
    ],
    ["low >>> 0 < base >>> 0 ? 1 : 0", "0", "A sum of 64 bits loses what is carried."],
  ]),
  ...law("vortex/numeric.takeInto", [
    [
      "if ((codes[row] ?? 0) < count || !isValid(validity, row)) continue;",
      "continue;",
      "A code that stands for nothing is 0.",
    ],
    [" || !isValid(validity, row)", "", "What stands under a null makes an error."],
  ]),
  ...law("vortex/numeric.rleInto", [
    [
      "else if (isValid(validity, at - offset)) {",
      "else if (false) {",
      "An index that stands for nothing is the first value of all.",
    ],
    [
      "if (!(start <= end && end <= values.length / width)) {",
      "if (false) {",
      "A block reads values that are not there.",
    ],
    ["end - start === 1 ? 0 : ", "", "A block of one value looks at indices that mean nothing."],
    ["  const origin = starts[0] ?? 0;", "  const origin = 0;", "Of a slice all values are shifted."],
  ]),
  ...law("vortex/numeric.checkRuns", [
    ["if (end <= previous) throw", "if (end < previous) throw", "A run without rows is taken."],
    ["let previous = offset - 1;", "let previous = -1;", "Runs that end before the first row are taken."],
    [
      "if (length > 0 && !(ends.length > 0 && previous >= offset + length)) {",
      "if (false) {",
      "Rows behind the last run are sought for ever.",
    ],
  ]),
  ...law("vortex/numeric.runsInto", [
    [
      "for (let word = 0; word < count; word++) {",
      "for (let word = 0; word < 1; word++) {",
      "Of values that are several words all but the first are 0.",
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
      "Patches that are not there stand in the first row.",
    ],
    [
      "if (place < 0 || place >= length) continue;",
      "if (place < 0) continue;",
      "What a slice has cut off makes an error.",
    ],
  ]),
  ...law("vortex/numeric.indexColumn", [
    ["if (bits === 64) context.charge(8 * array.length, node);\n", "", "Indices are not counted."],
  ]),
  ...law("vortex/numeric.ptypeIn", [
    ["if (families[family](ptype)) return ptype;", "return ptype;", "Ends of runs may be negative."],
  ]),
  ...law("vortex/numeric.blockOffset", [
    ["  if (offset < 1024) return offset;\n", "  return offset;\n", "A slice begins in a block that is not its first."],
  ]),
  ...law("vortex/numeric.openPatches", [
    ["if (count < 1 || count > node.length) {", "if (count < 1) {", "There are more patches than rows."],
    ["if (count < 1 || count > node.length) {", "if (count > node.length) {", "There are patches, and none of them."],
  ]),
  ...law("vortex/numeric.forEncoding", [
    [
      "withNullable(dtype, false), node.path",
      "dtype, node.path",
      "A reference that is null gets an error that is none of the message's.",
    ],
  ]),
  ...law("vortex/numeric.zigzagEncoding", [
    [
      '    if (!dtype.ptype.startsWith("i")) node.fail(`${node.id} cannot have the dtype ${node.typeText}. Expected signed`);\n',
      "",
      "Unsigned integers are made of signed ones.",
    ],
  ]),
  ...law("vortex/numeric.bitPackedEncoding", [
    [
      "    if (width > bits) node.fail(`${node.id} packs ${node.typeText} to ${width} bits. Expected 0 to ${bits}`);\n",
      "",
      "A width that no loop is for reaches the engine.",
    ],
    ["node.expectSize(0, bytes, bytes);", "", "Words behind the end of the buffer are what was decoded before."],
  ]),
  ...law("vortex/numeric.bitPackedV2Encoding", [
    ["node.expectChildren(fixed, fixed + 1);", "", "Children are taken that nobody knows."],
    ["hasValidity && !dtype.nullable", "false", "There are nulls of a dtype that has none."],
  ]),
  ...law("vortex/numeric.forV2Encoding", [
    ["Math.max(0, block * 1024 - offset)", "Math.max(0, block * 1024)", "Words get the reference of the block before."],
  ]),
  ...law("vortex/numeric.decodeWords", [
    ["part.first === 0 ? offset : 0", "offset", "Blocks of another width begin in the middle."],
    [
      "width >= 0 && width <= bits && end <= size",
      "width >= 0 && width <= bits",
      "Words behind the end are what was decoded before.",
    ],
    [
      "width >= 0 && width <= bits && end <= size",
      "width >= 0 && end <= size",
      "A width that no loop is for reaches the engine.",
    ],
  ]),
  ...law("vortex/numeric.alpEncoding", [
    ["patchWords(bytes, bits, node, patches, context);", "", "What is no fraction is one."],
    ["node.expectChildren(1 + childrenOf(patches));", "", "Children are taken that nobody knows."],
  ]),
  ...law("vortex/numeric.alpRdEncoding", [
    ["if (width >= bits || width < bits - 16) {", "if (width >= bits) {", "Bits between both parts are made up."],
    ["if (one >= 2 ** room) ", "if (one > 0xffff) ", "Upper parts lose their highest bits."],
    [
      "count > mostEntries || count > dictionary.length",
      "count > mostEntries",
      "Codes stand for entries that are not listed.",
    ],
    ["if (leftCode !== 1) ", "if (false) ", "Upper parts are read as what they are not."],
  ]),
  ...law("vortex/numeric.runEndEncoding", [
    ["inNode(node, () => checkRuns(ends, node.length, offset));", "", "Runs are taken as they come."],
    ["while ((ends[first] ?? 0) <= offset) first++;", "", "A run is kept that has no rows."],
    [
      "Math.min((ends[first + run] ?? 0) - offset, length)",
      "(ends[first + run] ?? 0) - offset",
      "The last run that is kept ends behind the last row.",
    ],
    ["if (bitAt(bits, from + run)) ", "", "Nulls are values."],
  ]),
  ...law("vortex/numeric.deltaEncoding", [
    [
      "count % 1024 !== 0 || count < offset + node.length",
      "count % 1024 !== 0",
      "There are more rows than differences.",
    ],
  ]),
  ...law("vortex/numeric.rleEncoding", [
    ['if (code !== "u8" && code !== "u16") ', "if (false) ", "Indices are of a ptype that nobody writes."],
    [
      "const { validity } = sliceOf(indices, offset, offset + length, context.allocator(node));",
      "const { validity } = indices;",
      "Nulls are in other rows.",
    ],
  ]),
  ...law("vortex/numeric.sparseEncoding", [
    [
      "bits[at] = isThere ? (bits[at] ?? 0) | bit : (bits[at] ?? 0) & ~bit;",
      "bits[at] = (bits[at] ?? 0) | bit;",
      "Nulls among the values are values.",
    ],
    ["if (filled === null) fillBits(bits, 0, node.length);", "", "Rows that have the value of all are null."],
  ]),
  ...law("vortex/numeric.patchedEncoding", [
    ["if (lanes < 1) ", "if (false) ", "An array without lanes loses its patches."],
    ["    out.set(bytesOf(inner));\n", "", "All but the patches are 0."],
  ]),
  ...law("vortex/numeric.dateTimePartsEncoding", [
    ["[1e9, 1e6, 1e3, 1]", "[1e9, 1e6, 1e3, 1, 1]", "Instants of an unknown unit are of seconds."],
  ]),
  ...law("vortex/numeric.decimalPartsEncoding", [
    ["if (count !== 0) ", "if (false) ", "Lower parts are lost."],
  ]),
  ...law("vortex/numeric.decimalPartsV2Encoding", [
    ["everyNumber(2)", "everyNumber(2).toReversed()", "Lower parts are read as each other's ptype."],
  ]),
];
