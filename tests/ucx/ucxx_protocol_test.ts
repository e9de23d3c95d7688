/** UCXX's protocol: tags, greeting and headers as UCXX makes them, between two workers, and with its own package. */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { execFileSync, spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { clearTimeout, setTimeout } from "node:timers";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { isBefore } from "../../src/ucx/version.ts";
import {
  HashedTags,
  readGreeting,
  ucxxMessages,
  ucxxTag,
  UcxxTags,
  writeGreeting,
} from "../../src/ucx/ucxx_protocol.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { contentOf } from "../support/ucx_messages.ts";

const most = 2n ** 64n - 1n;
const prime = 2n ** 61n - 1n;
const word = fc.bigInt({ min: 0n, max: most });

// UCXX 0.52's results for (connection number, tag); Python first hashes integers modulo 2^61 - 1.
const known: readonly (readonly [messageTag: bigint, tag: bigint, onTheWire: bigint])[] = [
  [0n, 0n, 0x52faafd102648a33n],
  [0n, prime, 0x52faafd102648a33n],
  [0n, prime - 1n, 0x174c17acf8267a3bn],
  [0n, most, 0x8bf6509c3edf7526n],
  [1n, 1n, 0xd17c7c5e7c759de3n],
  [1n, prime + 1n, 0xd17c7c5e7c759de3n],
  [0x123456789abcdef0n, 0n, 0x2932fce570d2e590n],
  [0x123456789abcdef0n, 2n ** 63n + 7n, 0x81d00691730eace0n],
  [most, prime - 1n, 0x8efb3b347b4ac336n],
  [most, most, 0x843fbdb1c5aba09fn],
];

test("a tag is hashed on the wire as UCXX hashes it", () => {
  for (const [messageTag, tag, onTheWire] of known) assertEquals(ucxxTag(messageTag, tag), onTheWire);
});

test("a greeting has UCXX's 16 bytes", () => {
  assertEquals(writeGreeting(0n).toHex(), "00000000000000009f7f62b15609dd22");
  assertEquals(writeGreeting(most).toHex(), "ffffffffffffffff98cb4217738fca81");
  assertEquals(writeGreeting(0x0123456789abcdefn).toHex(), "efcdab89674523010dc0b2132a4d3a97");
});

test("a greeting is read as it was written, and refused with any bit changed", () => {
  check(
    fc.property(word, fc.nat(127), (messageTag, bit) => {
      const greeting = writeGreeting(messageTag);
      assertEquals(readGreeting(greeting), messageTag);
      greeting[bit >> 3] = (greeting[bit >> 3] ?? 0) ^ 1 << (bit & 7);
      assertThrows(() => readGreeting(greeting), TypeError, "UCXX's greeting");
    }),
    300,
  );
});

test("two sides that have greeted agree on every tag, and the tags of two connections differ", () => {
  check(
    fc.property(word, word, fc.array(fc.record({ tag: word, exact: fc.boolean() })), (a, b, tags) => {
      fc.pre(a !== b);
      const [here, there] = [new UcxxTags(a, b), new UcxxTags(b, a)];
      assertEquals([here.toSend({}), here.toReceive({})], [b, a]);
      for (const given of [...tags, ...tags]) {
        const onTheWire = here.toSend(given);
        assertEquals(there.toReceive(given), onTheWire);
        assertEquals(onTheWire, given.exact ? given.tag : ucxxTag(b, given.tag));
      }
    }),
    200,
  );
});

test("a program that counts its messages in the tag gets the right ones, in bounded memory", () => {
  const tags = new HashedTags(2n);
  for (let tag = 0n; tag < 10_000n; tag++) {
    assertEquals(tags.of({ tag }), ucxxTag(2n, tag));
    assert(tags.known <= 4096);
  }
});

test("tags that cannot be encoded are refused", () => {
  const tags = new UcxxTags(1n, 2n);
  for (const tag of [-1n, most + 1n]) {
    for (const exact of [false, true]) {
      assertThrows(() => tags.toSend({ tag, exact }), RangeError, "2^64");
      assertThrows(() => tags.toReceive({ tag, exact }), RangeError, "2^64");
    }
  }
  assertThrows(() => tags.toSend({ exact: true }), TypeError, "exact tag");
  assertThrows(() => tags.toReceive({ tag: 1n, mask: 1n }), TypeError, "hashed");
  assertThrows(() => tags.toReceive({ tag: 1n, mask: -1n, exact: true }), RangeError, "mask");
  assertEquals(tags.toReceive({ tag: 3n, mask: 1n, exact: true }), 3n);
});

test("an active message has UCXX's header before the program's own", () => {
  assertEquals(ucxxMessages.write(Uint8Array.of(7, 8), false).toHex(), "0000000000000200000000000000" + "0708");
  assertEquals(ucxxMessages.write(Uint8Array.of(), true).toHex(), "0100000000000000000000000000");
  // What libucxx 0.52 sent for the header "from C++": without a callback, and for callback 77 of "owner".
  const plain = "0000000000000800000000000000" + "66726f6d20432b2b";
  const owner = "6f776e6572".padEnd(128, "0");
  const forCallback = `0000000001${owner}4d00000000000000${"01"}0800000000000000` + "66726f6d20432b2b";
  for (const bytes of [plain, forCallback]) {
    assertEquals(ucxxMessages.read(Uint8Array.fromHex(bytes)), new TextEncoder().encode("from C++"));
  }
  assertEquals(ucxxMessages.write(new TextEncoder().encode("from C++"), false).toHex(), plain);
});

test("the program's header is read as it was written, and other bytes are not a message", () => {
  check(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.boolean(), fc.nat(200), (header, isCuda, cut) => {
      const written = new Uint8Array(ucxxMessages.write(header, isCuda));
      assertEquals(ucxxMessages.read(written), new Uint8Array(header));
      if (cut < written.length) assertEquals(ucxxMessages.read(written.slice(0, cut)), null);
      const longer = new Uint8Array(written.length + 1);
      longer.set(written);
      assertEquals(ucxxMessages.read(longer), null);
    }),
    300,
  );
});

