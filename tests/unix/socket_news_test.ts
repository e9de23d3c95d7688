/** Whether the descriptors that notify a runtime of its sockets have news, against the operations on them. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { EFD } from "../../bindings/libc.ts";
import { libc, NativeArena } from "../../src/ffi/mod.ts";
import { DescriptorSet } from "../../src/unix/descriptor_set.ts";
import { newsOf } from "../../src/unix/socket_news.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { check, fc } from "../support/property.ts";

/** Sets of one readable and writable descriptor each. */
function sets(count: number) {
  const { files } = libc();
  const arena = new NativeArena();
  const { address } = arena.bytes(8);
  const made = Array.from({ length: count }, () => {
    const fd = files.eventfd(0, EFD.CLOEXEC);
    const set = new DescriptorSet();
    set.add(fd);
    const close = () => {
      set.close();
      files.close(fd);
    };
    const [write, read] = [() => files.eventfd_write(fd, 1n), () => files.eventfd_read(fd, address)];
    return { fd: set.fd, write, read, close };
  });
  return { made, [Symbol.dispose]: () => arena.close() };
}

test("there is news as long as an open descriptor is readable", () => {
  const steps = fc.array(fc.tuple(fc.nat(3), fc.constantFrom("write", "read", "close")), { maxLength: 12 });
  check(
    fc.property(steps, (todo) => {
      using all = sets(4);
      const hasNews = newsOf(all.made.map(({ fd }) => fd));
      const states = all.made.map(() => ({ isFull: false, isOpen: true }));
      for (const [i, what] of todo) {
        const [set, state] = [all.made[i], states[i]];
        if (set === undefined || state === undefined || !state.isOpen) continue;
        if (what === "write") set.write();
        else if (what === "close") set.close();
        else if (state.isFull) set.read();
        else continue;
        Object.assign(state, { isFull: what === "write", isOpen: what !== "close" });
        assertEquals(hasNews(), states.some(({ isFull, isOpen }) => isFull && isOpen), JSON.stringify(states));
      }
      for (const [i, { isOpen }] of states.entries()) if (isOpen) all.made[i]?.close();
    }),
    200,
  );
});

test("a connection to a server of the runtime is news until the event loop has handled it", patiently, async () => {
  assertEquals(await runScriptForJson(new URL("./socket_news_child.ts", import.meta.url)), [false, true, false]);
});
