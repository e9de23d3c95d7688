/** The protective lines of driver calls and their errors. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const driverMutations: readonly Mutation[] = [
  ...law("driver/checkCuda", [
    [
      "if (code !== CUresult.CUDA_SUCCESS) throw cudaError",
      "if (false) throw cudaError",
      "Errors of the driver are never noticed.",
    ],
  ]),
  ...law("driver/checkRelease", [
    ["!lost.has(code) && ", "", "Closing hides the error that lost the context."],
    [" && !gone.has(code)", "", "Closing fails when another library has destroyed the context."],
    ["throw cudaError(driver, call, code);", "return;", "A failure to free memory is not reported."],
  ]),
  ...law("driver/observeHost", [
    ["new WeakRef(one)", "{ deref: () => one } as WeakRef<DriverObserver>", "Checkers are never collected."],
    ["observers.delete(reference)", "{}", "A closed checker is notified for ever."],
  ]),
  ...law("driver/noteHostAccess", [
    [" || bytes === 0", "", "An access to no bytes is reported."],
    ["else one.hostAccess", "else if (false) one.hostAccess", "The checker does not notice accesses by the host."],
  ]),
  ...law("driver/stickyError", [
    [
      "...words, ...reason, history",
      "...words, history",
      "The findings of the simulator are only in the cause of the error.",
    ],
    ["if (first === undefined) seen.set(code, error);", "", "The error does not name the call that lost the context."],
    ["known === undefined ?", "known !== undefined ?", "Users of the simulator are advised to use it."],
  ]),
];
