import { DataError } from "./data_error.ts";
import { type Indices, smallWords, words32 } from "./words.ts";

// law vortex/numeric.checkRuns: vortex/numeric/run_end
/**
 * Checks that the ends of runs ascend, that the last one reaches the last row, and that none is before the first.
 *
 * @param offset rows sliced off the front, which the ends still count
 * @throws {DataError} if the ends are invalid
 */
export function checkRuns(ends: Indices, length: number, offset: number): void {
  let previous = offset - 1;
  for (let run = 0; run < ends.length; run++) {
    const end = ends[run] ?? 0;
    if (end <= previous) throw new DataError(`Run ${run} ends at ${end}, expected an end after ${previous}`);
    previous = end;
  }
  if (length > 0 && !(ends.length > 0 && previous >= offset + length)) {
    throw new DataError(`The last run ends at ${previous}, expected ${offset + length}`);
  }
}

// law vortex/numeric.runsInto: vortex/numeric/run_end
/**
 * Repeats each word to the end of its run; the runs must have passed `checkRuns`.
 *
 * @param width bytes of a word: 1, 2 or a multiple of 4
 */
export function runsInto(out: Uint8Array, values: Uint8Array, width: number, ends: Indices, offset: number): void {
  if (width < 4) {
    fillRuns(smallWords(out, width === 1 ? 8 : 16), smallWords(values, width === 1 ? 8 : 16), ends, offset);
  } else if (width === 4) fillRuns(words32(out), words32(values), ends, offset);
  else repeatRuns(words32(out), words32(values), width >> 2, ends, offset);
}

/** The run of each row, for values that are not words. */
export function runOfRows(ends: Indices, length: number, offset: number): Uint32Array {
  const runs = new Uint32Array(length);
  let row = 0;
  for (let run = 0; row < length; run++) {
    const end = Math.min((ends[run] ?? length) - offset, length);
    runs.fill(run, row, end);
    row = end;
  }
  return runs;
}

/** Runs up to this long are written by a loop: a call to `fill` takes as long. */
const SHORT = 16;

function fillRuns(
  to: Uint8Array | Uint16Array | Int32Array,
  values: Uint8Array | Uint16Array | Int32Array,
  ends: Indices,
  offset: number,
): void {
  let row = 0;
  for (let run = 0; row < to.length; run++) {
    const end = (ends[run] ?? 0) - offset; // writes past the last row have no effect
    const value = values[run] ?? 0;
    if (end - row > SHORT) to.fill(value, row, end);
    else for (let at = row; at < end; at++) to[at] = value;
    row = end;
  }
}

/** Repeats values of several 32-bit words: each word is written to every row of the run. */
function repeatRuns(to: Int32Array, values: Int32Array, count: number, ends: Indices, offset: number): void {
  const length = to.length / count;
  let row = 0;
  for (let run = 0; row < length; run++) {
    const end = Math.min((ends[run] ?? 0) - offset, length);
    const [first, last] = [row * count, end * count];
    for (let word = 0; word < count; word++) {
      const value = values[run * count + word] ?? 0;
      for (let at = first + word; at < last; at += count) to[at] = value;
    }
    row = end;
  }
}
