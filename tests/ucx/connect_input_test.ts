/** Connect arguments of a program without types: found by typing "localhost:1234". */
import { assertRejects, assertThrows } from "@std/assert";
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

test("switches and numbers of another type are refused, for a text from the environment would be taken for true", async () => {
  for (const wrong of ["false", "no", 0, null]) {
    const remoteMemory = wrong as unknown as boolean;
    assertThrows(() => Ucx.open({ remoteMemory }), TypeError, "Expected remoteMemory to be true or false");
  }
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  const bytes = new Uint8Array(8);
  for (const wrong of ["no", null]) {
    const unchecked = wrong as unknown as boolean;
    await assertRejects(() => worker.connect(worker.address, { unchecked }), TypeError, "Expected unchecked to be");
    const signal = wrong as unknown as AbortSignal;
    await assertRejects(() => worker.recv(bytes, { signal }), TypeError, "Expected signal to be an AbortSignal");
    const timeout = wrong as unknown as number;
    await assertRejects(() => worker.recv(bytes, { timeout }), RangeError, "expected a number of at least 0");
    const limits = { messages: wrong as unknown as number };
    assertThrows(() => ucx.createWorker({ limits }), RangeError, "expected a number of at least 1");
    for (const key of [wrong, undefined] as unknown as Uint8Array[]) {
      assertThrows(() => endpoint.remote(key), TypeError, "expected the key of a region");
    }
    await assertRejects(
      () => endpoint.sendMany(wrong as unknown as []),
      TypeError,
      "Expected an array of what to send",
    );
  }
  for (const host of [null, ["127", "1"], {}]) {
    const to = { host: host as unknown as string, port: 5 };
    await assertRejects(() => worker.connect(to), TypeError, "expected host to be a name or a numeric address");
  }
  for (const given of [{}, { connections: undefined, handshakes: undefined, messages: undefined }]) {
    await using _listener = worker.listen({ secret: "s3cret", limits: given as object });
  }
});

test("a misspelled option host or port is named, with the option that was probably meant", async () => {
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  for (
    const [to, says] of [
      [{ host: "127.0.0.1", prt: 1 }, 'Unknown option "prt": did you mean port?'],
      [{ hst: "127.0.0.1", port: 1 }, 'Unknown option "hst": did you mean host?'],
      [{ host: "127.0.0.1", port: 1, sercet: "s" }, 'Unknown option "sercet": did you mean secret?'],
      [
        { host: "127.0.0.1", port: 1, timeout: 5 },
        "timeout is an option. Pass it second: connect({ host, port }, { timeout })",
      ],
      [{ host: "127.0.0.1", port: 1, signal: null }, "signal is an option. Pass it second"],
      [{ host: "", port: 1 }, 'expected host to be a name or a numeric address, got ""'],
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
