/**
 * Copies in host memory that convert the elements, by the rules of `conversion.ts`.
 *
 * @module
 */
import type { Conversion } from "./conversion.ts";
import { BLOCK, ConversionStage } from "./conversion_stage.ts";
import { eachRow, type HostArray } from "./host_copy.ts";

/** Copies every element, converted, to its place. Both must begin at whole bytes; they must not overlap. */
export function convertHost(source: HostArray, destination: HostArray, conversion: Conversion): void {
  const stage = new ConversionStage(conversion);
  eachRow(source, destination, (fromAt, fromStep, toAt, toStep, count) => {
    const isRun = fromStep === source.layout.itemsize && toStep === destination.layout.itemsize;
    if (isRun) convertRun(stage, source.bytes, fromAt, destination.bytes, toAt, count);
    else {for (let i = 0; i < count; i++) {
        convertRun(stage, source.bytes, fromAt + i * fromStep, destination.bytes, toAt + i * toStep, 1);
      }}
  });
}

function convertRun(
  stage: ConversionStage,
  from: Uint8Array,
  fromAt: number,
  to: Uint8Array,
  toAt: number,
  count: number,
): void {
  const { inputBytes, outputBytes, outputAt } = stage;
  const memory = stage.memory();
  for (let done = 0; done < count; done += BLOCK) {
    const size = Math.min(BLOCK, count - done);
    const [read, written] = [fromAt + done * inputBytes, toAt + done * outputBytes];
    memory.set(from.subarray(read, read + size * inputBytes), 0);
    stage.convert(size);
    to.set(memory.subarray(outputAt, outputAt + size * outputBytes), written);
  }
}
