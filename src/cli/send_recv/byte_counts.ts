/**
 * Byte counts as UCXX's benchmark reads and prints them.
 *
 * @module
 */

const decimal = ["", "k", "m", "g", "t", "p"];

/**
 * Reads a number of bytes: `4096`, `10 Mb`, `1KiB`, `1e6`. Units are powers of 1000, or of 1024 with an i, in upper or
 * lower case, as Dask reads them for UCXX.
 *
 * @returns undefined for anything else, and if it is not a whole number of bytes
 */
export function parseBytes(text: string): number | undefined {
  const match = /^\s*(\d[\d_]*(?:\.\d*)?(?:e[+-]?\d+)?)?\s*([kmgtp]?)(i?)b?\s*$/i.exec(text);
  if (match === null) return undefined;
  const [, number = "1", prefix = "", binary = ""] = match;
  if (text.trim() === "" || (binary !== "" && prefix === "")) return undefined;
  const bytes = Number(number.replaceAll("_", "")) *
    (binary === "" ? 1000 : 1024) ** decimal.indexOf(prefix.toLowerCase());
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

const units = ["KiB", "MiB", "GiB", "TiB"];

/** Bytes, or bytes a second, in words: `1000 B`, `9.54 MiB`. */
export function formatBinary(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), units.length);
  return `${twoDigits(bytes / 1024 ** power)} ${units[power - 1]}`;
}

/** A rate in words: as {@linkcode formatBinary}, with a plain byte count printed as Python prints a float. */
export function formatRateBinary(bytesPerSecond: number): string {
  const isPlain = bytesPerSecond < 1024 && Number.isInteger(bytesPerSecond);
  return isPlain ? `${bytesPerSecond}.0 B/s` : `${formatBinary(bytesPerSecond)}/s`;
}

/**
 * Two decimal places, rounded as Python does. Ties go to the even digit, where `toFixed` takes the larger: those are
 * the numbers that end in 125 and 625 thousandths.
 */
function twoDigits(value: number): string {
  const eighths = value * 8;
  const isMiddle = Number.isInteger(eighths) && eighths % 4 === 1;
  return (isMiddle ? value - 0.005 : value).toFixed(2);
}
