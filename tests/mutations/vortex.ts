/** The protective lines of Vortex: trees, messages, decoded arrays. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const vortexMutations: readonly Mutation[] = [
  ...law("vortex/homeOf", [
    ["  ffiPort(); //", "  //", "Where the runtime is too old a scan fails by what it lacks."],
  ]),
  ...law("vortex/VortexArray.id", [
    ["= ++lastId;", "= 1;", "Tests that compare arrays field by field pass, whatever the arrays contain."],
  ]),
  ...law("vortex/EncodedNode.child", [
    [
      "outer.length !== length) {",
      "outer.length !== length && length < 0) {",
      "A child whose length differs from the declared one is read.",
    ],
  ]),
  ...law("vortex/EncodedNode.validityChild", [
    [
      "    if (!this.dtype.nullable) this.fail(`${this.id} has a validity child but dtype ${this.typeText} is not nullable`);\n",
      "",
      "An array with a non-nullable dtype has nulls.",
    ],
  ]),
  ...law("vortex/EncodedNode.expectSize", [
    ["size >= least && size <= most", "size <= most", "Elements are read past the end of a buffer."],
  ]),
  ...law("vortex/fromVortexMetadata", [
    [
      "  } catch (error) {\n    close();\n",
      "  } catch (error) {\n",
      "Buffers that were taken before another one was refused are never returned.",
    ],
  ]),
  ...law("vortex/TreeReader.read", [
    [
      "    if (parts.length !== 6) fail(`expected Vortex array metadata tuple of length 6, got ${parts.length}`);\n",
      "",
      "An invalid tuple causes an error about a missing item.",
    ],
  ]),
  ...law("vortex/takeDescriptor", [
    ["if (taken.has(address)) refuse", "if (taken.has(0n)) refuse", "A buffer is returned twice."],
    [
      "  taken.delete(address);",
      "  ;",
      "A producer's next buffer is refused because it has the address of the last one.",
    ],
    [
      "  if (version !== 1) refuse(`its struct has version ${version}. Expected 1`);\n",
      "",
      "A struct of another version is read as the current one.",
    ],
    ["  if (size === 0) memory.close();\n", "", "An empty buffer is not released until the array is closed."],
    [
      "      consumerWaitsForEvent(new CudaEvent(stream.device, event), stream); // the producer closes the event\n",
      "",
      "A device buffer is read before it is written.",
    ],
    [
      "stream.device.ordinal !== ordinal",
      "stream.device.ordinal < 0",
      "The address of one device is used on another.",
    ],
    [
      "  if (stream !== null) hostWaitsBeforeReturn(stream);\n",
      "",
      "A producer frees memory that one of our kernels still reads.",
    ],
  ]),
  ...law("vortex/DecodeContext.charge", [
    ["    this.#left -= bytes;\n", "", "Many small arrays may take more than the limit."],
    [
      "bytes > this.#left || !(bytes >= 0)",
      "!(bytes >= 0)",
      "A constant of 2^40 rows is created, or exhausts the memory.",
    ],
  ]),
  ...law("vortex/equalDTypes", [
    ["one.ptype === other.ptype", "one.ptype.length === other.ptype.length", "A child of u32 is read as one of i32."],
  ]),
  ...law("vortex/encodeCanonical", [
    ["[[1, array.offset % 8]]", "[]", "The truth values of a slice are those before it."],
  ]),
  ...law("vortex/Pieces.take", [
    [
      "      if (part.length < first.length) this.#here.unshift(first.subarray(part.length));\n",
      "",
      "The rest of a piece is lost.",
    ],
    [
      "      if (!(value instanceof Uint8Array)) throw noBytesFrom(value);\n",
      "",
      "A piece that is not bytes fails with the engine's error.",
    ],
    ["      checkThere(value.buffer);\n", "", "A piece that was transferred is left out."],
    ["      checkThere(first.buffer);\n", "", "A piece that is transferred later fails with the engine's error."],
  ]),
  ...law("vortex/readVortexIpc", [
    [
      "    await pieces.close().catch(() => {}); // what went wrong first counts\n",
      "",
      "A source that cannot end hides what is wrong with its messages.",
    ],
  ]),
  ...law("vortex/Pieces.close", [
    ["await this.#source.return?.();", "return;", "The source of a stream that is left early is never told."],
    ["    if (this.#isOver) return;\n", "", "A source that has ended is told to end."],
    ["    this.#isOver = true;\n", "", "A source whose messages are wrong is told twice."],
  ]),
  ...law("vortex/checkThere", [
    [" || !memory.detached) return;", ") return;", "What was not transferred is refused."],
    ["  checkThere(buffer);\n", "", "A message that was transferred fails with the engine's error."],
  ]),
  ...law("vortex/hostBytesOf", [
    ["  checkThere(buffer.buffer);\n", "", "An array whose bytes were transferred fails with the engine's error."],
  ]),
  ...law("vortex/bitmapFrom", [
    ["(8 - shift) : 0", "(7 - shift) : 0", "The bits of a slice are those of its neighbours."],
  ]),
  ...law("vortex/copyBits", [
    ["(shift === 0 ? 0 :", "(shift !== 0 ? 0 :", "Bits of joined pieces are lost."],
  ]),
  ...law("vortex/concatOf", [
    ["at += one.length * width;", "at += one.length;", "Decimals of the second piece overwrite those of the first."],
  ]),
  ...law("vortex/joinViews", [
    [
      "words[at + 2] = buffer + base;",
      "words[at + 2] = buffer;",
      "Long texts of the second piece are read from the buffers of the first.",
    ],
  ]),
  ...law("vortex/takeOf", [
    [
      "const from = (indices[i] ?? 0) * size;",
      "const from = indices[i] ?? 0;",
      "Fixed-size lists are picked as if they had one element.",
    ],
  ]),
  ...law("vortex/sliceOf", [
    ["offset: array.offset + start", "offset: start", "The truth values of a slice of a slice are wrong."],
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
      "Lists that overlap, or leave elements out, get the elements of others.",
    ],
  ]),
  ...law("vortex/checkedCodes", [
    [
      "if (isValid(validity, i)) place.fail",
      "if (validity === undefined) place.fail",
      "A code without a value gets the value of another code.",
    ],
  ]),
  ...law("vortex/listsOf", [
    [
      '  checkOffsets(wholes, elements.length, place, "the elements");\n',
      "",
      "Lists extend past the end of their elements.",
    ],
  ]),
  ...law("vortex/EncodedNode.buffer", [
    [
      "bytes.byteOffset % 8 === 0 ? bytes : bytes.slice()",
      "bytes",
      "Numbers at an unaligned address cannot be read.",
    ],
  ]),
  ...law("vortex/keptOf", [
    [
      "if (unknown >= 0) throw",
      "if (unknown === null) throw",
      "A request to keep an unknown encoding is ignored.",
    ],
  ]),
  ...law("vortex/EncodedNode.expectNoMetadata", [
    ["if (length > 0) this", "if (length > 99) this", "Metadata that PyVortex refuses is accepted."],
  ]),
  ...law("vortex/wrongViews", [
    ["yield [i, 4 + size, null]", "yield [i, 5 + size, null]", "A byte after a short text keeps its old value."],
    ["if (size < 4) return", "if (size < 3) return", "The bytes after a text of three bytes are not checked."],
    ["if (size < 8) return", "if (size < 7) return", "The bytes after a text of seven bytes are not checked."],
    ["size < 12 ?", "size < 11 ?", "The bytes after a text of eleven bytes are not checked."],
  ]),
  ...law("vortex/sequenceEncoding", [
    ["((low ^ sign) < least ? 1 : 0)", "0", "Numbers of a sequence wrap around at 2^32."],
  ]),
  ...law("vortex/chunkedEncoding", [
    ["first !== 0 || last !== node.length", "first !== 0", "Chunks end before or after the array does."],
  ]),
  ...law("vortex/TextBytes.holds", [
    [
      "    return !isInside(this.#bytes[start]) && !isInside(this.#bytes[end]);\n",
      "    return true;\n",
      "A text begins or ends within a character.",
    ],
  ]),
  ...law("vortex/checkDigits", [
    [
      "exact >= limit || exact <= -limit",
      "exact > limit || exact < -limit",
      "A decimal has one digit more than it declares.",
    ],
  ]),
  ...law("vortex/wholesOf", [
    ["high > 0x7fff_ffff", "high > 0xffff_ffff", "A negative offset becomes a large one."],
  ]),
  ...law("vortex/writeArray", [
    ["    struct[2] = Math.log2(", "    void Math.log2(", "PyVortex refuses numbers without a declared alignment."],
    ["known?.known(i) ?? null", "null", "PyVortex panics when it slices memory whose declared alignment is too large."],
  ]),
  ...law("vortex/arrowDecimalBits", [
    ["precision <= 38", "precision <= 18", "Decimals have more bits than PyVortex's."],
  ]),
  ...law("vortex/widen", [
    ["0 : 31;", "0 : 0;", "Negative decimals of 64 bits become large ones."],
    ["to.fill(0xff,", "to.fill(0,", "Negative decimals of a few bytes become large ones."],
  ]),
  ...law("vortex/decimalsOf", [
    [
      "if (wanted > width) widen",
      "if (wanted === width) widen",
      "Negative decimals become large ones when they are widened.",
    ],
  ]),
  ...law("vortex/alignmentsOf", [
    ["widthOf(node.dtype.ptype) : 1", "maxAligned : 1", "PyVortex panics when it slices numbers of a few bytes."],
  ]),
  ...law("vortex/openEvery", [
    ["    encoding.openRest?.(node, opened, context);\n", "", "A description of a chunked array has no chunks."],
    [
      "if (outer !== null) node.child(i, outer.dtype, outer.length);",
      "",
      "A node of an unknown encoding loses its children when it is described.",
    ],
  ]),
  ...law("vortex/childrenOf", [
    [
      "if (children.length === childCount) return children;",
      "return children;",
      "A node of an unknown encoding that came in a message is described without its children.",
    ],
  ]),
  ...law("vortex/Handed", [
    ["this.memory.device === null", "this.size > 0", "The host reads from the addresses of a device."],
  ]),
  ...law("vortex/arrayOf", [
    [
      "isKept ? given : flatten(given, allocate)",
      "given",
      "An array of maps with dictionaries inside cannot be exported where dictionaries are kept.",
    ],
  ]),
  ...law("vortex/dictEncoding", [
    ["message.bool(3) ?? node.dtype.nullable", "message.bool(3) ?? false", "Codes of old files are refused."],
  ]),
  ...law("vortex/maskedEncoding", [
    [
      "masked(context.decode(array), node.dtype, valid,",
      "masked(context.decode(array), node.dtype, null,",
      "Nulls have values.",
    ],
  ]),
  ...law("vortex/structEncoding", [
    ["node.child(first + i,", "node.child(i,", "Validity is read as the first field."],
  ]),
  ...law("vortex/viewsOf", [
    ["words[at + 3] = start;", "words[at + 3] = 0;", "All long texts equal the first one."],
  ]),
  ...law("vortex/boolEncoding", [
    [
      "bits: node.bytes(0), offset }",
      "bits: node.bytes(0), offset: 0 }",
      "Truth values are read from before the array.",
    ],
  ]),
  ...law("vortex/byteBoolEncoding", [
    ["bytes[i] !== 0", "bytes[i] === 1", "A true value that is stored as another byte becomes false."],
  ]),
  ...law("vortex/repeat", [
    ["isInline ? INLINE_BYTES : 4", "INLINE_BYTES", "A repeated long text points nowhere."],
  ]),
];
