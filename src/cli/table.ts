/**
 * Text tables with aligned columns.
 *
 * @module
 */

/** A table that grows: prints each row as soon as it is known. */
export class Table {
  readonly #widths: readonly number[];
  readonly #right: readonly boolean[];
  readonly #print: (line: string) => void;

  /**
   * @param columns title and width of each column; a negative width aligns it to the right
   * @param print prints a line
   */
  constructor(columns: readonly (readonly [title: string, width: number])[], print: (line: string) => void) {
    this.#widths = columns.map(([, width]) => Math.abs(width));
    this.#right = columns.map(([, width]) => width < 0);
    this.#print = print;
    this.row(...columns.map(([title]) => title));
    print(this.#widths.map((width) => "-".repeat(Math.max(width, 4))).join("  "));
  }

  /** Prints a row. */
  row(...cells: string[]): void {
    const padded = cells.map((cell, i) => {
      const width = this.#widths[i] ?? 0;
      return this.#right[i] ? cell.padStart(width) : cell.padEnd(width);
    });
    this.#print(padded.join("  ").trimEnd());
  }
}

/** A table whose rows are all known: columns as wide as their content. @param right indices of right-aligned columns */
export function textTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly number[] = [],
): string[] {
  const lines: string[] = [];
  const widths = titles.map((title, i) => {
    const width = Math.max(4, title.length, ...rows.map((row) => row[i]?.length ?? 0));
    return [title, right.includes(i) ? -width : width] as const;
  });
  const table = new Table(widths, (line) => void lines.push(line));
  for (const row of rows) table.row(...row);
  return lines;
}

/**
 * Transferred bytes, in words: `57.5 kB`, `1.2 GB`. Decimal, as GB/s are; memory sizes are formatted by `showBytes`.
 */
export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  const value = bytes / 1000 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${units[power]}`;
}

/** A duration in words: `12.3 us`, `4.5 ms`, `1.2 s`. */
export function formatTime(milliseconds: number): string {
  if (milliseconds < 1) return `${(milliseconds * 1000).toFixed(1)} us`;
  return milliseconds < 1000 ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds / 1000).toFixed(2)} s`;
}

/** A rate in GB/s (10^9 bytes); empty if nothing moved, or too little to be meaningful. */
export function formatRate(bytes: number, milliseconds: number): string {
  const rate = bytes / milliseconds / 1e6;
  return rate >= 0.005 ? rate.toFixed(2) : "";
}
