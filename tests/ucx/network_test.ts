/** Two programs in separate networks: what happens to their messages when the link between them fails. */
import { assert, assertEquals } from "@std/assert";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";

interface Outcome {
  readonly failure: string | null;
  readonly output: string;
}

function run(command: string, ...args: string[]): Outcome {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  const failure = status === 0 ? null : `${command} ${args.join(" ")}: ${stderr ?? "not found"}`.trim();
  return { failure, output: stdout ?? "" };
}

/** Two networks and the link between them, which last as long as the processes that hold them. */
class Networks {
  readonly #holders: ChildProcess[] = [];
  readonly addresses = ["10.99.0.1", "10.99.0.2"] as const;

  /** @throws {Error} if the system does not permit it */
  constructor() {
    for (const _ of this.addresses) {
      // UCX looks for network devices in /sys, which shows those of the network in which it was mounted.
      const holder = ["--net", "--mount", "sh", "-c", "mount -t sysfs sysfs /sys && exec sleep 600"];
      this.#holders.push(spawn("unshare", holder, { stdio: "ignore" }));
    }
  }

  /** Connects them. @returns the missing requirement, or null */
  async connect(): Promise<string | null> {
    await pause(200); // until both have their own network
    const [one, other] = this.#holders;
    const inside = (at: number, ...command: string[]) => this.#run(at, ...command).failure;
    const steps = () => [
      inside(0, "ip", "link", "add", "link0", "type", "veth", "peer", "name", "link1", "netns", `${other?.pid}`),
      ...this.addresses.flatMap((address, at) => [
        inside(at, "ip", "address", "add", `${address}/24`, "dev", `link${at}`),
        inside(at, "ip", "link", "set", `link${at}`, "up"),
        inside(at, "ip", "link", "set", "lo", "up"),
      ]),
    ];
    if (one?.pid === undefined || other?.pid === undefined) return "unshare is missing: install util-linux";
    const failed = steps().find((failed) => failed !== null);
    if (failed !== undefined) return failed;
    const isUp = (at: number) => inside(at, "grep", "-q", "up", `/sys/class/net/link${at}/operstate`) === null;
    for (const end = performance.now() + 5000; !(isUp(0) && isUp(1)) && performance.now() < end;) await pause(200);
    return null;
  }

  /** Cuts or restores the link. */
  setLink(state: "up" | "down"): void {
    assertEquals(this.#run(0, "ip", "link", "set", "link0", state).failure, null);
  }

  /** Drops a percentage of all packets of one direction. @returns the missing requirement, or null */
  lose(percent: number): string | null {
    const rule = ["qdisc", "add", "dev", "link0", "root", "netem", "loss", `${percent}%`];
    if (this.#run(0, "tc", ...rule).failure === null) return null;
    const chain = `type filter hook input priority 0; numgen random mod 100 < ${percent} counter drop;`;
    return this.#run(0, "nft", `table ip causeway { chain lose { ${chain} }; }`).failure;
  }

  /** How many packets {@linkcode lose} has dropped. */
  get lost(): number {
    const counters = this.#run(0, "tc", "-s", "qdisc", "show", "dev", "link0").output +
      this.#run(0, "nft", "list", "ruleset").output;
    return counters.matchAll(/(?:dropped|counter packets) (\d+)/g).reduce((sum, [, count]) => sum + Number(count), 0);
  }

  /** Starts `network_child.ts` in one of the networks. */
  start(at: 0 | 1, ...args: string[]): ChildProcess {
    const flags = process.versions["bun"] === undefined
      ? ["run", "-A", "--no-check", "--quiet", "--no-lock", "--node-modules-dir=manual"]
      : [];
    const script = fileURLToPath(new URL("./network_child.ts", import.meta.url));
    const command = [...this.#inside(at), process.execPath, ...flags, script, ...args];
    const options = {
      timeout: 60_000,
      killSignal: "SIGKILL" as const,
      env: { ...process.env, UCX_LOG_LEVEL: "error", UCX_NET_DEVICES: `link${at}` },
    };
    const child = spawn("nsenter", command, { ...options, stdio: ["pipe", "pipe", "inherit"] });
    this.#holders.push(child);
    return child;
  }

  #run(at: number, ...command: string[]): Outcome {
    return run("nsenter", ...this.#inside(at), ...command);
  }

  #inside(at: number): string[] {
    const pid = this.#holders[at]?.pid;
    return [`--net=/proc/${pid}/ns/net`, `--mount=/proc/${pid}/ns/mnt`];
  }

  [Symbol.dispose](): void {
    for (const child of this.#holders) child.kill("SIGKILL");
  }
}

/** The lines that a process prints. */
function linesOf({ stdout }: ChildProcess): AsyncIterator<string> {
  assert(stdout !== null);
  return createInterface({ input: stdout })[Symbol.asyncIterator]();
}

async function next(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next();
  if (done) throw new Error("the process has ended");
  return value;
}

async function whatIsMissing(): Promise<{ readonly networks: string | null; readonly loss: string | null }> {
  if (process.platform !== "linux") return { networks: "no Linux", loss: "no Linux" };
  using trial = new Networks();
  const failed = await trial.connect();
  const networks = failed === null ? null : `no networks for this test: run as root with CAP_NET_ADMIN and iproute2`;
  const loss = networks ??
    (trial.lose(1) === null ? null : "no lossy links: apt-get install nftables, or load sch_netem");
  return { networks, loss };
}

const missing = await whatIsMissing();

function ifNot(
  reason: string | null,
  behaviour: string,
): [string, { readonly skip: boolean; readonly timeout: number }] {
  const [name, options] = needs(reason, behaviour);
  return [name, { ...options, ...patiently }];
}

/** Starts a server in one network, and another program in the other. */
async function startBoth(networks: Networks, role: string, ...args: string[]) {
  const [host] = networks.addresses;
  const port = await next(linesOf(networks.start(0, "server", host)));
  const child = networks.start(1, role, host, port, ...args);
  const lines = linesOf(child);
  await next(lines);
  return { child, lines, ended: once(child, "close") };
}

test(
  ...needs(missing.networks, "messages over a link that fails for moments all arrive, whole and in order"),
  async () => {
    using networks = new Networks();
    await networks.connect();
    const { lines, ended } = await startBoth(networks, "client", "200");
    for (let i = 0; i < 3; i++) {
      await pause(200);
      networks.setLink("down");
      await pause(150);
      networks.setLink("up");
    }
    assertEquals(JSON.parse(await next(lines)), { answered: 200 });
    assertEquals(await ended, [0, null]);
  },
);

test(...ifNot(missing.loss, "messages over a link that loses packets all arrive, whole and in order"), async () => {
  using networks = new Networks();
  await networks.connect();
  assertEquals(networks.lose(5), null);
  const { lines, ended } = await startBoth(networks, "client", "40");
  assertEquals(JSON.parse(await next(lines)), { answered: 40 });
  assertEquals(await ended, [0, null]);
  assert(networks.lost > 0, `${networks.lost} packets were lost`);
});

test(
  ...needs(missing.networks, "over a cut link limits end pending operations, and a close by force does not wait"),
  async () => {
    using networks = new Networks();
    await networks.connect();
    const { child, lines, ended } = await startBoth(networks, "cut");
    networks.setLink("down");
    child.stdin?.write("cut\n");
    const { closed } = JSON.parse(await next(lines));
    assert(closed < 2000, `${closed} ms`);
    assertEquals(await ended, [0, null]);
  },
);
