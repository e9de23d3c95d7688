/** Round trips of `causeway send-recv` within a process: the right bytes arrive, and wrong ones are detected. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { Cuda } from "../../../src/cuda/mod.ts";
import { Objects } from "../../../src/cli/send_recv/objects.ts";
import type { SendRecvOptions } from "../../../src/cli/send_recv/options.ts";
import { type Link, linkOver, measure, runOver, sendBack, TransferError } from "../../../src/cli/send_recv/transfer.ts";
import { Ucx } from "../../../src/ucx/mod.ts";
import { patiently } from "../../support/child.ts";
import type { UcxEndpoint } from "../../../src/ucx/mod.ts";

/** Two workers of this process, connected over TCP or memory, and a function that closes them. */
async function pair() {
  const ucx = Ucx.open();
  const [server, client] = [ucx.createWorker(), ucx.createWorker()];
  const listener = await server.listen();
  const toServer = await client.connect(listener, { timeout: 20_000 });
  const taken = await listener[Symbol.asyncIterator]().next();
  assert(taken.done !== true);
  const close = async () => {
    await Promise.all([client.close(), server.close()]);
    ucx.close();
  };
  return { server, client, toServer, toClient: taken.value, [Symbol.asyncDispose]: close };
}

const roundTrips = { warmup: 1, iterations: 3 };

for (const api of ["tag", "am", "rma"] as const) {
  for (const reuse of [false, true]) {
    for (const bytes of [4, 100_000]) {
      test(
        `${api}, ${bytes} bytes, reuse ${reuse}: what comes back is what was sent, each time`,
        patiently,
        async () => {
          await using both = await pair();
          using objects = new Objects({ bytes, ndim: 3, memory: "host" }, 0);
          const asked = { api, sync: false, bytes };
          const exposed = objects.empty();
          objects.overwrite(exposed);
          using region = both.server.register(exposed);
          using remote = both.toServer.remote(region.key);
          const link = linkOver(both.toServer, asked, remote);
          const seen: boolean[] = [];
          const watched: Link = {
            send: (what) => {
              assertEquals(what.shape, [bytes / 4, 2, 2]);
              return link.send(what);
            },
            receive: async (into) => {
              objects.overwrite(into);
              await link.receive(into);
              seen.push(await objects.holds(into));
            },
          };
          const serving = api === "rma"
            ? null
            : sendBack(linkOver(both.toClient, asked), objects, { ...roundTrips, reuse });
          const indices: number[] = [];
          const times = await measure(watched, objects, { ...roundTrips, reuse }, (index) => indices.push(index));
          await serving;
          assertEquals(times.length, 3);
          assert(times.every((time) => Number.isSafeInteger(time) && time > 0), `${times}`);
          assertEquals(indices, [0, 1, 2, 3]);
          assertEquals(seen, [true, true, true, true, true]);
          assertEquals(await objects.holds(exposed), api === "rma");
          exposed.buffer.close();
        },
      );
    }
  }
}

for (const [api, buffers] of [["stream", 1], ["tag", 3]] as const) {
  for (const reuse of [false, true]) {
    // For streams, more than a writer may be ahead.
    for (const bytes of [1, 3_000_001]) {
      test(
        `${api}, ${buffers} of ${bytes} bytes, reuse ${reuse}: what comes back is what was sent, each time`,
        patiently,
        async () => {
          await using both = await pair();
          using objects = new Objects({ bytes, ndim: 1, memory: "host" }, 0);
          const asked = { api, buffers, bytes, sync: false, memory: "host" } as const;
          const seen: boolean[] = [];
          const came: unknown[] = [];
          const serving = runOver(
            both.toClient,
            objects,
            asked,
            null,
            (link, payload) => sendBack(link, payload, { ...roundTrips, reuse }),
          );
          const times = await runOver(both.toServer, objects, asked, null, (link, payload) => {
            const watched: typeof link = {
              send: link.send,
              receive: async (into) => {
                payload.overwrite(into);
                const received = await link.receive(into) ?? into;
                seen.push(await payload.holds(received));
                came.push(received);
                return received;
              },
            };
            return measure(watched, payload, { ...roundTrips, reuse }, () => {});
          });
          await serving;
          assertEquals([times.length, seen], [3, [true, true, true, true, true]]);
          for (const received of came) {
            if (api === "stream") assert(received instanceof Uint8Array);
            else {
              const views = received as { buffer: { isClosed: boolean } }[];
              assertEquals(views.map(({ buffer }) => buffer.isClosed), [true, true, true]);
            }
          }
        },
      );
    }
  }
}

for (const api of ["tag", "am", "stream", "rma"] as const) {
  test(`${api}, page-locked memory: what comes back is what was sent, each time`, patiently, async () => {
    await using both = await pair();
    for (const bytes of [4, 100_000]) {
      using objects = new Objects({ bytes, ndim: 1, memory: "pinned" }, 0, () => Cuda.simulate({ schedule: "latest" }));
      const asked = { api, buffers: 1, bytes, sync: false, memory: "pinned" } as const;
      const exposed = objects.empty();
      using region = both.server.register(exposed);
      using remote = both.toServer.remote(region.key);
      const serving = api === "rma" ? null : runOver(
        both.toClient,
        objects,
        asked,
        null,
        (link, payload) => sendBack(link, payload, { ...roundTrips, reuse: false }),
      );
      const times = await runOver(
        both.toServer,
        objects,
        asked,
        remote,
        (link, payload) => measure(link, payload, { ...roundTrips, reuse: false }, () => {}), // compares the last
      );
      await serving;
      assertEquals(times.length, 3);
      exposed.buffer.close();
    }
  });
}

