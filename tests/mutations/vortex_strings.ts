/** The protective lines of Vortex's strings and compressed data. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const vortexStringMutations: readonly Mutation[] = [
  ...law("vortex/strings/partsOf", [
    ["if (bytes + length > limit) {", "if (false) {", "A view's offset in a buffer exceeds 31 bits."],
    ["if (length > limit) {", "if (false) {", "A string that is too large for any buffer gets one anyway."],
  ]),
  ...law("vortex/strings/writeViews", [
    [" & keptBits(length - 8)", "", "The end of a view contains bytes of the next string."],
    [" & keptBits(length - 4)", "", "The end of a view contains bytes of the next string."],
    [" & keptBits(length)", "", "The end of a view contains bytes of the next string."],
    ["views[to + 2] = index;", "", "All strings are in the first buffer."],
  ]),
  ...law("vortex/strings/fsstTable", [
    ["count > ESCAPE || ", "", "The escape is accepted as a symbol."],
    ["size < 1 || size > SYMBOL_BYTES", "false", "A symbol has more bytes than the table allows."],
    ["seen |= symbols", "seen = symbols", "Bytes that are not text are mistaken for ASCII."],
  ]),
  ...law("vortex/strings/onPairTable", [
    ["size < 1 || size > TOKEN_BYTES", "false", "A token has more bytes than the table allows."],
    ["      seen |= byte;\n", "", "Bytes that are not text are mistaken for ASCII."],
  ]),
  ...law("vortex/strings/decodeRow", [
    ["++code === stop", "++code < 0", "A row takes a byte of the next one."],
    ["if (size === 0) fail(", "if (size < 0) fail(", "An invalid code is skipped."],
    ["if (at + size > length) fail(", "if (at < 0) fail(", "A row overwrites the next one."],
    ["if (at !== length) fail(", "if (at < 0) fail(", "A row ends with old contents of the memory."],
  ]),
  ...law("vortex/strings/CodeLoop.run", [
    ["      seen |= results[SEEN / 4] ?? 0;\n", "", "Literals that are not text are mistaken for ASCII."],
    ["      at += size;\n", "", "Blocks overwrite each other."],
    ["      if (left > 0) break;\n", "", "An invalid row is retried for ever, or skipped."],
  ]),
  ...law("vortex/strings/CodeLoop.lastOfBlock", [
    ["<= most) return end;", "<= Infinity) return end;", "A block of many codes writes past the end of its output."],
  ]),
  ...law("vortex/strings/escaped", [
    [
      '    ["local.get", SYMBOL],\n    ["i32.const", 255],\n    ["i32.ne"],\n    ["br_if", 4],\n',
      "",
      "An invalid code is mistaken for an escape.",
    ],
    [
      '    ["i32.ge_u"],\n    ["br_if", 4],\n',
      '    ["i32.ge_u"],\n    ["br_if", 0],\n',
      "A row takes a byte of the next one.",
    ],
    ['    ["local.get", LITERALS],\n    ["i32.or"],\n', "", "Only the last literal decides whether all are ASCII."],
  ]),
  ...law("vortex/strings/wide", [['["i32.const", 4],', '["i32.const", 3],', "Tokens overlap."]]),
  ...law("vortex/strings/rowLoop", [['["i32.ne"],', '["i32.lt_u"],', "A row overwrites the next one."]]),
  ...law("vortex/strings/checkText", [
    ["isValid(validity, row)", "validity === null", "Text of a nullable column is not checked."],
    ["[buffer, at] = [buffer + 1, 0];", "at = 0;", "Rows of all buffers are read from the first one."],
  ]),
  ...law("vortex/strings/asUint32", [
    [
      "if ((halves[2 * i + 1] ?? 0) !== 0) wrong(",
      "if ((halves[2 * i + 1] ?? 0) < 0) wrong(",
      "A length of 2^32 becomes 0.",
    ],
    [
      "if ((words[i] ?? 0) > limit) wrong(",
      "if ((words[i] ?? 0) < 0) wrong(",
      "A negative length becomes a large one.",
    ],
  ]),
  ...law("vortex/strings/checkOffsets", [
    ["falls |= Number(offset < last);", "", "A row gets the codes of others."],
    ["if (last > end) fail(", "if (last < 0) fail(", "A row's codes are read past the end."],
  ]),
  ...law("vortex/strings/checkTotal", [
    ["if (total > most) fail(", "if (total < 0) fail(", "Memory is allocated for rows that no codes can fill."],
  ]),
  ...law("vortex/strings/fsstEncoding", [
    ["node.length + 1)", "node.length)", "The last row's codes have no end."],
    ["nullable: dtype.nullable }", "nullable: false }", "The old format has no nulls."],
  ]),
  ...law("vortex/strings/onPairEncoding", [
    ["tokenCount > MAX_TOKENS", "false", "Memory is allocated for tokens that no code can name."],
    ["whole(5, ", "whole(7, ", "Offsets are read as a different type."],
  ]),
  ...law("vortex/strings/concatenated", [
    ["size <= INLINE_BYTES;", "size < INLINE_BYTES;", "Codes of 12 bytes are read from a wrong place."],
    ["16 * row + 4 : ", "16 * row : ", "A row's codes begin with its length."],
  ]),
  ...law("vortex/compressed/readZstdFrame", [
    [
      "if (at + count > bytes.length) fail(",
      "if (at < 0) fail(",
      "Only the runtime notices that a frame is truncated.",
    ],
    ["if (type === 3) fail(", "if (type > 3) fail(", "A reserved block is skipped."],
    ["if (at !== bytes.length) fail(", "if (at < 0) fail(", "Bytes after a frame are ignored, or not."],
    ["type === 1 ? 1 : ", "", "A block of a repeated byte looks truncated."],
    ["return little(2) + 256;", "return little(2);", "The size of a frame is wrong."],
    [
      'fail("a zstd frame without the size of its content")',
      "0",
      "A frame of unknown size looks empty.",
    ],
  ]),
  ...law("vortex/compressed/decompressZstd", [
    ["if (contentSize !== size) fail(", "if (contentSize < 0) fail(", "The size in the metadata is not checked."],
    ["    at += size;\n", "", "Frames overwrite each other."],
  ]),
  ...law("vortex/compressed/hasDictionaries", [
    [
      "const isShort = compressed.length < zstdCompressSync(dictionary).length;",
      "const isShort = true;",
      "Deno appears to support dictionaries.",
    ],
  ]),
  ...law("vortex/compressed/scatter", [
    ["      if (isValid) from -= 2;\n", "      from -= 2;\n", "Every row takes a value."],
    ["isValid ? halves[from + 1] ?? 0 : 0", "halves[from + 1] ?? 0", "Nulls have half of a value."],
    ["? values[--from] ?? 0 : 0", "? values[--from] ?? 0 : 1", "Nulls have a value."],
  ]),
  ...law("vortex/compressed/prefixedText", [
    ["if (at + 4 > bytes.length) fail(", "if (at < 0) fail(", "A size is read past the end of the strings."],
    ["if (at > bytes.length) {", "if (at < 0) {", "A view points outside the buffer."],
    ["isText && !text.holds(start, at)", "false", "Bytes that are not text are returned as text."],
    ["if (at !== bytes.length) fail(", "if (at < 0) fail(", "Left-over strings are ignored."],
    ["!isValid(validity, row)", "false", "Nulls take the strings of others."],
  ]),
  ...law("vortex/compressed/zstdEncoding", [
    ["if (size !== expected) fail(", "if (size < 0) fail(", "Fewer numbers than rows are decoded."],
    ["if (size < count * 4) fail(", "if (size < 0) fail(", "Views are allocated for strings that cannot exist."],
    [
      "if (hasDictionary) node.expectSize(0, dictionarySize, dictionarySize);",
      "",
      "Any buffer is accepted as a dictionary.",
    ],
  ]),
  ...law("vortex/compressed/pcoEncoding", [
    ["if (numbers !== count) fail(", "if (numbers < 0) fail(", "Pages are written past the last row."],
    ["chunks.reduce((sum, pages) => sum + pages.length, 0));", "0);", "Pages are not counted among the buffers."],
  ]),
  ...law("vortex/compressed/decodePco", [
    ["    charge(tableBytes(chunk));\n", "", "A few bytes create large tables again and again."],
  ]),
  ...law("vortex/compressed/readPage", [
    ["if (!table.hasBins && length > states) fail(", "if (length < 0) fail(", "Numbers without a bin become 0."],
  ]),
  ...law("vortex/compressed/ConsecutiveSums", [
    ["let order = lows.length - 1", "let order = 0", "Only first differences are undone."],
    ["this.#bits === 16 ? 0xffff : -1), 0];", "-1), 0];", "Numbers of 16 bits have more than 16 bits."],
  ]),
  ...law("vortex/compressed/Lookback", [
    [
      "if (back < 1 || back > this.#window) ",
      "if (false) ",
      "A number is the difference from one that does not exist yet.",
    ],
  ]),
  ...law("vortex/compressed/Conv1", [
    ["low.copyWithin(0, count, count + order);", "", "A batch is predicted from the page's first numbers."],
  ]),
  ...law("vortex/compressed/readAnsTable", [
    ["if (sizeLog > 14) fail(", "if (sizeLog > 15) fail(", "A state does not fit its bits."],
    ["if (count > size) fail(", "if (count < 0) fail(", "There are bins without a state."],
    ["if (count === 1 && sizeLog !== 0) fail(", "if (count < 0) fail(", "One bin has states that no number needs."],
    ["if ((offsets[bin] ?? 0) > bits) fail(", "if (bits < 0) fail(", "Offsets are wider than numbers."],
    ["if (sum !== size) fail(", "if (sum < 0) fail(", "States belong to no bin, or to two."],
    [" | 1;", ";", "Some states are assigned twice, and others never."],
  ]),
  ...law("vortex/compressed/readBins", [
    ["      d = (node & 0x3fff) + added;", "      d = node & 0x3fff;", "The next state lacks its bits."],
  ]),
  ...law("vortex/compressed/addOffsets", [
    [
      "if (width + skipped > 32) word |= view.getUint8(at + 4) << (32 - skipped);",
      "",
      "Wide offsets lack their last bits.",
    ],
  ]),
  ...law("vortex/compressed/addLongOffsets", [
    [
      "if (width + skipped > 64) upper |= view.getUint8(at + 8) << (32 - skipped);",
      "",
      "The widest offsets lack some bits.",
    ],
    [" + Number(sum >>> 0 < word >>> 0)", "", "A sum loses its carry."],
    ["upper &= -1 >>> (64 - width);", "", "An offset contains bits of the next one."],
  ]),
  ...law("vortex/compressed/BitReader", [
    ["if (this.left < 0) this.#tooShort();", "", "A truncated page continues with zeros."],
  ]),
  ...law("vortex/compressed/joinMult", [["+ (second[i] ?? 0)", "", "All numbers are multiples of the base."]]),
  ...law("vortex/compressed/joinLongMult", [
    [" + Math.imul(low, baseHigh)", "", "A base of more than 32 bits becomes a different one."],
    ["(second.high[i] ?? 0) + carry", "(second.high[i] ?? 0)", "A sum loses its carry."],
  ]),
  ...law("vortex/compressed/joinQuant", [
    ["upper >= middle ? lower : all - lower", "lower", "Negative floats have their lowest bits inverted."],
    ["upper >>> (bits - shift) | ", "", "The highest bits of a part that is too large are lost."],
    [" | lower >>> shift", "", "A part that is too large changes the other one."],
  ]),
  ...law("vortex/compressed/joinLongQuant", [
    [
      "const isPositive = shift < 32 ? high >>> 0 >= middle : high !== 0 || low >>> 0 >= middle;",
      "const isPositive = (high >>> 0) * 0x1_0000_0000 + (low >>> 0) >= 2 ** (63 - shift);",
      "The lowest bits of -0.0 are lost, because a double has no room for 56.",
    ],
    ["high >>> (32 - shift) | ", "", "The highest bits of a part that is too large are lost."],
    ["lowerHigh | lowerLow >>> shift", "lowerHigh", "A part that is too large changes the other one."],
    ["low >>> (64 - shift) | ", "", "A bit of a part that is too large is lost."],
  ]),
  ...law("vortex/compressed/joinDoubleMult", [
    ["isNegative ? -integer : integer", "integer", "Negative floats become positive."],
  ]),
  ...law("vortex/compressed/joinShortFloatMult", [
    ["isNegative ? -integer : integer", "integer", "Negative floats become positive."],
    ["(integer - exact) | (", "(integer - exact) ^ (", "A damaged float has a different sign than in PyVortex."],
  ]),
  ...law("vortex/compressed/lookUp", [
    ["if (index >= low.length) fail(", "if (index < 0) fail(", "An index outside the dictionary becomes 0."],
  ]),
  ...law("vortex/compressed/store", [
    ["isFloat ? ~(upper >> 31) : 0", "0", "Negative doubles keep the bits of their ordered form."],
    ["isFloat ? ~(word << shift >> 31) : 0", "0", "Negative floats keep the bits of their ordered form."],
  ]),
  ...law("vortex/compressed/readPcoHeader", [
    ["if (major > 4) fail(", "if (major > 9) fail(", "A future format is misread."],
    ["(major > 3 && header.length < 2)", "false", "A truncated header is accepted."],
  ]),
  ...law("vortex/compressed/readMode", [
    ["if (low === 0 && high === 0) fail(", "if (bits < 0) fail(", "A base of 0 makes all numbers small."],
    [
      "if (count * bits > reader.left) fail(",
      "if (bits < 0) fail(",
      "Memory is allocated for a missing dictionary.",
    ],
    ["quantized < 1 || quantized > mantissaBits[bits]", "false", "More bits are quantized than a float has."],
  ]),
  ...law("vortex/compressed/readDelta", [
    ["if (states === 0) fail(", "if (states < 0) fail(", "Differences of order 0 are numbers with one bit inverted."],
    [
      "if (statesLog > windowLog) fail(",
      "if (statesLog < 0) fail(",
      "A page keeps more numbers than a lookback can reach.",
    ],
  ]),
];
