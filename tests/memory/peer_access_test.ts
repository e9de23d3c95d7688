/** The driver calls for a change of peers: planned without a driver. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { planPeerAccess } from "../../src/memory/peer_access.ts";
import { check, fc } from "../support/property.ts";

const ordinals = fc.array(fc.nat(7), { maxLength: 12 });

test("a plan turns the current peers into the wanted ones, omits the owner, and repeats nothing", () => {
  check(
    fc.property(fc.nat(7), ordinals, ordinals, (owner, current, wanted) => {
      const { grant, revoke } = planPeerAccess(owner, current, wanted);
      const after = new Set(current);
      for (const ordinal of grant) after.add(ordinal);
      for (const ordinal of revoke) after.delete(ordinal);
      const others = (set: Iterable<number>) => [...new Set(set)].filter((ordinal) => ordinal !== owner).sort();
      assertEquals(others(after), others(wanted));
      assertEquals([...grant, ...revoke].includes(owner), false);
      assertEquals(grant.filter((ordinal) => current.includes(ordinal)), [], "granted what was granted already");
      assertEquals(revoke.filter((ordinal) => !current.includes(ordinal)), [], "revoked what was not granted");
      for (const list of [grant, revoke]) assertEquals(list, [...new Set(list)].sort((a, b) => a - b));
    }),
    5000,
  );
});

test("without a change the plan is empty", () => {
  assertEquals(planPeerAccess(0, [1, 2], [2, 1, 0, 1]), { grant: [], revoke: [] });
});
