/** Prints whether the port considers file access allowed. */
import { ffiPort } from "../../../src/ffi/port.ts";

console.log(JSON.stringify(ffiPort().mayUseFiles()));
