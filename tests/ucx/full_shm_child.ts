/** Makes a worker where /dev/shm has room for none, and one that needs none of it. Prints the first one's error. */
import { Ucx } from "../../src/ucx/ucx.ts";

{
  using ucx = Ucx.open();
  try {
    ucx.createWorker();
    console.log("made");
  } catch (error) {
    console.log(String(error));
  }
}
using ucx = Ucx.open({ config: { TLS: "^posix" } });
await ucx.createWorker().close();
