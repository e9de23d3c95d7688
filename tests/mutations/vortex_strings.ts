/** The protective lines of Vortex's strings and of what compressors store. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const vortexStringMutations: readonly Mutation[] = [
  ...law("vortex/strings/partsOf", [
    ["if (bytes + length > limit) {", "if (false) {", "A view's place in a buffer is beyond 31 bits."],
    ["if (length > limit) {", "if (false) {", "A string that no buffer can hold gets one all the same."],
  ]),
  ...law("vortex/strings/writeViews", [
    [" & keptBits(length - 8)", "", "A view's end has bytes of the next string."],
    [" & keptBits(length - 4)", "", "A view's end has bytes of the next string."],
    [" & keptBits(length)", "", "A view's end has bytes of the next string."],
    ["views[to + 2] = index;", "", "All strings are in the first buffer."],
  ]),
  ...law("vortex/strings/fsstTable", [
    ["count > ESCAPE || ", "", "The escape stands for a symbol."],
    ["size < 1 || size > SYMBOL_BYTES", "false", "A symbol has more bytes than the table."],
    ["seen |= symbols", "seen = symbols", "What is no text is taken for ASCII."],
  ]),
  ...law("vortex/strings/onPairTable", [
    ["size < 1 || size > TOKEN_BYTES", "false", "A token has more bytes than the table."],
    ["      seen |= byte;\n", "", "What is no text is taken for ASCII."],
  ]),
  ...law("vortex/strings/decodeRow", [
    ["++code === stop", "++code < 0", "A row takes a byte of the next one."],
    ["if (size === 0) fail(", "if (size < 0) fail(", "A code that stands for nothing is left out."],
    ["if (at + size > length) fail(", "if (at < 0) fail(", "A row writes over the next one."],
    ["if (at !== length) fail(", "if (at < 0) fail(", "A row ends in what was in memory."],
  ]),
  ...law("vortex/strings/CodeLoop.run", [
    ["      seen |= results[SEEN / 4] ?? 0;\n", "", "Literals that are no text are taken for ASCII."],
    ["      at += size;\n", "", "Blocks are written over each other."],
    ["      if (left > 0) break;\n", "", "A row that is wrong is tried for ever, or left out."],
  ]),
  ...law("vortex/strings/CodeLoop.lastOfBlock", [
    ["<= most) return end;", "<= Infinity) return end;", "A block of many codes writes over its output."],
  ]),
  ...law("vortex/strings/escaped", [
    [
      '    ["local.get", SYMBOL],\n    ["i32.const", 255],\n    ["i32.ne"],\n    ["br_if", 4],\n',
      "",
      "A code that stands for nothing is an escape.",
    ],
    [
      '    ["i32.ge_u"],\n    ["br_if", 4],\n',
      '    ["i32.ge_u"],\n    ["br_if", 0],\n',
      "A row takes a byte of the next one.",
    ],
    ['    ["local.get", LITERALS],\n    ["i32.or"],\n', "", "Only the last literal is known to be ASCII, or not."],
  ]),
  ...law("vortex/strings/wide", [['["i32.const", 4],', '["i32.const", 3],', "Tokens overlap."]]),
  ...law("vortex/strings/rowLoop", [['["i32.ne"],', '["i32.lt_u"],', "A row writes over the next one."]]),
  ...law("vortex/strings/checkText", [
    ["validity === null || bitAt(validity, row)", "validity === null", "Text of a nullable column is not looked at."],
    ["[buffer, at] = [buffer + 1, 0];", "at = 0;", "Rows of all buffers are looked for in the first one."],
  ]),
  ...law("vortex/strings/asUint32", [
    [
      "if ((halves[2 * i + 1] ?? 0) !== 0) wrong(",
      "if ((halves[2 * i + 1] ?? 0) < 0) wrong(",
      "A length of 2^32 is 0.",
    ],
    ["if ((words[i] ?? 0) > limit) wrong(", "if ((words[i] ?? 0) < 0) wrong(", "A negative length is a large one."],
  ]),
  ...law("vortex/strings/checkOffsets", [
    ["falls |= Number(offset < last);", "", "A row's codes are those of others."],
    ["if (last > end) fail(", "if (last < 0) fail(", "A row's codes are read behind the last one."],
  ]),
  ...law("vortex/strings/checkTotal", [
    ["if (total > most) fail(", "if (total < 0) fail(", "Memory is allocated for rows that no codes can fill."],
  ]),
  ...law("vortex/strings/fsstEncoding", [
    ["node.length + 1)", "node.length)", "The last row's codes have no end."],
    ["nullable: dtype.nullable }", "nullable: false }", "The old form has no nulls."],
  ]),
  ...law("vortex/strings/onPairEncoding", [
    ["tokenCount > MAX_TOKENS", "false", "Memory is allocated for tokens that no code names."],
    ["whole(5, ", "whole(7, ", "Places are read as another type."],
  ]),
  ...law("vortex/strings/concatenated", [
    ["const isInline = size <= 12;", "const isInline = size < 12;", "Codes of 12 bytes are looked for elsewhere."],
    ["16 * row + 4 : ", "16 * row : ", "A row's codes begin with its length."],
  ]),
  ...law("vortex/compressed/readZstdFrame", [
    ["if (at + count > bytes.length) fail(", "if (at < 0) fail(", "What a frame lacks is for the runtime to notice."],
    ["if (type === 3) fail(", "if (type > 3) fail(", "A reserved block is skipped."],
    ["if (at !== bytes.length) fail(", "if (at < 0) fail(", "What is behind a frame is ignored, or not."],
    ["type === 1 ? 1 : ", "", "A block of a repeated byte seems to be cut off."],
    ["return little(2) + 256;", "return little(2);", "A frame's size is another one."],
    [
      'fail("a zstd frame without the size of its content")',
      "0",
      "A frame of unknown size seems to be empty.",
    ],
  ]),
  ...law("vortex/compressed/decompressZstd", [
    ["if (contentSize !== size) fail(", "if (contentSize < 0) fail(", "What the metadata says is not compared."],
    ["    at += size;\n", "", "Frames are written over each other."],
  ]),
  ...law("vortex/compressed/hasDictionaries", [
    [
      "const isShort = compressed.length < zstdCompressSync(dictionary).length;",
      "const isShort = true;",
      "Deno seems to use dictionaries.",
    ],
  ]),
  ...law("vortex/compressed/scatter", [
    ["      if (isValid) from -= 2;\n", "      from -= 2;\n", "Every row takes a value."],
    ["isValid ? halves[from + 1] ?? 0 : 0", "halves[from + 1] ?? 0", "Nulls have half of a value."],
    ["? values[--from] ?? 0 : 0", "? values[--from] ?? 0 : 1", "Nulls have a value."],
  ]),
  ...law("vortex/compressed/prefixedText", [
    ["if (at + 4 > bytes.length) fail(", "if (at < 0) fail(", "A size is read behind the strings."],
    ["if (at > bytes.length) {", "if (at < 0) {", "A view leads outside."],
    ["isText && !text.holds(start, at)", "false", "What is no text is handed out as text."],
    ["if (at !== bytes.length) fail(", "if (at < 0) fail(", "Strings are left over."],
    ["validity !== null && !bitAt(validity, row)", "false", "Nulls take the strings of others."],
  ]),
  ...law("vortex/compressed/zstdEncoding", [
    ["if (size !== expected) fail(", "if (size < 0) fail(", "Fewer numbers than rows are decoded."],
    ["if (size < count * 4) fail(", "if (size < 0) fail(", "Views are allocated for strings that cannot be there."],
    ["if (hasDictionary) node.expectSize(0, dictionarySize, dictionarySize);", "", "A dictionary may be any buffer."],
  ]),
  ...law("vortex/compressed/pcoEncoding", [
    ["if (numbers !== count) fail(", "if (numbers < 0) fail(", "Pages are written behind the rows."],
    ["chunks.reduce((sum, pages) => sum + pages.length, 0));", "0);", "Pages are not counted among the buffers."],
  ]),
  ...law("vortex/compressed/decodePco", [
    ["    charge(tableBytes(chunk));\n", "", "A few bytes make large tables again and again."],
  ]),
  ...law("vortex/compressed/readPage", [
    ["if (!table.hasBins && length > states) fail(", "if (length < 0) fail(", "Numbers of no bin are 0."],
  ]),
  ...law("vortex/compressed/ConsecutiveSums", [
    ["let order = lows.length - 1", "let order = 0", "Only first differences are undone."],
    ["this.#bits === 16 ? 0xffff : -1), 0];", "-1), 0];", "Numbers of 16 bits have more than these."],
  ]),
  ...law("vortex/compressed/Lookback", [
    [
      "if (back < 1 || back > this.#window) ",
      "if (false) ",
      "A number is the difference to one that is not there yet.",
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
    ["if (sum !== size) fail(", "if (sum < 0) fail(", "States are in no bin, or in two."],
    [" | 1;", ";", "Some states are dealt twice, and others never."],
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
      "The widest offsets lack bits.",
    ],
    [" + Number(sum >>> 0 < word >>> 0)", "", "A sum has no carry."],
    ["upper &= -1 >>> (64 - width);", "", "An offset has bits of the next one."],
  ]),
  ...law("vortex/compressed/BitReader", [
    ["if (this.left < 0) this.#tooShort();", "", "A page that is cut off goes on with zeros."],
  ]),
  ...law("vortex/compressed/joinMult", [["+ (second[i] ?? 0)", "", "Numbers are multiples of the base."]]),
  ...law("vortex/compressed/joinLongMult", [
    [" + Math.imul(low, baseHigh)", "", "A base of more than 32 bits is another one."],
    ["(second.high[i] ?? 0) + carry", "(second.high[i] ?? 0)", "A sum has no carry."],
  ]),
  ...law("vortex/compressed/joinQuant", [
    ["upper >= middle ? lower : all - lower", "lower", "Negative floats have their lowest bits inverted."],
    ["upper >>> (bits - shift) | ", "", "Of a part that is too large the highest bits are lost."],
    [" | lower >>> shift", "", "A part that is too large changes the other one."],
  ]),
  ...law("vortex/compressed/joinLongQuant", [
    [
      "const isPositive = shift < 32 ? high >>> 0 >= middle : high !== 0 || low >>> 0 >= middle;",
      "const isPositive = (high >>> 0) * 0x1_0000_0000 + (low >>> 0) >= 2 ** (63 - shift);",
      "Of -0.0 the lowest bits are lost: a double has no room for 56.",
    ],
    ["high >>> (32 - shift) | ", "", "Of a part that is too large the highest bits are lost."],
    ["lowerHigh | lowerLow >>> shift", "lowerHigh", "A part that is too large changes the other one."],
    ["low >>> (64 - shift) | ", "", "Of a part that is too large a bit is lost."],
  ]),
  ...law("vortex/compressed/joinDoubleMult", [
    ["isNegative ? -integer : integer", "integer", "Negative floats are positive."],
  ]),
  ...law("vortex/compressed/joinShortFloatMult", [
    ["isNegative ? -integer : integer", "integer", "Negative floats are positive."],
    ["(integer - exact) | (", "(integer - exact) ^ (", "A float that was damaged has another sign than PyVortex's."],
  ]),
  ...law("vortex/compressed/lookUp", [
    ["if (index >= low.length) fail(", "if (index < 0) fail(", "What no dictionary has is 0."],
  ]),
  ...law("vortex/compressed/store", [
    ["isFloat ? ~(upper >> 31) : 0", "0", "Negative doubles keep the order's bits."],
    ["isFloat ? ~(word << shift >> 31) : 0", "0", "Negative floats keep the order's bits."],
  ]),
  ...law("vortex/compressed/readPcoHeader", [
    ["if (major > 4) fail(", "if (major > 9) fail(", "A format of the future is misread."],
    ["(major > 3 && header.length < 2)", "false", "A header that is cut off is taken for one."],
  ]),
  ...law("vortex/compressed/readMode", [
    ["if (low === 0 && high === 0) fail(", "if (bits < 0) fail(", "A base of 0 makes all numbers small."],
    [
      "if (count * bits > reader.left) fail(",
      "if (bits < 0) fail(",
      "Memory is allocated for a dictionary that is not there.",
    ],
    ["quantized < 1 || quantized > mantissaBits[bits]", "false", "More bits are quantized than a float has."],
  ]),
  ...law("vortex/compressed/readDelta", [
    ["if (states === 0) fail(", "if (states < 0) fail(", "Differences of no order are numbers with a bit inverted."],
    [
      "if (statesLog > windowLog) fail(",
      "if (statesLog < 0) fail(",
      "Nobody looks back as far as a page keeps numbers.",
    ],
  ]),
];