/** Asserts that the client detects faults of the other side while it measures. */
async function assertFound(
  asked: Pick<SendRecvOptions, "api" | "buffers" | "bytes" | "sync" | "memory">,
  reuse: boolean,
  misbehave: (endpoint: UcxEndpoint, objects: Objects) => Promise<void>,
  message: string,
): Promise<void> {
  await using both = await pair();
  using objects = new Objects({ bytes: asked.bytes, ndim: 1, memory: "host" }, 0);
  const misbehaving = misbehave(both.toClient, objects);
  const measuring = runOver(
    both.toServer,
    objects,
    asked,
    null,
    (link, payload) => measure(link, payload, { ...roundTrips, reuse }, () => {}),
  );
  await assertRejects(() => measuring, TransferError, message);
  void both.toServer.close({ force: true });
  void both.toClient.close({ force: true });
  await misbehaving.catch(() => {});
}

/** 0, 1, 2 and so on, which is what the client sends. */
function content(bytes: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: bytes }, (_, i) => i);
}

const damages = { byte: "Wrong bytes", length: "Wrong length: 999 bytes arrived, expected 1000" } as const;

for (const [damage, message] of Object.entries(damages)) {
  test(`a stream is refused that has one wrong ${damage}`, patiently, async () => {
    const asked = { api: "stream", buffers: 1, bytes: 1000, sync: false, memory: "host" } as const;
    const stream = async (endpoint: UcxEndpoint) => {
      const writer = endpoint.writable.getWriter();
      const bytes = content(1000);
      for (let trip = 0; trip < 4; trip++) await writer.write(bytes);
      if (damage === "byte") bytes[999] = 0;
      await writer.write(bytes.subarray(0, damage === "byte" ? 1000 : 999));
      await writer.close();
    };
    await assertFound(asked, true, stream, message);
  });

  test(`a message is refused that has one wrong ${damage}`, patiently, async () => {
    const asked = { api: "tag", buffers: 1, bytes: 1000, sync: false, memory: "host" } as const;
    const sendBackWrong = (endpoint: UcxEndpoint, objects: Objects) => {
      const honest = linkOver(endpoint, asked);
      const dishonest: Link = {
        receive: honest.receive,
        send: (object) => {
          const bytes = object.buffer.bytes();
          if (damage === "length") return endpoint.send(bytes.slice(1), { tag: 3n });
          bytes[999] = (bytes[999] ?? 0) + 1;
          return honest.send(object);
        },
      };
      return sendBack(dishonest, objects, { ...roundTrips, reuse: true });
    };
    await assertFound(asked, true, sendBackWrong, message);
  });
}

test("a missing buffer of several, a short one, and one wrong byte in the last are found", patiently, async () => {
  const wrong: [change: (parts: Uint8Array<ArrayBuffer>[]) => void, message: string][] = [
    [(parts) => parts.pop(), "Wrong number of buffers: 2 arrived, expected 3"],
    [(parts) => parts[1] = new Uint8Array(9), "Wrong length: 9 bytes arrived, expected 10"],
    [(parts) => parts[2]?.fill(1, 9), "Wrong bytes"],
  ];
  for (const [change, message] of wrong) {
    const answer = async (endpoint: UcxEndpoint) => {
      for (let trip = 0; trip < 5; trip++) {
        for (const part of await endpoint.recvMany({ tag: 3n })) part.close();
        const parts = Array.from({ length: 3 }, () => content(10));
        if (trip === 4) change(parts);
        await endpoint.sendMany(parts, { tag: 3n });
      }
    };
    await assertFound({ api: "tag", buffers: 3, bytes: 10, sync: false, memory: "host" }, false, answer, message);
  }
});

test("allocating is part of a round trip unless memory is reused", patiently, async () => {
  using objects = new Objects({ bytes: 8, ndim: 1, memory: "host" }, 0);
  const link: Link = { send: () => {}, receive: (into) => objects.overwrite(into) };
  for (const [reuse, allocations] of [[true, 2], [false, 10]] as const) {
    const made: unknown[] = [];
    const counted = Object.create(objects) as Objects;
    counted.empty = () => {
      const view = objects.empty();
      made.push(view);
      return view;
    };
    counted.filled = () => {
      const view = objects.filled();
      made.push(view);
      return view;
    };
    counted.holds = () => Promise.resolve(true);
    counted.overwrite = () => {};
    await measure(link, counted, { ...roundTrips, reuse }, () => {});
    assertEquals(made.length, allocations);
    assert((made as { buffer: { isClosed: boolean } }[]).every(({ buffer }) => buffer.isClosed));
  }
});
