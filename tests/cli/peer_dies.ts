/** A second process for the demo that is killed when it has the array and before it has answered. */
import process from "node:process";
import "../../mod.ts";
import { runPeer } from "../../src/cli/demo_peer.ts";

await runPeer({ arrived: () => process.kill(process.pid, "SIGKILL") });
