/** The protective lines of layouts and dtypes. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const layoutMutations: readonly Mutation[] = [
  ...law("layout/notInteger", [
    ['? " of at most 53 bits" : ""', '? "" : ""', "A whole number that is too large is refused for not being one."],
  ]),
  ...law("layout/steppedStride", [
    [
      "Math.abs(product) * Math.max(itemsize, 1)",
      "Math.abs(product)",
      "A stride is more bytes than a layout may span.",
    ],
  ]),
  ...law("layout/isPlainObject", [
    [" || isRoot(prototype)", "", "An object of another context is no dict in Python, where one that is plain is."],
    [' && Object.hasOwn(prototype, "isPrototypeOf")', "", "What is derived from an object becomes a dict without it."],
  ]),
  ...law("layout/StridedLayout.from", [
    ["checkSpan(shape, strides, itemsize, sliceOffset);", "", "A layout spans more than can be counted."],
    ["DERIVED, sliceOffset + 0, volume)", "DERIVED, 0, volume)", "A slice arrives as the start of its array."],
    ["!Number.isInteger(sliceOffset * itemsize)", "false", "A layout begins inside a byte."],
  ]),
  ...law("layout/bytesBefore", [
    [
      "minOffset === 0 ? 0 : 0 - wholeBytes(minOffset, itemsize)",
      "0",
      "Elements before the first one are outside the memory that is accounted for.",
    ],
  ]),
  ...law("layout/packedBytes", [
    [
      "  return eights * (8 * itemsize) + Math.floor((elements - 8 * eights) * itemsize);\n",
      "  return Math.floor(elements * itemsize);\n",
      "The end of very many packed elements is rounded off.",
    ],
  ]),
  ...law("layout/noCode", [
    ['typeof source.name === "string"', "false", "The error for a cloned dtype does not say to send its name instead."],
  ]),
  ...law("layout/checkMade", [
    [
      "if (given === undefined) throw",
      "if (given === null) throw",
      "Calling new Cuda() reports an error inside a constructor.",
    ],
  ]),
  ...law("layout/permuteInto", [
    [
      "else seenHigh |= bit;\n    newShape",
      "newShape",
      "With more than 32 axes, one is taken twice and another one is lost.",
    ],
  ]),
  ...law("layout/placeNewAxes", [
    [
      "    if (at(shape, axis) === NEW_AXIS) continue;\n    stride",
      "    stride",
      "New axes at the end get an invalid stride.",
    ],
    [
      "stride = extent * at(strides, axis) + 0; // not -0",
      "stride = at(strides, axis) + 0; // not -0",
      "A new axis steps into its neighbour's elements.",
    ],
  ]),
  ...law("layout/axisSet", [
    ["    else high |= bit;\n", "", "With more than 32 axes, one can be new twice."],
  ]),
  ...law("layout/broadcastInto", [
    [
      "      if (extent !== 1) throw cannotBroadcast(shape, wanted);\n",
      "",
      "Elements outside the array are read as its own.",
    ],
  ]),
  ...law("layout/stretched", [
    [
      "return newShape[axis] = extent === 0 ? 0 : extent;",
      "return newShape[axis] = extent;",
      "A shape has an extent of -0.",
    ],
  ]),
  ...law("layout/allowedMerges", [
    ["mask >> BigInt(ndim) !== 0n", "false", "A mask for axes that do not exist is accepted."],
  ]),
  ...law("layout/flattenInto", [
    [
      "        if (extent !== 1 || outerExtent === 1) outerStride = stride;\n",
      "        outerStride = stride;\n",
      "A joined axis gets the stride of an axis of one element.",
    ],
  ]),
  ...law("layout/mergeableAxes", [
    [
      "    if (extent !== 1) outerStride = stride;\n",
      "    outerStride = stride;\n",
      "The mask leaves out axes that can be joined.",
    ],
    ["      else high |= 1 << (axis - 32);\n", "", "With more than 32 axes, the last ones are never joined."],
  ]),
  ...law("layout/checkOptions", [
    [
      "    if (known[name] !== true) throw isOfOtherCopy",
      "    if (false) throw isOfOtherCopy",
      "Misspelled options are ignored.",
    ],
    ["known[name] !== true", "!(name in known)", "An option called toString is accepted."],
    [
      '  if (typeof options !== "object" || options === null) throw noOptions(options, known);\n',
      "",
      "A number of bytes is accepted as options.",
    ],
  ]),
  ...law("layout/namesNear", [
    ["2 * letters <= near.length", "true", "A suggestion is made for any name."],
    ["names.slice(0, listed)", "names", "The error for a mistyped name lists thousands of others."],
  ]),
  ...law("layout/nearestOf", [
    [
      "letters < nearest.letters",
      'letters > nearest.letters || nearest.name === ""',
      "The error suggests the least similar name.",
    ],
  ]),
  ...law("layout/unknownDtype", [
    ["return letters <= 2 ?", "return letters <= 200 ?", "The error suggests a name for any input."],
    ["`<${source}`, `|${source}`", "`<${source}`", "A type string of one byte without a byte order is not recognized."],
  ]),
  ...law("layout/editDistance", [
    ["(isSame ? 0 : 1)", "1", "The error suggests a name that is hardly similar."],
    [
      "(before[j - 2] ?? Infinity) + 1 : Infinity",
      "Infinity : Infinity",
      "Two letters in the wrong order count twice.",
    ],
  ]),
  ...law("layout/complexCodec", [
    [
      '      if (typeof value !== "object" || value === null) throw',
      "      if (false) throw",
      "A function with the attributes of a complex number, such as an object of Python, is written as one.",
    ],
    [
      "      part.write(view, byteOffset + partSize, im);\n",
      "      part.write(view, byteOffset + partSize, Object(value).im);\n",
      "A complex number whose imaginary part throws is written by half.",
    ],
  ]),
  ...law("layout/checkBoolean", [
    ['  if (value !== undefined && typeof value !== "boolean") throw', "  if (false) throw", 'The text "no" is true.'],
    ["value !== undefined && ", "", "An option that is undefined is no default."],
  ]),
  ...law("layout/isAligned", [
    [
      "(dataPtr * 8n) % BigInt(itemsize * 8) === 0n",
      "dataPtr % BigInt(Math.ceil(itemsize)) === 0n && true",
      "The alignment of elements smaller than a byte is that of bytes.",
    ],
  ]),
  ...law("layout/packInto", [
    [
      "  if (sliceOffset % ratio !== 0) {\n",
      "  if (false) {\n",
      "Larger elements begin at an offset that is not a multiple of their size.",
    ],
    ["Math.trunc(stride / ratio) + 0", "Math.trunc(stride / ratio)", "A stride is -0."],
  ]),
  ...law("layout/largestPack", [
    [
      "gcd(gcd(most, extent), Math.abs(sliceOffset))",
      "gcd(most, extent)",
      "The answer does not divide the slice's offset, and repacking is refused.",
    ],
    [
      "    if (other !== axis && at(shape, other) !== 1) ratio",
      "    if (other !== axis) ratio",
      "An axis of one element makes the result smaller.",
    ],
    [
      "  while (!isItemsize(itemsize * ratio)) ratio = nextDivisor(ratio);\n",
      "",
      "Elements of 12 bits are reported as possible.",
    ],
  ]),
  ...law("layout/checkAdjacent", [
    [".concat(axis)", ".toSpliced(0, 0, axis)", "The error advises a copy that does not help."],
    ['shape.includes(0) ? "" : ', "", "The error advises a copy of an empty array, which does not help."],
  ]),
  ...law("layout/completeShape", [
    ["if (product === 0) throw cannotReshape", "if (false) throw cannotReshape", "An extent is NaN."],
  ]),
  ...law("layout/stridesForShape", [
    ["    if (taken > run) return null;\n", "", "Elements that are not evenly spaced are treated as evenly spaced."],
    ["        if (outer === 1) continue;\n", "", "An axis of one element makes a copy necessary."],
  ]),
  ...law("layout/notEvenlySpaced", [
    ['toDense("C") is', 'toDense("K") is', "The error advises a copy in the same order, which does not help."],
  ]),
  ...law("layout/noSize", [
    [
      'typeof value === "bigint" && isSize(value) ? `: Number(${value}n) is one` : ""',
      '""',
      "The error does not say how to convert a bigint.",
    ],
    [" && isSize(value)", "", "The error advises to convert a bigint to a number that is not valid either."],
  ]),
  ...law("layout/checkNdim", [
    ["  if (ndim > MAX_NDIM) throw", "  if (false) throw", "An array has more axes than any consumer accepts."],
  ]),
  ...law("layout/checkExtent", [
    [
      "  if (!(Number.isSafeInteger(extent) && extent >= 0)) throw",
      "  if (false) throw",
      "An invalid extent is accepted.",
    ],
  ]),
  ...law("layout/checkVolume", [
    [
      "return product <= Number.MAX_SAFE_INTEGER ? product :",
      "return product < Infinity ? product :",
      "The number of elements is no longer exact.",
    ],
  ]),
  ...law("layout/emptyOrTooLarge", [
    ["  if (shape.includes(0)) return 0;\n", "", "An empty array with large extents is refused."],
  ]),
  ...law("layout/normalizeAxis", [
    [
      "  if (fromFront < 0 || fromFront >= ndim) throw",
      "  if (false) throw",
      "An axis that does not exist is accepted.",
    ],
  ]),
  ...law("layout/copyStrides", [
    [
      "    if (distance > limit) isNear = false;\n",
      "",
      "An axis of one element has a stride that later arithmetic cannot hold.",
    ],
    [
      "  if (!(isNear && total < limit)) throw spansTooFar(shape, steps, itemsize);\n",
      "",
      "Offsets are no longer exact.",
    ],
    [
      "    if (!Number.isSafeInteger(given)) throw",
      "    if (false) throw",
      "A stride that is not an integer is accepted.",
    ],
  ]),
  ...law("layout/divided", [
    [
      "  if (stride % unit === 0) return stride / unit;\n",
      "  return stride / unit;\n",
      "Strides in bytes point between elements.",
    ],
  ]),
  ...law("layout/checkSpan", [
    ["  if (total * unit >= MAX_SPAN_IN_BYTES) throw", "  if (false) throw", "Offsets are no longer exact."],
  ]),
  ...law("layout/checkDenseSpan", [
    [
      "  if (volume * itemsize > MAX_SPAN_IN_BYTES || volume > MAX_SPAN_IN_BYTES) {\n",
      "  if (false) {\n",
      "Sizes are no longer exact.",
    ],
  ]),
  ...law("layout/StridedLayout.repacked", [
    [
      "    if (itemsize === this.itemsize && this.ndim === 0 && options?.axis === undefined) return this;\n",
      "",
      "A layout without axes cannot keep its itemsize.",
    ],
  ]),
  ...law("layout/StridedLayout.maxCompatibleItemsize", [
    [
      "    if (this.ndim === 0 && options?.axis === undefined) return this.itemsize;\n",
      "",
      "A layout without axes has no compatible itemsize.",
    ],
  ]),
  ...law("layout/isNested", [
    [
      "    if (stride <= reach) return false;\n    reach += stride * (extent - 1);\n  }\n  return true;\n}\n\n/**\n * As",
      "    if (stride < reach) return false;\n    reach += stride * (extent - 1);\n  }\n  return true;\n}\n\n/**\n * As",
      "Overlapping elements are reported as not overlapping.",
    ],
  ]),
  ...law("layout/hasNoCollision", [
    [
      "  if (volume > span) return false;",
      "  if (volume > span + 1) return false;",
      "Overlapping elements are reported as not overlapping.",
    ],
  ]),
  ...law("layout/CollisionSearch.meets", [
    ["hasMoved || taken !== 0", "taken !== 0", "Overlapping elements are reported as not overlapping."],
    [
      "      if (--this.#stepsLeft < 0) return true;\n",
      "      if (--this.#stepsLeft < 0) return false;\n",
      "A search that was not finished reports that nothing overlaps.",
    ],
  ]),
  ...law("layout/cachedLayout", [
    ["found.hasStrides !== (strides !== null)", "false", "An array without strides gets the strides of another one."],
    ["layout.itemsize !== itemsize || ", "", "An array gets the element size of another one."],
    [" || layout.shape.length !== ndim", "", "An array of fewer axes is mistaken for one of more."],
    ["    if (layout.shape[axis] !== shape[axis]) return null;\n", "", "An array gets the shape of another one."],
    [" * unit !== strides[axis]", " === null", "An array gets the strides of another one."],
    [
      "(layout.strides[axis] ?? 0) * unit",
      "(layout.strides[axis] ?? 0)",
      "Strides in bytes are mistaken for strides in elements.",
    ],
  ]),
  ...law("layout/showAs", [
    [
      "    } catch (error) {\n      return",
      "    } catch (error) {\n      throw error;\n      return",
      "Printing to the console fails.",
    ],
    [" || made.has(method)", "", "A derived class is the text that its base class is."],
    [" || method === Object.prototype.toString", "", "An object is [object Object] in text."],
    ['inJson === "text" && ', "", "The JSON of a layout is text, from which nothing can be made."],
  ]),
  ...law("layout/indentOf", [
    [
      '  if ("indentationLvl" in options) return spaces(options.indentationLvl);\n',
      "",
      "Deno prints rows without indentation.",
    ],
    ["2 * (options.depth - first)", "0", "Bun's console prints rows without indentation."],
    [' || "showHidden" in options', "", "Bun's util.inspect indents rows twice."],
  ]),
  ...law("layout/show", [
    ["depth < deepestShown ? ", "true ? ", "An error about an array that contains itself is another error."],
    ["values.slice(0, mostShown)", "values", "An error about a large array takes all memory."],
    [
      '  } catch {\n    return "a value that cannot be shown"',
      '  } catch (error) {\n    throw error; return ""',
      "An error is lost.",
    ],
  ]),
  ...law("layout/falseFor", [
    ["if (isOfOtherCopy(other))", "if (false)", "Equal dtypes of two copies of the package differ without a word."],
  ]),
  ...law("layout/isOfOtherCopy", [
    [
      "copy !== undefined && copy !== thisCopy",
      "false",
      "Objects of another copy lead to errors about something else.",
    ],
    [
      "    return false; // a proxy",
      "    return true; // a proxy",
      "A revoked proxy is taken for another copy's object.",
    ],
  ]),
  ...law("layout/giveName", [
    ["  checkName(name);\n  names", "  names", "Empty names are accepted."],
  ]),
];
