import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { test } from "node:test";
import { VortexError } from "../../../src/vortex/error.ts";
import { HttpReader } from "../../../src/vortex/file/http_reader.ts";
import { openReader } from "../../../src/vortex/file/reader.ts";
import { type RangeServerOptions, serveRanges } from "../../support/range_server.ts";
import { until } from "../../support/until.ts";

const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => (at * 7) % 253);

test("ranges are read from a server, with the given headers, by as many requests as reads", async () => {
  await using server = await serveRanges(bytes);
  const reader = await openReader(new HttpReader(server.url, { headers: { authorization: "Bearer it" } }));
  assertEquals([reader.size, reader.gap], [300_000, 65_536]);
  assertEquals(await reader.read(123, 4), bytes.subarray(123, 127));
  const [all, none] = await Promise.all([reader.read(0, 300_000), reader.read(5, 0)]);
  assertEquals([Buffer.compare(all, bytes), none.length], [0, 0]);
  assertEquals(server.requests.map(({ range }) => range), ["bytes=0-0", "bytes=123-126", "bytes=0-299999"]);
  assertEquals(server.requests.map(({ headers }) => headers["authorization"]), Array(3).fill("Bearer it"));
  reader.close();
});

test("a string that begins with http:// is a URL, and so is a URL", async () => {
  await using server = await serveRanges(bytes);
  for (const source of [server.url, new URL(server.url)]) {
    const reader = await openReader(source);
    assertEquals(await reader.read(99_999, 2), bytes.subarray(99_999, 100_001));
    reader.close();
  }
});

/** How a server misbehaves from its second answer on, and the error's message. */
const faults: Record<string, { readonly spoil: RangeServerOptions["spoil"]; readonly message: string }> = {
  "the whole file": {
    spoil: (answer) => Object.assign(answer, { status: 200, body: bytes }),
    message: "the whole file instead of a range. Load it with fetch()",
  },
  "no such file": { spoil: (answer) => void (answer.status = 404), message: "the server answers 404" },
  "out of range": { spoil: (answer) => void (answer.status = 416), message: "the file has no such range" },
  "another range": {
    spoil: ({ headers }) => void (headers["content-range"] = "bytes 11-20/300000"),
    message: "sends bytes 11 to 20 instead of 10 to 19",
  },
  "a range that begins later": {
    spoil: ({ headers }) => void (headers["content-range"] = "bytes 11-19/300000"),
    message: "sends bytes 11 to 19 instead of 10 to 19",
  },
  "a range that ends later": {
    spoil: ({ headers }) => void (headers["content-range"] = "bytes 10-20/300000"),
    message: "sends bytes 10 to 20 instead of 10 to 19",
  },
  "a range without a size": {
    spoil: ({ headers }) => void (headers["content-range"] = "bytes 10-19/*"),
    message: "answers with content-range bytes 10-19/*",
  },
  "another version": {
    spoil: ({ headers }) => void (headers["etag"] = '"2"'),
    message: 'has changed since it was opened: 300000 bytes, "1", now 300000 bytes, "2"',
  },
  "another size": {
    spoil: ({ headers }) => void (headers["content-range"] = "bytes 10-19/300001"),
    message: "has changed since it was opened",
  },
  "too much": {
    spoil: (answer) => void (answer.body = bytes.subarray(10, 21)),
    message: "sends more than the 10 bytes",
  },
  "too little": {
    spoil: (answer) => void (answer.body = bytes.subarray(10, 19)),
    message: "the connection ended after 9 of 10 bytes",
  },
  // Bun rejects even the cancelling of a body that it cannot decode, and that error replaced ours.
  "a range said to be compressed": {
    spoil: ({ headers }) => void (headers["content-encoding"] = "gzip"),
    message: "sends the range encoded as gzip, expected identity",
  },
  // Only the request was within the `try`, not the reading of the body.
  "half a range and goes away": {
    spoil: (answer) => Object.assign(answer, { body: bytes.subarray(10, 15), ending: "reset" }),
    message: "Cannot read http://",
  },
};

