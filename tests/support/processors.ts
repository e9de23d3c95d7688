/**
 * The processors that tests may run on.
 *
 * @module
 */
import { readFileSync } from "node:fs";

/** Their numbers, at most the first two. */
export function allowedProcessors(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  const each = list.split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
  return each.slice(0, 2);
}
