/**
 * How much memory the host has.
 *
 * @module
 */
import { readTextFile } from "./text_file.ts";

/** How much memory the host uses and has free, for an error message. */
export function describeHostMemory(): string {
  const text = readTextFile("/proc/meminfo") ?? "";
  const bytes = (name: string) => Number(new RegExp(`^${name}: *(\\d+) kB$`, "m").exec(text)?.[1] ?? NaN) * 1024;
  const [total, free] = [bytes("MemTotal"), bytes("MemAvailable")];
  if (Number.isNaN(total) || Number.isNaN(free)) return "the host's free memory is not known";
  return `the host uses ${total - free} and has ${free} of ${total} free`;
}
