/**
 * Workers' processes: found while they live, told apart from others, and reported as gone once they have ended.
 */
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ownIdentity, PeerProcess } from "../../src/ucx/process_identity.ts";
import { patiently, runScript } from "../support/child.ts";
import { identityOf } from "./identity.ts";

async function started(command: string, ...args: string[]): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  await once(child, "spawn");
  assert(child.pid !== undefined);
  return Object.assign(child, { pid: child.pid });
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

test("this process is the one that libc and the runtime name, and does not watch itself", () => {
  assertEquals(ownIdentity(), identityOf(process.pid));
  assertEquals(PeerProcess.find(ownIdentity()), null);
});

test("another process is found until it ends, and not after that", patiently, async () => {
  const child = await started("sleep", "100");
  const identity = identityOf(child.pid);
  const found = PeerProcess.find(identity);
  assert(found !== null && !found.isGone());
  using descriptor = found.open();
  assert(descriptor !== null);
  await end(child);
  assert(found.isGone());
  assertEquals(found.open(), null); // although another process may have the number
  assertEquals(PeerProcess.find(identity), null);
});

test("a zombie process is not watched: its descriptor could be read for ever", async () => {
  // The shell does not wait for the child that it started before it becomes another program.
  const parent = await started("sh", "-c", "sleep 100 & echo $!; exec sleep 100");
  assert(parent.stdout !== null);
  const [line] = await once(createInterface({ input: parent.stdout }), "line");
  const found = PeerProcess.find(identityOf(Number(line)));
  assert(found !== null);
  process.kill(Number(line));
  while (!found.isGone()) await delay(10);
  assertEquals(found.open(), null);
  await end(parent);
});

/** Whether an identity of this machine belongs to an existing process. */
function isExistingProcess(identity: Uint8Array): boolean {
  const pid = new DataView(identity.buffer, identity.byteOffset + 24).getUint32(0);
  return existsSync(`/proc/${pid}/stat`) && identityOf(pid).toHex() === identity.toHex();
}

test("a process of another machine, another start or another number is not this one", patiently, async () => {
  const child = await started("sleep", "100");
  const identity = identityOf(child.pid);
  for (let at = 0; at < identity.length; at++) {
    const other = identity.slice();
    other[at] = (other[at] ?? 0) ^ 1;
    // By chance a process with the other number may exist, even one started within the same clock tick (CI, loaded).
    if (!isExistingProcess(other)) assertEquals(PeerProcess.find(other), null, `byte ${at}`);
  }
  assertNotEquals(PeerProcess.find(identity), null);
  assertEquals(PeerProcess.find(new Uint8Array(identity.length)), null);
  await end(child);
});

test("a process that has ended is gone although its parent has not read its exit code", patiently, async () => {
  // The inner shell's parent becomes a program that never reads it.
  const parent = await started("sh", "-c", "sh -c 'echo $$; exec sleep 0.3' & exec sleep 100");
  assert(parent.stdout !== null);
  assert(parent.stdout !== null);
  const [line] = await once(createInterface({ input: parent.stdout }), "line");
  const zombie = PeerProcess.find(identityOf(Number(line)));
  assert(zombie !== null);
  while (!/\) Z /.test(readFileSync(`/proc/${line}/stat`, "utf8"))) {
    await delay(20);
  }
  assert(zombie.isGone());
  await end(parent);
});

test("a program's name is not mistaken for its state", patiently, async () => {
  const folder = mkdtempSync(`${tmpdir()}/causeway-`);
  const program = `${folder}/a) Z 1 (b) Z`;
  copyFileSync("/usr/bin/sleep", program);
  const child = await started(program, "100");
  assert(readFileSync(`/proc/${child.pid}/stat`, "utf8").includes("(a) Z 1 (b) Z) "));
  assertEquals(PeerProcess.find(identityOf(child.pid))?.isGone(), false);
  await end(child);
  rmSync(folder, { recursive: true });
});

test("no process is reported as gone where no file can be opened", patiently, async () => {
  // Every endpoint to a living process was closed by force once this process had lacked descriptors for two seconds.
  const { code, stdout, stderr } = await runScript(new URL("./no_files_child.ts", import.meta.url));
  assertEquals([code, stdout.trim()], [0, "false true"], stderr);
});
