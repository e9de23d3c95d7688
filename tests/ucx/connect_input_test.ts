/** Connect arguments of a program without types: found by typing "localhost:1234". */
import { assertRejects } from "@std/assert";
import { test } from "node:test";
import { Ucx, type UcxWorker } from "../../mod.ts";

test("an argument that is neither an address nor a host is named in the error, with what is expected", async () => {
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  for (
    const [to, got] of [["localhost:1234", '"localhost:1234"'], [undefined, "undefined"], [null, "null"], [7, "7"]]
  ) {
    await assertRejects(
      () => worker.connect(to as unknown as Parameters<UcxWorker["connect"]>[0]),
      TypeError,
      `or { host, port } of a listener, got ${got}`,
    );
  }
});

test("a misspelled option host or port is named, with the option that was probably meant", async () => {
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  for (
    const [to, says] of [
      [{ host: "127.0.0.1", prt: 1 }, 'Unknown option "prt": did you mean port?'],
      [{ hst: "127.0.0.1", port: 1 }, 'Unknown option "hst": did you mean host?'],
      [{ host: "127.0.0.1" }, "expected { host, port } of a listener, got { host }"],
    ] as const
  ) {
    await assertRejects(
      () => worker.connect(to as unknown as Parameters<UcxWorker["connect"]>[0]),
      TypeError,
      says,
    );
  }
});
