/** The protective lines of the room `layout`. */
import { inFile, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const layoutMutations: readonly Mutation[] = [
  ...inFile("src/layout/span.ts", [
    "tests/layout/strided_layout_errors_test.ts",
    "tests/layout/strided_layout_test.ts",
    "tests/layout/strided_layout_oracle_test.ts",
  ], [
    [
      "    if (distance > limit) isNear = false;\n",
      "",
      "An axis of one element has a stride that later arithmetic cannot hold.",
    ],
    [
      "  if (!(isNear && total < limit)) throw spansTooFar(shape, steps, itemsize);\n",
      "",
      "Offsets are not exact any more.",
    ],

    ["  if (total * unit >= MAX_SPAN_IN_BYTES) throw", "  if (false) throw", "Offsets are not exact any more."],
    [
      "  if (volume * itemsize > MAX_SPAN_IN_BYTES || volume > MAX_SPAN_IN_BYTES) {\n",
      "  if (false) {\n",
      "Sizes are not exact any more.",
    ],
    ["    if (!Number.isSafeInteger(given)) throw", "    if (false) throw", "A stride that is no integer is believed."],
    [
      "  if (stride % unit === 0) return stride / unit;\n",
      "  return stride / unit;\n",
      "Strides in bytes point between elements.",
    ],
  ]),
  ...inFile("src/layout/shape.ts", ["tests/layout/strided_layout_errors_test.ts"], [
    [
      "  if (!(Number.isSafeInteger(extent) && extent >= 0)) throw",
      "  if (false) throw",
      "An extent that cannot be is believed.",
    ],
    ["  if (ndim > MAX_NDIM) throw", "  if (false) throw", "More axes than any consumer takes."],
    [
      "return product <= Number.MAX_SAFE_INTEGER ? product :",
      "return product < Infinity ? product :",
      "The number of elements is not exact any more.",
    ],
    ["  if (shape.includes(0)) return 0;\n", "", "An empty array with large extents is refused."],
    ["  if (fromFront < 0 || fromFront >= ndim) throw", "  if (false) throw", "An axis that is not there is believed."],
  ]),
  ...inFile("src/layout/repack.ts", ["tests/layout/strided_layout_oracle_test.ts"], [
    [".concat(axis)", ".toSpliced(0, 0, axis)", "A copy is advised that does not help."],
    ['shape.includes(0) ? "" : ', "", "A copy of nothing is advised, which does not help."],
  ]),
  ...inFile("src/layout/reshape.ts", ["tests/layout/strided_layout_oracle_test.ts"], [
    ['toDense("C") is', 'toDense("K") is', "A copy in the same order is advised, which does not help."],
  ]),
  ...inFile("src/layout/strided_layout.ts", ["tests/layout/strided_layout_oracle_test.ts"], [
    [
      "    if (itemsize === this.itemsize && this.ndim === 0 && options?.axis === undefined) return this;\n",
      "",
      "A layout without axes cannot keep its itemsize.",
    ],
    [
      "    if (this.ndim === 0 && options?.axis === undefined) return this.itemsize;\n",
      "",
      "A layout without axes has no compatible itemsize.",
    ],
  ]),
  ...inFile("src/layout/shape.ts", ["tests/cuda/bad_input_test.ts"], [
    ['typeof value === "bigint" ? `: Number(${value}n) is one` : ""', '""', "What to do with a bigint is not said."],
  ]),
  ...inFile("src/layout/options.ts", ["tests/options_test.ts"], [
    [
      "if (known[name] !== true) throw unknownOption(name, known);",
      "{}",
      "Options that are spelled wrong are left aside.",
    ],
    ["known[name] !== true", "!(name in known)", "An option called toString is known."],
    [
      '  if (typeof options !== "object") throw noOptions(options, known);\n',
      "",
      "A number of bytes is taken for options.",
    ],
    ["Math.min(...distances)", "Math.max(...distances)", "The error names what was least meant."],
    ["Number(letter !== letterThere)", "1", "The error names what was hardly meant."],
  ]),
];
