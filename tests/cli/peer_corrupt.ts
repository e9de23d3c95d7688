/** A second process for the demo that corrupts one byte of what it receives. */
import process from "node:process";
import "../../mod.ts";
import { runPeer } from "../../src/cli/demo_peer.ts";

await runPeer({
  arrived: (bytes) => {
    const middle = bytes.length >> 1;
    bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  },
});
process.exit(0);
