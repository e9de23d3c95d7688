/** The protective lines of files. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const filesMutations: readonly Mutation[] = [
  ...law("files/fill", [
    ["    await hostReady(lane.block);\n", "", "A block is overwritten while it travels to the device."],
    [
      "await readBlock(source, block, swapped);",
      "await readBlock(source, block, 0);",
      "Numbers of the other byte order are read as they lie.",
    ],
  ]),
  ...law("files/checkReadOptions", [
    [
      "  if (device !== undefined) checkPlaceOfArray(device);\n",
      "",
      "Who names a device by its number reads to the host, in silence.",
    ],
    ["  if (memory !== undefined) checkResource(memory);\n", "", "What is no resource is an error from within."],
    ["  checkProgress(onProgress);\n", "", "What is no function is an error when the file is open."],
    ["  checkOpenStream(", "  void (", "What is no stream is an error from within."],
  ]),
  ...law("files/namedViews", [
    [" || Array.isArray(arrays)", "", "Views without names are written as 0, 1, 2."],
  ]),
  ...law("files/headerFor", [
    [
      "  if (!(view instanceof StridedMemoryView)) throw notAView(view, where);\n",
      "",
      "Who writes a typed array reads that undefined has no layout.",
    ],
  ]),
  ...law("files/openBlob", [
    ["readBlob(blob, position,", "readBlob(blob, 0,", "A Blob's header is taken for its elements."],
  ]),
  ...law("files/openNpy", [
    ["  if (swapped !== 0) {", "  if (swapped > 99) {", "Numbers of the other byte order are mapped."],
    ["  if (size - to < promised) {", "  if (size < 0) {", "Who looks at a file that is too short dies."],
    [
      "writable ? MAP.SHARED : MAP.PRIVATE | MAP.NORESERVE",
      "MAP.SHARED",
      "Whoever writes past readonly changes the file, or dies.",
    ],
  ]),
  ...law("files/readDirectory", [
    ["(flags & 0x2041) !== 0", "flags < 0", "Encrypted bytes are taken for an array."],
    ["size > packed * mostInflated + 64", "size < 0", "A few bytes have any amount of memory allocated."],
  ]),
  ...law("files/checkedSource", [
    ["if (total !== member.size) throw", "if (total < 0) throw", "A member that ends early is taken for whole."],
    ["if (crc !== member.crc) {", "if (crc < 0) {", "Damaged bytes are taken for an array."],
  ]),
];