/** A listener and a client of it, both with UCXX's protocol. */
async function pair(
  ucx: Ucx,
): Promise<{ here: UcxEndpoint; there: UcxEndpoint; workers: [UcxWorker, UcxWorker]; close(): Promise<void> }> {
  const workers: [UcxWorker, UcxWorker] = [
    ucx.createWorker({ protocol: "ucxx" }),
    ucx.createWorker({ protocol: "ucxx" }),
  ];
  const listener = await workers[0].listen();
  const timer = setTimeout(() => void listener.close(), 8000); // accept waits no longer than this
  const [there, here] = await Promise.all([workers[1].connect(listener), listener.accept()]);
  clearTimeout(timer);
  assert(here !== null);
  const close = async () => {
    await Promise.all(workers.map((worker) => worker.close({ timeout: 2000 })));
  };
  return { here, there, workers, close };
}

test("two workers exchange messages of every tag, hashed, as they are, and without one", patiently, async () => {
  using ucx = Ucx.open();
  const { here, there, close } = await pair(ucx);
  const tag = fc.oneof(fc.constant(undefined), word, fc.constantFrom(0n, prime, prime - 1n, most));
  let message = 0;
  await check(
    fc.asyncProperty(
      fc.array(fc.record({ tag, exact: fc.boolean(), size: fc.nat(20_000), isBack: fc.boolean() }), { maxLength: 8 }),
      async (plan) => {
        for (const { tag, exact, size, isBack } of plan) {
          const given = tag === undefined ? {} : exact ? { tag, exact } : { tag };
          const [from, to] = isBack ? [here, there] : [there, here];
          const content = contentOf(message++, size);
          const into = new Uint8Array(size);
          const [received] = await Promise.all([to.recv(into, given), from.send(content, given)]);
          assertEquals(received.length, size);
          assertEquals(into, content);
          if (exact && tag !== undefined) assertEquals(received.tag, tag);
          else if (tag !== undefined) assert(received.tag !== tag);
        }
      },
    ),
    30,
  );
  await close();
});

