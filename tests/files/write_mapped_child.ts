/** Maps the file that is passed, tries to write to it, and prints the error and what the view has then. */
import process from "node:process";
import { openNpy, writeNpy } from "../../src/files/mod.ts";
import { StridedMemoryView } from "../../src/view/mod.ts";

const [, , path = ""] = process.argv;
using view = openNpy(path);
const error = await writeNpy(path, StridedMemoryView.arange(1)).catch(String);
console.log(JSON.stringify([error, view.toArray()]));
