/** A second process for the demo that is killed after it has received the array and before it answers. */
import process from "node:process";
import "../../mod.ts";
import { runPeer } from "../../src/cli/demo_peer.ts";

await runPeer({ arrived: () => process.kill(process.pid, "SIGKILL") });
