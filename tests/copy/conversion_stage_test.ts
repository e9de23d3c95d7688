/** How many elements are converted at a time: as many as the caches that hold them allow. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { conversionOf } from "../../src/copy/conversion.ts";
import { ConversionStage } from "../../src/copy/conversion_stage.ts";
import { DType } from "../../src/layout/mod.ts";
import { pairsOfTypes } from "../support/numbers.ts";

const stages = pairsOfTypes.flatMap(({ from, to }) => {
  const conversion = conversionOf(DType.from(from.name), DType.from(to.name));
  return conversion === null ? [] : [new ConversionStage(conversion)];
});

/** The fewest elements that take 2 MiB before and after conversion. */
function farCount({ fromBytes, toBytes }: ConversionStage): number {
  return Math.ceil(2 ** 21 / (fromBytes + toBytes));
}

test("a block is as large as the nearest cache allows on the wider side, and lies apart from its results", () => {
  for (const stage of stages) {
    assertEquals(stage.most * Math.max(stage.fromBytes, stage.toBytes), 8192);
    assert(stage.outputAt >= stage.most * stage.fromBytes);
    assertEquals(stage.mostOf(farCount(stage) - 1), stage.most);
  }
});

test("of arrays in no cache, blocks are whole cache lines that leave more than half of the nearest cache", () => {
  for (const stage of stages) {
    const { fromBytes, toBytes } = stage;
    const count = farCount(stage);
    assertEquals([count - 1, count].map((one) => stage.isFar(one)), [false, true]);
    const most = stage.mostOf(count);
    assertEquals(most % 64, 0);
    const fits = (elements: number) => elements * (fromBytes + toBytes) <= 6144 && elements <= stage.most;
    assert(most > 0 && fits(most) && !fits(most + 64), `${most} of ${fromBytes} and ${toBytes} bytes`);
  }
});

test("the elements of a run are put at the start of the memory, and nothing of what lies behind them", () => {
  for (const stage of stages.slice(0, 20)) {
    const bytes = new Uint8Array(100 * stage.fromBytes).fill(1);
    stage.memory().fill(7);
    stage.takeRun(bytes, stage.fromBytes, 3);
    const taken = stage.memory();
    assertEquals([taken.findIndex((byte) => byte !== 1), taken.indexOf(1, 3 * stage.fromBytes)], [
      3 * stage.fromBytes,
      -1,
    ]);
  }
});
