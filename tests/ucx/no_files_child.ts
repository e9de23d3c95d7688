/** Prints whether a living process is reported as gone when no file can be opened, and whether it can be found then. */
import { spawn } from "node:child_process";
import process from "node:process";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { littleEndian } from "../../src/ffi/endian.ts";
import { PeerProcess } from "../../src/ucx/process_identity.ts";
import { identityOf } from "./identity.ts";

/** Allows no further file. Done in-process: a runtime needs files while it waits for a program that would do it. */
function allowNoFiles(): void {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(16); // struct rlimit
  const limits = new DataView(bytes.buffer, bytes.byteOffset);
  const args = ["i32", "ptr"] as const;
  const { getrlimit, setrlimit } = ffiPort().bind("libc.so.6", 0n, {
    getrlimit: { args, returns: "i32" },
    setrlimit: { args, returns: "i32" },
  });
  const RLIMIT_NOFILE = 7;
  if (getrlimit(RLIMIT_NOFILE, address) !== 0) throw new Error("getrlimit failed");
  limits.setBigUint64(0, 1n, littleEndian);
  if (setrlimit(RLIMIT_NOFILE, address) !== 0) throw new Error("setrlimit failed");
}

const child = spawn("sleep", ["100"], { stdio: "ignore" });
const identity = identityOf(child.pid ?? 0);
const found = PeerProcess.find(identity);
allowNoFiles();
console.log(found?.isGone(), PeerProcess.find(identity) === null);
child.kill("SIGKILL");
process.exit(0);