test("several parts, and both ways that wait in place, have the same tags", async () => {
  using ucx = Ucx.open();
  const { here, there, workers, close } = await pair(ucx);
  for (const given of [{}, { tag: 5n }, { tag: 6n, exact: true }]) {
    const parts = Array.from({ length: 120 }, (_, i) => contentOf(i, i));
    const [views] = await Promise.all([here.recvMany(given), there.sendMany(parts, given)]);
    assertEquals(views.map((view) => new Uint8Array(view.buffer.bytes())), parts);
    for (const view of views) view.close();
    if (given.exact) assertEquals(views.tag, 6n);
    const [, { tag }] = await Promise.all([there.send(Uint8Array.of(1), given), here.recv(new Uint8Array(1), given)]);
    assertEquals(views.tag, tag); // on the wire, hashed or not
    there.sendSync(Uint8Array.of(1, 2), given);
    await there.flush();
    const into = new Uint8Array(2);
    here.recvSync(into, { ...given, timeout: 5000 });
    assertEquals(into, Uint8Array.of(1, 2));
  }
  await there.send(Uint8Array.of(9), { tag: 8n, exact: true });
  const one = new Uint8Array(1);
  assertEquals((await workers[0].recv(one, { tag: 8n, timeout: 5000 })).tag, 8n); // from any sender, tags unchanged
  await there.send(Uint8Array.of(9), { tag: 8n, exact: true });
  assertEquals((await workers[0].recv(one, { tag: 0n, mask: 0n, exact: true, timeout: 5000 })).tag, 8n);
  await assertRejects(() => workers[0].recv(one, { tag: 8n, exact: false }), TypeError, "endpoints");
  await close();
});

test("arrays and streams, which UCXX does not know, are refused with what to use instead, and send nothing", async () => {
  // UCXX has no handler for their active messages: an array was lost, and the stream's control bytes were read as data.
  using ucx = Ucx.open();
  const { here, there, workers, close } = await pair(ucx);
  for (const endpoint of [here, there]) {
    await assertRejects(() => endpoint.sendArray(Float32Array.of(1)), TypeError, "Use send or sendMany by tag");
    await assertRejects(() => endpoint.recvArray(), TypeError, "Use recv or recvMany by tag");
    assertThrows(() => endpoint.readable, TypeError, "Use rawStream.recvAll");
    assertThrows(() => endpoint.writable, TypeError, "Use rawStream.send");
  }
  await assertRejects(() => workers[0].recvArray(), TypeError, "Use recv or recvMany by tag");
  const bytes = new Uint8Array(2);
  await Promise.all([there.rawStream.send(Uint8Array.of(1, 2)), here.rawStream.recvAll(bytes)]);
  assertEquals(bytes, Uint8Array.of(1, 2));
  await close();
});

test("two clients that use the same tag get their own messages", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker({ protocol: "ucxx" });
  await using client = ucx.createWorker({ protocol: "ucxx" });
  const listener = await server.listen();
  const ends: [UcxEndpoint, UcxEndpoint][] = [];
  for (let i = 0; i < 3; i++) {
    const [there, here] = await Promise.all([client.connect(listener), listener.accept()]);
    assert(here !== null);
    ends.push([there, here]);
  }
  await Promise.all(ends.map(([there], i) => there.send(Uint8Array.of(i), { tag: 1n })));
  for (const [i, [, here]] of ends.reverse().entries()) {
    const into = new Uint8Array(1);
    await here.recv(into, { tag: 1n, timeout: 5000 });
    assertEquals(into[0], 2 - i);
  }
});

test("active messages arrive with the program's header, which has less room than with UCX alone", async () => {
  using ucx = Ucx.open();
  const { here, there, close } = await pair(ucx);
  const messages = here.messages()[Symbol.asyncIterator]();
  for (const [header, size] of [["", 0], ["first", 10], ["large", 1 << 20]] as const) {
    const content = contentOf(size, size);
    const sent = there.sendMessage(content, { header });
    const { value, done } = await messages.next();
    assert(done !== true);
    assertEquals(value.text, header);
    assertEquals(await value.bytes(), content);
    await sent;
  }
  const none = new Uint8Array(0);
  const tooLong = await assertRejects(() => there.sendMessage(none, { header: new Uint8Array(1 << 20) }), RangeError);
  const longest = Number(/takes up to (\d+) here/.exec(tooLong.message)?.[1]);
  await assertRejects(() => there.sendMessage(none, { header: new Uint8Array(longest + 1) }), RangeError);
  await there.sendMessage(none, { header: new Uint8Array(longest) });
  const { value } = await messages.next();
  assertEquals(value?.header.length, longest);
  await close();
});

