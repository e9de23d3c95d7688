/**
 * Prints, as JSON, how many turns serve sockets in a row if their events take 1 to 6 turns to be handled. Its own
 * descriptors stand in for the runtime's, and the turns only count; null in a runtime that always serves sockets.
 */
import { EFD } from "../../bindings/libc.ts";
import { setTimeout as pause } from "node:timers/promises";
import { ffiPort, libc, NativeArena } from "../../src/ffi/mod.ts";
import { atNextTurn, lookForSockets } from "../../src/ucx/event_loop.ts";
import { DescriptorSet } from "../../src/unix/descriptor_set.ts";

const port = ffiPort();
if (port.turnWithSockets === null) console.log("null");
else {
  const { eventfd, eventfd_read, eventfd_write } = libc().files;
  const fd = eventfd(0, EFD.CLOEXEC);
  const set = new DescriptorSet();
  set.add(fd);
  lookForSockets();
  const { address } = new NativeArena().bytes(8);
  const counts: number[] = [];
  for (let needed = 1; needed <= 6; needed++) {
    let turns = 0;
    const turn = () => {
      if (++turns === needed) eventfd_read(fd, address);
      return Promise.resolve();
    };
    Object.defineProperty(port, "turnWithSockets", { value: turn, configurable: true });
    eventfd_write(fd, 1n);
    await pause(10); // long enough that sockets are due
    await new Promise<void>((resolve) => atNextTurn(resolve));
    counts.push(turns);
    if (turns < needed) eventfd_read(fd, address);
  }
  console.log(JSON.stringify(counts));
}
