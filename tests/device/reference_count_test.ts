/** A retained object is destroyed once, when it is closed and its last user has released it. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { ReferenceCount } from "../../src/device/reference_count.ts";
import { check, fc } from "../support/property.ts";

test("random programs of retains, releases and closes destroy once, exactly when the object is not needed any more", () => {
  const operations = fc.array(
    fc.tuple(fc.constantFrom("retained", "release", "again", "retain", "return", "close"), fc.nat(9)),
  );
  check(
    fc.property(operations, (program) => {
      let destroyed = 0;
      const references = new ReferenceCount(() => destroyed++);
      const releases: { readonly release: () => void; held: boolean }[] = [];
      let retained = 0;
      let closed = false;
      for (const [what, at] of program) {
        const one = releases[at % Math.max(1, releases.length)];
        if (what === "close") {
          references.close();
          closed = true;
        } else if (destroyed > 0) one?.release(); // too late to matter
        else if (what === "retained") {
          const one = references.retained();
          releases.push({ release: () => one[Symbol.dispose](), held: true });
        } else if (what === "retain") {
          references.retain();
          retained++;
        } else if (what === "return" && retained > 0) {
          retained--;
          references.release();
        } else if (one !== undefined && (what === "again" || one.held)) {
          one.held = false;
          one.release();
        }
        const isNeeded = !closed || retained > 0 || releases.some(({ held }) => held);
        assertEquals([destroyed, references.isDestroyed, references.isClosed], [isNeeded ? 0 : 1, !isNeeded, closed]);
      }
    }),
    3000,
  );
});
