/**
 * Draws tables of numbers as a heat map in SVG: cells with their text, shaded by value. Written by hand, because it is
 * only rectangles and text; every chart library brings more code than this whole command line.
 *
 * @module
 */

/** A cell. */
export interface SvgCell {
  readonly text: string;
  /** How dark it is, from 0 to 1; null for a cell without a value. */
  readonly heat: number | null;
}

/** A table with titles for rows and columns. */
export interface SvgMatrix {
  readonly title: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  readonly cells: readonly (readonly SvgCell[])[];
}

const size = { cell: 84, height: 34, line: 22, margin: 20 } as const;
const font = "font-family='ui-monospace, Menlo, Consolas, monospace' font-size='13'";

/** Draws matrices one below the other. @param notes lines above them, the first one bold */
export function matricesToSvg(notes: readonly string[], matrices: readonly SvgMatrix[]): string {
  const parts: string[] = [];
  let y = size.margin;
  let right = 0;
  const text = (x: number, at: number, words: string, more = "") => {
    parts.push(`<text x='${x}' y='${at}' ${more}>${escaped(words)}</text>`);
    if (!more.includes("middle")) right = Math.max(right, x + 8 * words.length);
  };
  for (const [i, note] of notes.entries()) text(size.margin, y += size.line, note, i === 0 ? "font-weight='bold'" : "");
  for (const { title, rows, columns, cells } of matrices) {
    text(size.margin, y += 2 * size.line, title, "font-weight='bold'");
    y += size.line + 4;
    const left = size.margin + 12 + 8 * Math.max(...rows.map((row) => row.length), 0);
    for (const [j, column] of columns.entries()) {
      text(left + (j + 0.5) * size.cell, y, column, "text-anchor='middle'");
    }
    y += 8;
    for (const [i, row] of rows.entries()) {
      text(size.margin, y + size.height / 2 + 5, row);
      for (const [j, { text: words, heat }] of (cells[i] ?? []).entries()) {
        const [x, fill, ink] = [left + j * size.cell, colour(heat), (heat ?? 0) > 0.55 ? "#fff" : "#111"];
        parts.push(
          `<rect x='${x}' y='${y}' width='${size.cell}' height='${size.height}' fill='${fill}' stroke='#fff'/>`,
        );
        text(x + size.cell / 2, y + size.height / 2 + 5, words, `text-anchor='middle' fill='${ink}'`);
      }
      y += size.height;
    }
    right = Math.max(right, left + columns.length * size.cell);
  }
  const [width, height] = [Math.ceil(right) + size.margin, y + size.margin];
  const head = `<svg xmlns='http://www.w3.org/2000/svg' width='${width}' height='${height}' ` +
    `viewBox='0 0 ${width} ${height}' ${font} fill='#111'>`;
  return [head, "<rect width='100%' height='100%' fill='#fff'/>", ...parts, "</svg>", ""].join("\n");
}

/** From pale yellow to dark blue, which colour-blind people can also tell apart; grey for no value. */
function colour(heat: number | null): string {
  if (heat === null) return "#e8e8e8";
  const [from, to] = [[255, 247, 205], [13, 60, 120]] as const;
  const mixed = from.map((one, i) => Math.round(one + ((to[i] ?? one) - one) * Math.min(1, Math.max(0, heat))));
  return `#${Uint8Array.from(mixed).toHex()}`;
}

/** Escapes text for XML. Characters that XML cannot contain at all become question marks. */
function escaped(text: string): string {
  const names: { readonly [letter: string]: string } = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  // deno-lint-ignore no-control-regex -- exactly what XML 1.0 excludes
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]/g, "?").replace(
    /[&<>]/g,
    (one) => names[one] ?? one,
  );
}
