/** Starts native threads, which wait for work, and ends without closing them: normally, or by exit() on request. */
import process from "node:process";
import { ThreadTeam } from "../../src/native/thread_team.ts";

const team = ThreadTeam.start({ threads: 4, rounds: 1, calls: 1 });
team.begin([]);
team.finish();
console.log("started");
if (process.argv[2] === "exit") process.exit(7);