test("an endpoint by address has only exact tags: UCXX does not greet there", async () => {
  using ucx = Ucx.open();
  await using alice = ucx.createWorker({ protocol: "ucxx" });
  await using bob = ucx.createWorker({ protocol: "ucxx" });
  const [toBob, toAlice] = await Promise.all([alice.connect(bob.address), bob.connect(alice.address)]);
  const one = Uint8Array.of(1);
  for (const given of [{}, { tag: 1n }, { tag: 1n, exact: false }]) {
    await assertRejects(() => toBob.send(one, given), TypeError, "exact: true");
    await assertRejects(() => toBob.recv(one, given), TypeError, "exact: true");
  }
  const into = new Uint8Array(1);
  await toBob.send(one, { tag: 4n, exact: true });
  assertEquals((await toAlice.recv(into, { tag: 4n, exact: true, timeout: 5000 })).length, 1);
});

test("exact tags and a limit for greetings need UCXX's protocol; an unknown protocol is refused", async () => {
  using ucx = Ucx.open();
  // @ts-expect-error: there is no such protocol
  assertThrows(() => ucx.createWorker({ protocol: "ucx-py" }), RangeError, "causeway or ucxx");
  await using alice = ucx.createWorker({ protocol: "causeway" });
  await using bob = ucx.createWorker();
  const endpoint = await alice.connect(bob.address);
  const one = new Uint8Array(1);
  for (const exact of [false, true]) {
    const given = { tag: 1n, exact, timeout: 1000 };
    await assertRejects(() => endpoint.send(one, given), TypeError, '"ucxx"');
    await assertRejects(() => endpoint.sendMany([one], given), TypeError, '"ucxx"');
    await assertRejects(() => endpoint.recv(one, given), TypeError, '"ucxx"');
    await assertRejects(() => endpoint.recvMany(given), TypeError, '"ucxx"');
    await assertRejects(() => bob.recv(one, given), TypeError, '"ucxx"');
    await assertRejects(() => bob.recvMany(given), TypeError, '"ucxx"');
    assertThrows(() => endpoint.sendSync(one, given), TypeError, '"ucxx"');
    assertThrows(() => endpoint.recvSync(one, given), TypeError, '"ucxx"');
    assertThrows(() => bob.recvSync(one, given), TypeError, '"ucxx"');
  }
  assertThrows(() => alice.listen({ timeout: 100 }), TypeError, '"ucxx"');
  await using ucxx = ucx.createWorker({ protocol: "ucxx" });
  assertThrows(() => ucxx.listen({ timeout: -1 }), RangeError, "-1 ms");
});

test("a client that greets with other bytes is rejected and counted; the next one is served", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker({ protocol: "ucxx" });
  await using stranger = ucx.createWorker();
  await using client = ucx.createWorker({ protocol: "ucxx" });
  const listener = await server.listen();
  const strange = await stranger.connect(listener);
  await strange.rawStream.send(new Uint8Array(16));
  assertInstanceOf(await strange.closed, UcxError);
  assertEquals(listener.rejected, 1);
  const [there, here] = await Promise.all([client.connect(listener), listener.accept()]);
  const into = new Uint8Array(1);
  await there.send(Uint8Array.of(3));
  await here?.recv(into, { timeout: 5000 });
  assertEquals([into[0], listener.rejected], [3, 1]);
});

test("a client that does not greet keeps no other waiting, and is rejected after its timeout", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker({ protocol: "ucxx" });
  await using stranger = ucx.createWorker();
  await using client = ucx.createWorker({ protocol: "ucxx" });
  const timeout = 2000; // on a busy machine the other client took 617 ms
  const listener = await server.listen({ timeout });
  const begun = performance.now();
  const silent = await stranger.connect(listener);
  const [, here] = await Promise.all([client.connect(listener), listener.accept()]);
  assert(here !== null);
  assertEquals(listener.rejected, 0);
  assert(performance.now() - begun < timeout, "another client had to wait for it");
  assertInstanceOf(await silent.closed, UcxError);
  const after = performance.now() - begun;
  assert(after >= timeout - 10 && after < 4900, `${after} ms`); // before the default of 5 s
  assertEquals(listener.rejected, 1);
});

