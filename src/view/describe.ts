/**
 * How a console shows a view.
 *
 * @module
 */
import type { ArrayParts } from "../copy/mod.ts";
import { nameOf, quoted, show } from "../layout/mod.ts";
import { print, printEnds, rowsOf } from "./print.ts";

/** Arrays of one axis with more elements are elided. */
const FEW = 64;
/** Larger arrays of several axes show only their corners. */
const MAX_IN_ROWS = 256;
/** If even the corners take more lines, only the first and the last elements are shown. */
const FEW_LINES = 24;

// law view/describeArray: public/inspect
/**
 * The dtype, shape and place of an array, and its elements if they are in ordinary host memory. All other memory is
 * ordered on a stream, which a console neither waits for nor queries: `toString()` waits.
 */
export function describeArray(array: ArrayParts): string {
  const { layout, dtype, buffer, readonly } = array;
  const what = `${quoted(nameOf(buffer)).trimStart()} ${dtype} ${show(layout.shape)}`.trimStart();
  const about = `${what} ${placeName(array)}${readonly ? ", read-only" : ""}`;
  if (buffer.isClosed) return `${about}, closed`;
  if (buffer.kind !== "host" || layout.volume === 0) return about;
  return `${about}\n${elements(array)}`;
}

/** The elements in a few lines: by rows if they fit, otherwise the first and the last elements of the array. */
function elements(array: ArrayParts): string {
  const { layout, dtype } = array;
  const count = layout.volume * dtype.lanes;
  if (layout.ndim < 2) return count > FEW ? printEnds(array) : print(array);
  for (const most of [MAX_IN_ROWS, 0]) {
    if (rowsOf(array, count > most) > FEW_LINES) continue; // checked first, because there may be very many
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
