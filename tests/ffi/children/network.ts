/** Prints the outcome of requesting network access to each argument. */
import process from "node:process";
import { ffiPort } from "../../../src/ffi/port.ts";

const outcomes = process.argv.slice(2).map((at) => {
  try {
    ffiPort().needNetwork("call home", at);
    return "ok";
  } catch (error) {
    return String(error);
  }
});
console.log(JSON.stringify(outcomes));
