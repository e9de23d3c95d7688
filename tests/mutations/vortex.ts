/** The protective lines of Vortex: trees, messages, decoded arrays. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const vortexMutations: readonly Mutation[] = [
  ...law("vortex/EncodedNode.child", [
    [
      "outer.length !== length) {",
      "outer.length !== length && length < 0) {",
      "A child of another length than its parent says is read.",
    ],
  ]),
  ...law("vortex/EncodedNode.validityChild", [
    [
      "    if (!this.dtype.nullable) this.fail(`${this.id} has a validity child but dtype ${this.typeText} is not nullable`);\n",
      "",
      "An array whose dtype has no nulls has some.",
    ],
  ]),
  ...law("vortex/EncodedNode.expectSize", [
    ["size >= least && size <= most", "size <= most", "Elements are read from behind a buffer."],
  ]),
  ...law("vortex/fromVortexMetadata", [
    [
      "  } catch (error) {\n    close();\n",
      "  } catch (error) {\n",
      "What was taken before another buffer was refused is never returned.",
    ],
  ]),
  ...law("vortex/TreeReader.read", [
    [
      "    if (parts.length !== 6) fail(`expected Vortex array metadata tuple of length 6, got ${parts.length}`);\n",
      "",
      "A tuple that is none is an error of whatever is missing.",
    ],
  ]),
  ...law("vortex/takeDescriptor", [
    ["if (taken.has(address)) refuse", "if (taken.has(0n)) refuse", "A buffer is returned twice."],
    ["  taken.delete(address);", "  ;", "A producer's next buffer is refused for having the place of the last one."],
    [
      "  if (version !== 1) refuse(`its struct has version ${version}. Expected 1`);\n",
      "",
      "A struct of another version is read as one of this.",
    ],
    ["  if (size === 0) memory.close();\n", "", "A buffer without bytes waits for the array to be closed."],
    [
      "      consumerWaitsForEvent(new CudaEvent(stream.device, event), stream); // the producer closes the event\n",
      "",
      "A buffer of a device is read before it is written.",
    ],
    [
      "stream.device.ordinal !== ordinal",
      "stream.device.ordinal < 0",
      "The address of one device is used on another.",
    ],
    [
      "  if (stream !== null) hostWaitsBeforeReturn(stream);\n",
      "",
      "A producer frees memory that a kernel of ours still reads.",
    ],
  ]),
  ...law("vortex/DecodeContext.charge", [
    ["    this.#left -= bytes;\n", "", "Many small arrays may take more than the limit."],
    [
      "bytes > this.#left || !(bytes >= 0)",
      "!(bytes >= 0)",
      "A constant of 2^40 rows is made, or the process dies of it.",
    ],
  ]),
  ...law("vortex/equalDTypes", [
    ["one.ptype === other.ptype", "one.ptype.length === other.ptype.length", "A child of u32 is read as one of i32."],
  ]),
  ...law("vortex/encodeCanonical", [
    ["[[1, array.offset % 8]]", "[]", "Truth values of a slice are those before it."],
  ]),
  ...law("vortex/Pieces.take", [
    [
      "      if (part.length < first.length) this.#here.unshift(first.subarray(part.length));\n",
      "",
      "What follows in the same piece is lost.",
    ],
  ]),
  ...law("vortex/bitmapFrom", [
    ["(8 - shift) : 0", "(7 - shift) : 0", "Bits of a slice are their neighbours."],
  ]),
  ...law("vortex/copyBits", [
    ["(shift === 0 ? 0 :", "(shift !== 0 ? 0 :", "Bits of pieces that are put together are lost."],
  ]),
  ...law("vortex/concatOf", [
    ["at += one.length * width;", "at += one.length;", "Decimals of the second piece lie in those of the first."],
  ]),
  ...law("vortex/joinViews", [
    [
      "words[at + 2] = buffer + base;",
      "words[at + 2] = buffer;",
      "Long texts of the second piece are read from the first one's.",
    ],
  ]),
  ...law("vortex/takeOf", [
    [
      "const from = (indices[i] ?? 0) * size;",
      "const from = indices[i] ?? 0;",
      "Lists of a size are picked as if they had one element.",
    ],
  ]),
  ...law("vortex/sliceOf", [
    ["offset: array.offset + start", "offset: start", "Truth values of a slice of a slice are others."],
  ]),
  ...law("vortex/flatten", [
    [
      "takeOf(array.values, indicesOf(array.codes), array.validity, allocate)",
      "takeOf(array.values, indicesOf(array.codes), null, allocate)",
      "Nulls of a dictionary have values.",
    ],
  ]),
  ...law("vortex/listViewEncoding", [
    [
      "isInRow = from[i] === end;",
      "isInRow = true;",
      "Lists that overlap, or leave elements out, have others' elements.",
    ],
  ]),
  ...law("vortex/checkedCodes", [
    [
      "if (validity === null || bitAt(validity, i)) place.fail",
      "if (validity === undefined) place.fail",
      "A code without a value is another one's.",
    ],
  ]),
  ...law("vortex/listsOf", [
    ['  checkOffsets(wholes, elements.length, place, "the elements");\n', "", "Lists end behind their elements."],
  ]),
  ...law("vortex/EncodedNode.buffer", [
    [
      "bytes.byteOffset % 8 === 0 ? bytes : bytes.slice()",
      "bytes",
      "Numbers that lie at an odd address cannot be read.",
    ],
  ]),
  ...law("vortex/keptOf", [
    ["if (unknown !== undefined) throw", "if (unknown === null) throw", "What cannot be kept is asked for in vain."],
  ]),
  ...law("vortex/EncodedNode.expectNoMetadata", [
    ["if (length > 0) this", "if (length > 99) this", "Metadata is taken that PyVortex refuses."],
  ]),
  ...law("vortex/wrongViews", [
    ["yield [i, 4 + size, null]", "yield [i, 5 + size, null]", "A byte behind a short text stays what it was."],
    ["if (size < 4) return", "if (size < 3) return", "What stands behind three bytes is not looked at."],
    ["if (size < 8) return", "if (size < 7) return", "What stands behind seven bytes is not looked at."],
    ["size < 12 ?", "size < 11 ?", "What stands behind eleven bytes is not looked at."],
  ]),
  ...law("vortex/sequenceEncoding", [
    ["((low ^ sign) < least ? 1 : 0)", "0", "Numbers of a sequence fall back at 2^32."],
  ]),
  ...law("vortex/chunkedEncoding", [
    ["first !== 0 || last !== node.length", "first !== 0", "Chunks end before the array does, or behind it."],
  ]),
  ...law("vortex/TextBytes.holds", [
    [
      "    return !isInside(this.#bytes[start]) && !isInside(this.#bytes[end]);\n",
      "    return true;\n",
      "A text is half of a character.",
    ],
  ]),
  ...law("vortex/checkDigits", [
    [
      "exact >= limit || exact <= -limit",
      "exact > limit || exact < -limit",
      "A decimal has one digit more than it says.",
    ],
  ]),
  ...law("vortex/wholesOf", [
    ["high > 0x7fff_ffff", "high > 0xffff_ffff", "A negative offset is a large one."],
  ]),
  ...law("vortex/writeArray", [
    ["    struct[2] = Math.log2(", "    void Math.log2(", "PyVortex refuses numbers that lie anywhere."],
    ["known?.known(i) ?? null", "null", "PyVortex panics where it cuts what is said to be aligned to more than it is."],
  ]),
  ...law("vortex/decimalsOf", [
    ["if (wanted > width) widen", "if (wanted === width) widen", "Negative decimals that are widened are large ones."],
  ]),
  ...law("vortex/alignmentsOf", [
    ["widthOf(node.dtype.ptype) : 1", "mostAligned : 1", "PyVortex panics where it cuts numbers of a few bytes."],
  ]),
  ...law("vortex/openEvery", [
    ["  encoding.openRest?.(node, opened, context);\n", "", "A description of a chunked array has no chunks."],
  ]),
  ...law("vortex/handedMemory", [
    ["memory.device === null", "memory.size >= 0", "The host reads a device's addresses."],
  ]),
  ...law("vortex/arrayOf", [
    [
      "isKept ? given : flatten(given, allocate)",
      "given",
      "An array of maps with dictionaries inside cannot be exported where dictionaries are kept.",
    ],
  ]),
  ...law("vortex/dictEncoding", [
    ["message.bool(3) ?? node.dtype.nullable", "message.bool(3) ?? false", "Codes of files of old are refused."],
  ]),
  ...law("vortex/maskedEncoding", [
    [
      "masked(context.decode(array), node.dtype, valid,",
      "masked(context.decode(array), node.dtype, null,",
      "What is null has a value.",
    ],
  ]),
  ...law("vortex/structEncoding", [
    ["node.child(first + i,", "node.child(i,", "Validity is read as the first field."],
  ]),
  ...law("vortex/viewsOf", [
    ["words[at + 3] = start;", "words[at + 3] = 0;", "Long texts are all the first one."],
  ]),
  ...law("vortex/boolEncoding", [
    ["bits: node.bytes(0), offset }", "bits: node.bytes(0), offset: 0 }", "Truth values are those before them."],
  ]),
  ...law("vortex/byteBoolEncoding", [
    ["bytes[i] !== 0", "bytes[i] === 1", "Whoever says true by another byte says false."],
  ]),
  ...law("vortex/repeat", [
    ["data.length > 12 ? 4 : 12", "12", "A long text that repeats points nowhere."],
  ]),
];
