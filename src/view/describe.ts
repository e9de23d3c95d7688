/**
 * What a console shows of a view.
 *
 * @module
 */
import type { ArrayParts } from "../copy/mod.ts";
import { nameOf, quoted, show } from "../layout/mod.ts";
import { print, printEnds } from "./print.ts";

/** More elements, or more lines of them, are not shown one and all. */
const FEW = 64;
const FEW_LINES = 8;

// law view/describeArray: public/inspect
/**
 * The dtype, shape and place of an array, and the elements if they are in ordinary memory of the host. All other memory
 * is ordered on a stream, which a console neither waits for nor asks: `toString()` waits.
 */
export function describeArray(array: ArrayParts): string {
  const { layout, dtype, buffer, readonly } = array;
  const what = `${quoted(nameOf(buffer)).trimStart()} ${dtype} ${show(layout.shape)}`.trimStart();
  const about = `${what} ${placeName(array)}${readonly ? ", read-only" : ""}`;
  if (buffer.isClosed) return `${about}, closed`;
  if (buffer.kind !== "host" || layout.volume === 0) return about;
  const lines = layout.volume / Math.max(layout.shape.at(-1) ?? 1, 1);
  if (layout.volume * dtype.lanes > FEW || lines > FEW_LINES) return `${about}\n${printEnds(array)}`;
  return `${about}\n${print(array)}`;
}

function placeName({ buffer: { kind, device } }: ArrayParts): string {
  switch (kind) {
    case "host":
      return "on the host";
    case "pinned":
      return "in pinned memory";
    case "managed":
      return `in managed memory of ${device}`;
    default:
      return `on ${device}`;
  }
}
