/** Prints as JSON which Python tests would get for each list of packages. Argument: the lists, as JSON. */
import process from "node:process";
import { findPython } from "../support/python.ts";

const lists = JSON.parse(process.argv[2] ?? "[]") as string[][];
console.log(JSON.stringify(lists.map((packages) => {
  const found = findPython(...packages);
  return typeof found === "string" ? null : found.executable;
})));
