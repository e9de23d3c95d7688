/** Writes an array to the path that is passed. */
import process from "node:process";
import { StridedMemoryView } from "../../src/view/mod.ts";
import { writeNpy } from "../../src/files/mod.ts";

await writeNpy(process.argv[2] ?? "", StridedMemoryView.arange(3));
