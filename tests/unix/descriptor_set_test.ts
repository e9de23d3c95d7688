/** A descriptor set is readable exactly while one of its descriptors is; a process's exit makes its own readable. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { libc } from "../../src/ffi/libc.ts";
import { SystemError } from "../../src/ffi/system_error.ts";
import { DescriptorSet } from "../../src/unix/descriptor_set.ts";
import { openProcess } from "../../src/unix/process_descriptor.ts";
import { check, fc } from "../support/property.ts";

const { eventfd, eventfd_write, close } = libc().files;

test("a set can be read exactly while one of its descriptors can be; a closed one is removed from it", async () => {
  const steps = fc.array(
    fc.record({ do: fc.constantFrom("add" as const, "ring" as const, "close" as const), at: fc.nat(3) }),
    { maxLength: 20 },
  );
  await check(fc.property(steps, (program) => {
    const set = new DescriptorSet();
    const open = new Map<number, { fd: number; isRung: boolean }>();
    for (const { do: act, at } of program) {
      const entry = open.get(at);
      if (act === "add" && entry === undefined) {
        const fd = eventfd(0, 0);
        set.add(fd);
        open.set(at, { fd, isRung: false });
      }
      if (act === "ring" && entry !== undefined) {
        assertEquals(eventfd_write(entry.fd, 1n), 0);
        entry.isRung = true;
      }
      if (act === "close" && entry !== undefined) {
        close(entry.fd);
        open.delete(at);
      }
      assertEquals(set.hasReadable(), Array.from(open.values()).some(({ isRung }) => isRung));
    }
    for (const { fd } of open.values()) close(fd);
    set.close();
  }));
});

test("an invalid descriptor is refused", () => {
  const set = new DescriptorSet();
  assertThrows(() => set.add(1_000_000), SystemError, "epoll_ctl failed with EBADF");
  set.close();
});

test("a process's descriptor can be read when it has ended; an unknown process has no descriptor", async () => {
  const child = spawn("sleep", ["100"], { stdio: "ignore" });
  using descriptor = openProcess(child.pid ?? 0);
  assert(descriptor !== null);
  const set = new DescriptorSet();
  set.add(descriptor.number);
  assertEquals(set.hasReadable(), false);
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  assertEquals(set.hasReadable(), true);
  set.close();
  assertEquals(openProcess(2 ** 22 + 1), null); // above the largest that Linux assigns
});
