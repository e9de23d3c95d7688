/** The protective lines of decoding Vortex arrays on devices. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const vortexDeviceMutations: readonly Mutation[] = [
  ...law("vortex/device.unpackKernel", [
    ["{ key: `unpack ${width} ", "{ key: `unpack ", "Words of one width are unpacked like those of another."],
    [
      '`setp.lt.u32 $, ${ptx.make("r", `add.u32 $, ${place}, ${offset}`)}, ${count}`',
      "`setp.lt.u32 $, ${place}, ${count}`",
      "Words past the last one overwrite other memory.",
    ],
    ["cvt.s64.s32 $, ${place}", "cvt.u64.u32 $, ${place}", "Words of a slice are written far past it."],
    ["(width < bits) value", "(width < bits - 1) value", "Words contain a bit of the next one."],
  ]),
  ...law("vortex/device.stepKernel", [
    ["endUnless(ptx, thread, count);", "", "Words past the last one are changed."],
  ]),
  ...law("vortex/device.takeKernel", [
    ["`@${isThere} `);\n", '"");\n', "An invalid code reads other memory."],
    ["    ptx.line(`@${isThere} ret`);\n", "", "Valid codes are reported as invalid."],
    ["setp.eq.u32 $, ${bit}, 0", "setp.ne.u32 $, ${bit}, 0", "The value under a null causes an error."],
  ]),
  ...law("vortex/device.runKernel", [
    ["setp.gt.u32 $, ${loadWord", "setp.ge.u32 $, ${loadWord", "The row after a run gets its value."],
  ]),
  ...law("vortex/device.endsKernel", [
    ["setp.gt.u32 $, ${end}, ${before}", "setp.ge.u32 $, ${end}, ${before}", "Two runs end at the same row."],
    ["selp.u32 $, ${reaches}, 1, ${isLast}", "selp.u32 $, 1, 1, ${isLast}", "Rows past the last run get its value."],
  ]),
  ...law("vortex/device.sequenceKernel", [
    ["endUnless(ptx, thread, count);", "", "Words past the last one overwrite other memory."],
  ]),
  ...law("vortex/device.patchKernel", [
    ["endUnless(ptx, thread, count);", "", "Rows that were not listed are patched."],
  ]),
  ...law("vortex/device.numbers", [
    ["if (found[0] !== 0) fail();", "", "Invalid codes become zeros."],
    ["if (!(row >= 0 && row < node.length)) {", "if (false) {", "A patch overwrites other memory."],
    [
      "    for (const buffer of this.#open) buffer.close();\n",
      "",
      "After an error, memory stays allocated on the device.",
    ],
    ["    if (entries.validity !== null) {", "    if (false) {", "Null values become zeros."],
    [
      "inNode(node, () => checkRuns(ends, node.length, offset));",
      "",
      "Rows past the last run read other memory.",
    ],
  ]),
  ...law("vortex/toArrowOnDevice", [
    ["keep.dictionary && encoding === dictEncoding || ", "", "Dictionaries that should be kept are decoded."],
    ["keep.runEnd && encoding === runEndEncoding", "false", "Runs that should be kept are decoded."],
    ["    decoder.abandon();\n", "", "After an error, memory stays allocated on the device."],
  ]),
  ...law("vortex/DeviceArrow.sent", [
    [
      "hasViews(field.type) ? array.buffers.slice(0, -1) : array.buffers",
      "array.buffers",
      "The sizes of text's data are where no consumer reads them.",
    ],
    ["    for (const child of children) child.close();\n", "", "Columns of a struct stay allocated on the device."],
  ]),
];
