/** Opens Python in a process that may open few more files, then in one that may open many. Prints what happens. */
import { Python } from "../../mod.ts";
import { leaveFiles } from "../support/few_files.ts";

for (const count of [0, 2, 7]) {
  const allowAll = leaveFiles(count);
  let outcome = "opened";
  try {
    Python.open();
  } catch (error) {
    outcome = String(error).split(". ")[0] ?? "";
  }
  allowAll(); // printing may take one
  console.log(outcome);
}
console.log(Python.open().evaluate("6 * 7"));
