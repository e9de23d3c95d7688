/**
 * Connects workers in every way, and prints which descriptors children of this process would inherit, before and after:
 * `inheritance_child.ts`.
 */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { Ucx, type UcxEndpoint } from "../../src/ucx/mod.ts";

/** The descriptors without O_CLOEXEC. */
function inherited(): number[] {
  return readdirSync("/proc/self/fd").map(Number).filter((fd) => {
    try {
      const [, flags = ""] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")) ?? [];
      return fd > 2 && (parseInt(flags, 8) & 0o2000000) === 0;
    } catch {
      return false; // that of the folder, which is closed by now
    }
  });
}

const before = inherited();
const counts: number[] = [];
const atFirst = readdirSync("/proc/self/fd").length;
/** Notes what children would inherit now. */
function note(): void {
  counts.push(...inherited().filter((fd) => !before.includes(fd)).map(() => -1));
}

for (const TLS of ["tcp", "posix,tcp"]) {
  for (const progress of ["event", "adaptive", "busy"] as const) {
    using ucx = Ucx.open({ config: { TLS } });
    note();
    await using here = ucx.createWorker({ progress });
    note();
    await using there = ucx.createWorker({ progress });
    const listener = await here.listen();
    note();
    counts.push(readdirSync("/proc/self/fd").length);
    const [accepted, connected, byAddress] = await Promise.all([
      listener[Symbol.asyncIterator]().next().then(({ value }) => value as UcxEndpoint),
      there.connect({ host: "127.0.0.1", port: listener.port }),
      here.connect(there.address),
    ]);
    await Promise.all([byAddress.send(new Uint8Array(9)), there.recv(new Uint8Array(9))]);
    await Promise.all([accepted.send(new Uint8Array(9), { tag: 1n }), there.recv(new Uint8Array(9), { tag: 1n })]);
    await connected.flush();
    listener.close();
    await new Promise((resolve) => setTimeout(resolve, 100)); // they sleep
    note();
  }
}
console.log(
  JSON.stringify({ before, opened: Math.max(...counts) - atFirst, after: inherited(), leaked: counts.includes(-1) }),
);
process.exit(0);
