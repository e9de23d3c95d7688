/** Ends with an open watch that never fires; the argument says whether it keeps the process alive. */
import process from "node:process";
import { libc } from "../../src/ffi/libc.ts";
import { watchReadable } from "../../src/native/readable_watch.ts";

const watch = watchReadable([libc().files.eventfd(0, 0)], () => {});
const order = process.argv[2];
if (order === "start first") watch.start();
watch.keepAlive(false);
if (order !== "start first") watch.start();
if (order === "kept again") watch.keepAlive(true);
