/** An uncaught error ends a process whose sockets keep the event loop busy. */
import { assertRejects, assertStringIncludes } from "@std/assert";
import { patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { runtimes, startIn } from "../support/runtimes.ts";

for (const runtime of runtimes) { // in both: Bun 1.4.4 did not end while immediates followed each other
  const [title, { skip }] = needs(
    runtime.missing,
    `an uncaught error ends a process amid messages of sockets: ${runtime.name}`,
  );
  testOnce(title, { skip, ...patiently }, async () => {
    const { printed } = startIn(runtime, new URL("./uncaught_child.ts", import.meta.url), []); // killed if it goes on
    const { message } = await assertRejects(() => printed, Error, "ended with exit code 1");
    assertStringIncludes(message, ": nobody catches this"); // any other error ends it with code 1, too
  });
}
