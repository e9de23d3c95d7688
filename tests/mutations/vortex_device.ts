/** The protective lines of what decodes Vortex's arrays on devices. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const vortexDeviceMutations: readonly Mutation[] = [
  ...law("vortex/device.unpackKernel", [
    ["{ key: `unpack ${width} ", "{ key: `unpack ", "Words of one width are unpacked as those of another."],
    [
      '`setp.lt.u32 $, ${ptx.make("r", `add.u32 $, ${place}, ${offset}`)}, ${count}`',
      "`setp.lt.u32 $, ${place}, ${count}`",
      "Words behind the last are written over somebody's memory.",
    ],
    ["cvt.s64.s32 $, ${place}", "cvt.u64.u32 $, ${place}", "Words of a slice are written far behind it."],
    ["(width < bits) value", "(width < bits - 1) value", "Words have a bit of the next one."],
  ]),
  ...law("vortex/device.stepKernel", [
    ["endUnless(ptx, thread, count);", "", "Words behind the last are changed."],
  ]),
  ...law("vortex/device.takeKernel", [
    ["`@${isThere} `);\n", '"");\n', "A code that stands for nothing reads somebody's memory."],
    ["    ptx.line(`@${isThere} ret`);\n", "", "Codes that are right are wrong."],
    ["setp.eq.u32 $, ${bit}, 0", "setp.ne.u32 $, ${bit}, 0", "What stands under a null makes an error."],
  ]),
  ...law("vortex/device.runKernel", [
    ["setp.gt.u32 $, ${loadWord", "setp.ge.u32 $, ${loadWord", "The row behind a run belongs to it."],
  ]),
  ...law("vortex/device.endsKernel", [
    ["setp.gt.u32 $, ${end}, ${before}", "setp.ge.u32 $, ${end}, ${before}", "Two runs end at the same row."],
    ["selp.u32 $, ${reaches}, 1, ${isLast}", "selp.u32 $, 1, 1, ${isLast}", "Rows behind the last run have its value."],
  ]),
  ...law("vortex/device.sequenceKernel", [
    ["endUnless(ptx, thread, count);", "", "Words behind the last are written over somebody's memory."],
  ]),
  ...law("vortex/device.patchKernel", [
    ["endUnless(ptx, thread, count);", "", "Rows that nobody has named are patched."],
  ]),
  ...law("vortex/device.numbers", [
    ["if (found[0] !== 0) fail();", "", "Codes that stand for nothing are zeros."],
    ["if (!(row >= 0 && row < node.length)) {", "if (false) {", "A patch is written over somebody's memory."],
    ["    for (const buffer of this.#open) buffer.close();\n", "", "After an error memory stays on the device."],
    ["    if (entries.validity !== null) {", "    if (false) {", "Values that are null are zeros."],
    [
      "inNode(node, () => checkRuns(ends, node.length, offset));",
      "",
      "Rows behind the last run read somebody's memory.",
    ],
  ]),
  ...law("vortex/toArrowOnDevice", [
    ["keep.dictionary && encoding === dictEncoding || ", "", "Dictionaries are decoded that were to be kept."],
    ["keep.runEnd && encoding === runEndEncoding", "false", "Runs are decoded that were to be kept."],
    ["    decoder.abandon();\n", "", "After an error memory stays on the device."],
    ["    for (const child of children) child.close();\n", "", "Columns of a struct stay on the device."],
  ]),
];
