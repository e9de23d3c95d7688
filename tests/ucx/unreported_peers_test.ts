/**
 * Which endpoints UCX is asked about before its timer is stopped. An endpoint that UCX was asked to close must not be:
 * UCX frees it inside of ucp_worker_progress, before the close is known here. Asking all the same ended the process
 * with a segmentation fault, now and then where processes were slow.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { AF, ucp_ep_attr_t } from "../../bindings/ucp_types.ts";
import { struct } from "../../src/ffi/struct.ts";
import type { UcpFunctions } from "../../src/ucx/library.ts";
import { UnreportedPeers } from "../../src/ucx/unreported_peers.ts";
import { check, fc } from "../support/property.ts";

/** What a step does to one of a few endpoints. */
const steps = fc.record({ which: fc.nat(3), what: fc.constantFrom("add", "close", "forget", "see", "ask") });

/** An endpoint of the model. */
interface Known {
  handle: bigint;
  /** Whether its peer is on another machine, or what is known otherwise says that its end is reported. */
  readonly isRemote: boolean;
  isSeen: boolean;
}

test("UCX is asked about endpoints that are open, whose peers' ends may go unreported, and until it knows", () => {
  check(
    fc.property(
      fc.array(steps, { maxLength: 40 }),
      fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
      (all, far) => {
        const asked: bigint[] = [];
        const ucp = {
          endpoint: {
            ucp_ep_query(handle: bigint, address: bigint): number {
              asked.push(handle);
              const ends = struct(ucp_ep_attr_t).at(address);
              ends.local_sockaddr.set([AF.INET, 0, 0, 0, 10, 0, 0, 1]);
              ends.remote_sockaddr.set([AF.INET, 0, 0, 0, 10, 0, 0, far[Number(handle) - 1] === true ? 2 : 1]);
              return 0;
            },
          },
        } as unknown as UcpFunctions; // of which only this is used
        const peers = new UnreportedPeers<Known>(ucp);
        const endpoints = far.map((isRemote, i): Known => ({ handle: BigInt(i + 1), isRemote, isSeen: false }));
        const unknown = new Set<Known>();
        for (const { which, what } of all) {
          const endpoint = endpoints[which] ?? { handle: 0n, isRemote: false, isSeen: false };
          if (what === "add" && endpoint.handle !== 0n) {
            peers.add(endpoint);
            unknown.add(endpoint);
          } else if (what === "close") endpoint.handle = 0n;
          else if (what === "see") endpoint.isSeen = !endpoint.isSeen;
          else if (what === "forget") {
            peers.forget(endpoint);
            unknown.delete(endpoint);
          } else if (what === "ask") {
            const expected: bigint[] = [];
            let areNone = true;
            for (const one of unknown) {
              if (one.isSeen) continue;
              if (one.handle !== 0n) expected.push(one.handle);
              areNone = one.handle !== 0n && !one.isRemote;
              if (!areNone) break;
              unknown.delete(one);
            }
            assertEquals({ areNone: peers.areNone((one) => one.isSeen), asked: asked.splice(0) }, {
              areNone,
              asked: expected,
            });
          }
        }
      },
    ),
  );
});
