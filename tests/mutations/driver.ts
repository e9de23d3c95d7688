/** The protective lines of the room `driver`. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const driverMutations: readonly Mutation[] = [
  ...law("driver/checkCuda", [
    [
      "if (code !== CUresult.CUDA_SUCCESS) throw cudaError",
      "if (false) throw cudaError",
      "No error of the driver is ever seen.",
    ],
  ]),
  ...law("driver/checkRelease", [
    ["!lost.has(code) && ", "", "Closing hides what has lost the context."],
    [" && !gone.has(code)", "", "Closing fails when another library has destroyed the context."],
    ["throw cudaError(driver, call, code);", "return;", "Nobody learns that memory is not freed."],
  ]),
  ...law("driver/observeHost", [
    ["new WeakRef(one)", "{ deref: () => one } as WeakRef<DriverObserver>", "Checkers are never collected."],
    ["observers.delete(reference)", "{}", "A closed checker is notified for ever."],
  ]),
  ...law("driver/noteHostAccess", [
    [" || bytes === 0", "", "An access to nothing is reported."],
    ["else one.hostAccess", "else if (false) one.hostAccess", "The checker does not see the host."],
  ]),
  ...law("driver/stickyError", [
    ["...words, ...reason, history", "...words, history", "What the simulator knows is in the cause alone."],
    ["if (first === undefined) seen.set(code, error);", "", "Nobody learns which call has lost the context."],
    ["known === undefined ?", "known !== undefined ?", "The simulator is advised to those who use it."],
  ]),
];