for (const limit of [{ backlog: 4 }, { limits: { connections: 4 } }]) {
  test(`clients that do not greet make room for later ones, and are counted: ${JSON.stringify(limit)}`, async () => {
    // As many silent connections as the backlog caused every other client to be rejected for 5 s.
    using ucx = Ucx.open();
    await using server = ucx.createWorker({ protocol: "ucxx" });
    await using stranger = ucx.createWorker();
    await using client = ucx.createWorker({ protocol: "ucxx" });
    await using listener = server.listen({ ...limit, timeout: 20_000 });
    const silent = [];
    for (let i = 0; i < 6; i++) silent.push(await stranger.connect(listener));
    const start = performance.now();
    for (let i = 0; i < 3; i++) await Promise.all([client.connect(listener), listener.accept()]);
    assert(performance.now() - start < 4000, "silent clients kept others waiting");
    assertEquals(listener.rejected, "backlog" in limit ? 3 : 5);
    for (const endpoint of silent.slice(0, 3)) assertInstanceOf(await endpoint.closed, UcxError);
  });
}

test("connections that have greeted and wait for accept keep others out, which get an error", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker({ protocol: "ucxx" });
  await using client = ucx.createWorker({ protocol: "ucxx" });
  await using listener = server.listen({ backlog: 1 });
  const first = await client.connect(listener);
  // What follows the greeting has arrived: so has the greeting.
  await Promise.all([
    first.send(new Uint8Array(1), { tag: 5n, exact: true }),
    server.recv(new Uint8Array(1), { tag: 5n }),
  ]);
  const error = await assertRejects(() => client.connect(listener, { timeout: 5000 }), UcxError);
  assertEquals([error.statusName, listener.rejected], ["UCS_ERR_REJECTED", 1]);
  assertStringIncludes(error.message, "it has as many as it accepts (its limits and backlog)");
  assertStringIncludes(error.message, `UCX ${ucx.version}`); // or it is a different version
});

test("connections that have greeted and were accepted do not keep others out", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker({ protocol: "ucxx" });
  await using client = ucx.createWorker({ protocol: "ucxx" });
  const listener = await server.listen({ backlog: 1 });
  for (let i = 0; i < 3; i++) await Promise.all([client.connect(listener), listener.accept()]);
  assertEquals(listener.rejected, 0);
});

test("a listener that is closed before a greeting accepts no connection", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker({ protocol: "ucxx" });
  await using stranger = ucx.createWorker();
  const listener = await server.listen();
  const silent = await stranger.connect(listener);
  const bytes = new Uint8Array(16);
  await silent.rawStream.recvAll(bytes, { timeout: 5000 }); // the listener greets first
  readGreeting(bytes);
  await listener.close();
  assertInstanceOf(await silent.closed, UcxError);
  assertEquals([await listener.accept(), listener.rejected], [null, 0]);
});

test("connecting to a listener that does not greet is an error that says so, by default after 5 s", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker({ protocol: "ucxx" });
  const listener = await server.listen();
  const begun = performance.now();
  const failures = await Promise.all([{ timeout: 300 }, {}].map(async (options) => {
    const error = await assertRejects(() => client.connect(listener, options), UcxError);
    return { error, after: performance.now() - begun };
  }));
  for (const [i, { error, after }] of failures.entries()) {
    assertEquals(error.statusName, "UCS_ERR_TIMED_OUT");
    assertStringIncludes(error.message, "Does it speak UCXX's protocol?");
    assertStringIncludes(error.message, `UCX ${ucx.version}`);
    const limit = [300, 5000][i] ?? 0;
    assert(after >= limit - 10 && after < limit + 3000, `${after} ms`);
  }
  const reason = new Error("enough");
  const signal = AbortSignal.abort(reason);
  assertEquals(await client.connect(listener, { signal }).catch((error: unknown) => error), reason);
});

