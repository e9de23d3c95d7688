/** The protective lines of views. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const viewMutations: readonly Mutation[] = [
  ...law("view/readElements", [
    [
      "    staging.pinUntilPassed(stream); // what was enqueued before the failure still writes there\n",
      "",
      "A print that fails leaves copies to memory that was given back.",
    ],
    ["    hostWaits(buffer); // page-locked", "    // page-locked", "What is printed is not written yet."],
    [
      "    hostWaitsForCopy(stream);\n  } catch (error) {",
      "  } catch (error) {",
      "What is printed is what was there before.",
    ],
  ]),
  ...law("view/StridedMemoryView.from", [
    ['    if (options !== none) checkPlace(options, "Cannot view an array");\n', "", "A number for a device is none."],
    [
      "return isUsableAt(source, options) ? source : fromDlpack(source, options, make);",
      "return source;",
      "We read before the owner of a view has written.",
    ],
  ]),
];