for (const [name, { spoil, message }] of Object.entries(faults)) {
  test(`a server that sends ${name} is reported`, async () => {
    await using server = await serveRanges(bytes, {
      spoil: (answer, request) => request > 1 && spoil?.(answer, request),
    });
    const reader = await openReader(server.url);
    await assertRejects(() => reader.read(10, 10), VortexError, message);
    reader.close();
  });
}

test("a fetch of one's own that returns no response, and a gap that is no number, are refused", async () => {
  for (const [response, shown] of [[undefined, "undefined"], ["x", '"x"'], [{}, "an instance of Object"]]) {
    const reader = new HttpReader("https://example.org/x", { fetch: () => Promise.resolve(response as Response) });
    await assertRejects(() => reader.read(0, 4), TypeError, `expected fetch to return a Response, got ${shown}`);
  }
  for (const gap of [NaN, -1, "x" as unknown as number]) {
    assertThrows(() => new HttpReader("https://example.org/x", { gap }), RangeError, "Expected gap to be a number");
    await assertRejects(
      () => openReader({ size: 1, read: () => Promise.resolve(bytes), gap }),
      RangeError,
      "Expected gap to be a number of bytes",
    );
  }
});

test("a server that was busy at first is asked again", async () => {
  await using server = await serveRanges(bytes, {
    spoil: (answer, request) => void (request <= 2 && (answer.status = 503)),
  });
  const reader = new HttpReader(server.url);
  await assertRejects(() => reader.read(0, 4), VortexError, "the server answers 503");
  await assertRejects(() => reader.size, VortexError, "the server answers 503");
  assertEquals([await reader.size, await reader.read(0, 4)], [bytes.length, bytes.subarray(0, 4)]);
  reader.close();
});

test("an error of the network names the URL", async () => {
  const server = await serveRanges(bytes);
  await server[Symbol.asyncDispose]();
  await assertRejects(() => openReader(server.url), VortexError, `Cannot read ${server.url}: `);
  assertThrows(() => new HttpReader(server.url, { header: {} } as never), TypeError, "did you mean headers?");
});

test("a custom fetch makes the requests, and closing ends those under way", async () => {
  await using server = await serveRanges(bytes);
  const asked: string[] = [];
  const own = (url: URL, init: RequestInit) => {
    asked.push(new Headers(init.headers).get("range") ?? "");
    return asked.length === 3
      ? new Promise<Response>((_, reject) => init.signal?.addEventListener("abort", () => reject(new Error("ended"))))
      : fetch(url, init);
  };
  const reader = new HttpReader(server.url, { fetch: own });
  assertEquals(await reader.read(7, 2), bytes.subarray(7, 9));
  assertEquals(asked, ["bytes=0-0", "bytes=7-8"]);
  const late = reader.read(0, 5);
  await Promise.resolve();
  reader.close();
  await assertRejects(() => late, VortexError, "ended");
});

for (const sent of [0, 5]) {
  // The requests were aborted only once none was under way.
  test(`closing ends requests of which ${sent} bytes have come, and reports the URL to whom reads directly`, async () => {
    await using server = await serveRanges(bytes, {
      spoil: (answer, request) =>
        request > 1 && Object.assign(answer, { body: bytes.subarray(0, sent), ending: "stall" }),
    });
    const aborted: unknown[] = [];
    const own = (url: URL, init: RequestInit) => {
      init.signal?.addEventListener("abort", () => aborted.push(url.href));
      return fetch(url, init);
    };
    const source = new HttpReader(server.url, { fetch: own });
    const reader = await openReader(source);
    const [checked, direct] = [reader.read(0, 10), source.read(0, 10)];
    checked.catch(() => {});
    direct.catch(() => {});
    await until(() => server.requests.length === 3);
    reader.close();
    assertEquals(aborted, Array(3).fill(server.url));
    await assertRejects(() => checked, TypeError, "The VortexFile was closed while it was read");
    await assertRejects(() => direct, VortexError, `Cannot read ${server.url}: `);
  });
}