test("connecting to a listener that greets with other bytes is an error", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker({ protocol: "ucxx" });
  const listener = await server.listen();
  const connecting = client.connect(listener);
  const refused = assertRejects(() => connecting, TypeError, "Does the other side speak UCXX's protocol?");
  await (await listener.accept())?.rawStream.send(contentOf(1, 16));
  await refused;
});

// The error named all that keeps a connection from being established, and a secret first.
test("connecting to a listener that accepts and then closes, without a greeting, is an error that says so", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker({ protocol: "ucxx" });
  const listener = await server.listen();
  const connecting = client.connect(listener);
  const refused = assertRejects(() => connecting, UcxError, "has accepted the connection, and closed it before");
  const accepted = await listener.accept();
  await accepted?.flush(); // once, on a busy machine, the connection did not stand on the client's side yet
  await pause(100);
  await accepted?.close({ force: true });
  await refused;
});

const python = process.env["CAUSEWAY_UCXX_PYTHON"] ?? "";
const missing = python === ""
  ? "UCXX is not named: pip install ucxx-cu13 numpy, and CAUSEWAY_UCXX_PYTHON=its interpreter"
  : null;

/** The libucp that UCXX has loaded, and its version. */
function itsUcx(): { path: string; version: string } {
  const code = "import ucxx, json; v = '.'.join(map(str, ucxx.get_ucx_version())); " +
    "p = [l.split()[-1] for l in open('/proc/self/maps') if '/libucp' in l][0]; " +
    "print(json.dumps({'path': p, 'version': v}))";
  return JSON.parse(
    execFileSync(python, ["-c", code], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trimEnd().split("\n")
      .at(-1) ?? "",
  );
}

/** A test with UCXX's own package. */
function testWithUcxx(behaviour: string, run: () => Promise<void>): void {
  const [name, options] = needs(missing, behaviour);
  test(name, { ...options, ...patiently }, run);
}

for (const role of ["listen", "connect"]) {
  testWithUcxx(`UCXX's own package and Causeway interoperate where UCXX ${role}s`, async () => {
    const { path, version } = itsUcx();
    const url = new URL("./ucxx_child.ts", import.meta.url);
    const result = await runScriptForJson(url, { args: [python, role], env: { CAUSEWAY_LIBUCP: path } });
    assertEquals(result, { count: 18, version });
  });
}

/** Runs UCXX's own package: `listen` or `connect`. Returns its output, line by line, and how it ends. */
function peer(...args: string[]): { lines: AsyncIterator<string>; ended: Promise<number | null>; stop(): void } {
  const script = fileURLToPath(new URL("./ucxx_peer.py", import.meta.url));
  const env = { ...process.env, UCX_WARN_UNUSED_ENV_VARS: "n" };
  const child = spawn(python, [script, ...args], { stdio: ["ignore", "pipe", "ignore"], timeout: 60_000, env });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    lines,
    ended: new Promise((resolve) => child.on("close", resolve)),
    stop: () => void child.kill("SIGKILL"),
  };
}

testWithUcxx("another version of UCX connects, or ends in an error that names our version, in both roles", async () => {
  using ucx = Ucx.open();
  await using worker = ucx.createWorker({ protocol: "ucxx" });
  const theirs = peer("listen");
  const { value: port } = await theirs.lines.next();
  const begun = performance.now();
  const outcome = await worker.connect({ host: "127.0.0.1", port: Number(port) }).catch((error: unknown) => error);
  assert(performance.now() - begun < 6000, "connecting to an incompatible UCX did not end");
  theirs.stop();
  await theirs.ended;
  // Versions from 1.14 on understand each other here, and then interoperate as above.
  if (outcome instanceof UcxEndpoint) return void assert(!isBefore(ucx.version, 14), `${ucx.version} has connected`);
  assertInstanceOf(outcome, UcxError);
  assertStringIncludes(outcome.message, `UCX ${ucx.version}`);
  const listener = await worker.listen();
  const client = peer("connect", String(listener.port));
  assertEquals(await client.ended, 1, "UCXX is connected with a UCX that it does not understand");
  for (let i = 0; i < 100 && listener.rejected === 0; i++) await pause(20);
  assertEquals(listener.rejected, 1);
});
