/** Prints whether the port thinks that files may be used. */
import { ffiPort } from "../../../src/ffi/port.ts";

console.log(JSON.stringify(ffiPort().mayUseFiles()));
