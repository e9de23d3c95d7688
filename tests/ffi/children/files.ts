/** Prints whether the port considers access to the files in a folder allowed. */
import { ffiPort } from "../../../src/ffi/port.ts";

console.log(JSON.stringify(ffiPort().mayUseFiles("/tmp/causeway")));
