/** Sources of message streams: they are told when no more of them is wanted, and only then. */
import { assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { encodeVortexIpc, fromVortexMetadata, readVortexIpc, VortexError } from "../../../src/vortex/mod.ts";
import { protoOf } from "../../../src/vortex/wire/proto_writer.ts";
import { writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";

const u64 = writeDType({ kind: "primitive", ptype: "u64", nullable: false });
const sevens = fromVortexMetadata(["vortex.constant", u64, 3, new Uint8Array(), [protoOf([[4, 7]])], []]);
const { dtype, array } = encodeVortexIpc(sevens);

/** A source of pieces, and whether it was told to end. */
function watched(...pieces: readonly Uint8Array[]) {
  const state = { isTold: false };
  const values = pieces.values();
  const iterator: AsyncIterator<Uint8Array> = {
    next: () => Promise.resolve(values.next()),
    return: () => {
      state.isTold = true;
      return Promise.resolve({ done: true, value: undefined });
    },
  };
  return { state, source: { [Symbol.asyncIterator]: () => iterator } };
}

test("a source that is read to its end is not told to end", async () => {
  const { state, source } = watched(dtype, array, array);
  assertEquals(await Array.fromAsync(readVortexIpc(source), ({ length }) => length), [3, 3]);
  assertEquals(state.isTold, false);
});

test("a source that is left early is told so, and so is one whose messages are wrong", async () => {
  const left = watched(dtype, array, array);
  for await (const one of readVortexIpc(left.source)) {
    assertEquals(one.length, 3);
    break;
  }
  assertEquals(left.state.isTold, true);
  const wrong = watched(new Uint8Array(12), array);
  await assertRejects(() => readVortexIpc(wrong.source).next(), VortexError);
  assertEquals(wrong.state.isTold, true);
});

test("a source that fails is not told to end: its error is the reader's", async () => {
  const { state, source } = watched();
  source[Symbol.asyncIterator]().next = () => Promise.reject(new Error("the connection broke"));
  await assertRejects(() => readVortexIpc(source).next(), Error, "the connection broke");
  assertEquals(state.isTold, false);
});

test("a source that cannot end hides no error of its messages, and is an error where there is no other", async () => {
  const [wrong, left] = [watched(new Uint8Array(12)), watched(dtype, array, array)];
  let told = 0;
  for (const { source } of [wrong, left]) {
    source[Symbol.asyncIterator]().return = () => {
      told++;
      return Promise.reject(new Error("the connection does not close"));
    };
  }
  await assertRejects(() => readVortexIpc(wrong.source).next(), VortexError, "Cannot read the message");
  assertEquals(told, 1);
  const reader = readVortexIpc(left.source);
  await reader.next();
  await assertRejects(() => reader.return(), Error, "the connection does not close");
  assertEquals(told, 2);
});
