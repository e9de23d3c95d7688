/**
 * What a console shows of a view.
 *
 * @module
 */
import type { ArrayParts } from "../copy/mod.ts";
import { nameOf, quoted, show } from "../layout/mod.ts";
import { print, printEnds, rowsOf } from "./print.ts";

/** More elements of one axis are not shown one and all. */
const FEW = 64;
/** Of more elements of several axes only the corners are shown. */
const FEW_OF_ROWS = 256;
/** Not even these, if that takes more lines. */
const FEW_LINES = 24;

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
  return `${about}\n${elements(array)}`;
}

/** The elements in a few lines: rows as long as they fit, and otherwise the first and the last of all. */
function elements(array: ArrayParts): string {
  const { layout, dtype } = array;
  const count = layout.volume * dtype.lanes;
  if (layout.ndim < 2) return count > FEW ? printEnds(array) : print(array);
  for (const most of [FEW_OF_ROWS, 0]) {
    if (rowsOf(array, count > most) > FEW_LINES) continue; // there may be very many
    const text = print(array, most);
    if (text.split("\n").length <= FEW_LINES) return text;
  }
  return printEnds(array);
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
