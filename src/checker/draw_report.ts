/**
 * Draws reports: a line for every stream and for the host, calls from left to right, arrows where one waits for
 * another, and the arrow that is missing.
 *
 * @module
 */
import type { CausalityCall, CausalityReport } from "./report.ts";
import type { Mark } from "./timeline.ts";
import { placeOf } from "./messages.ts";

/** A mark at its place in the drawing. */
interface Placed extends Mark {
  readonly x: number;
  readonly y: number;
}

/** The most marks that fit. */
const maxMarks = 10;
const left = 250;
const step = 124;
const top = 64;
const rowHeight = 92;

/** The drawing of a report, as an SVG document. */
export function drawReport(report: CausalityReport): string {
  const marks = chooseMarks(report);
  const lanes = [...new Set(marks.map(({ stream }) => stream))].sort((a, b) =>
    Number(b === "host") - Number(a === "host")
  );
  const placed = marks.map((mark, i) => ({
    ...mark,
    x: left + step * (i + 0.5),
    y: top + rowHeight * lanes.indexOf(mark.stream),
  }));
  const caption = report.message.split("\n").flatMap((line, i) => i === 0 ? wrap(line, 118) : wrap(line, 130));
  const width = Math.max(left + step * Math.max(marks.length, 6) + 24, 880);
  const bottom = top + rowHeight * lanes.length;
  const legend = lanes.length > 0 ? 26 : 0;
  const height = bottom + legend + 18 * caption.length + 24;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">`,
    `<title id="title">${escape(caption[0] ?? report.kind)}</title>`,
    style,
    `<rect width="${width}" height="${height}" class="paper"/>`,
    `<text x="20" y="30" class="title">${escape(titles[report.kind])}</text>`,
    ...lanes.map((stream, i) => drawLane(stream, top + rowHeight * i, width)),
    ...placed.flatMap((mark) => drawEdges(mark, placed)),
    ...placed.map((mark) => drawMark(mark, roleOf(mark, report))),
    drawMissing(report, placed),
    lanes.length > 0 ? drawLegend(bottom + 4) : "",
    ...caption.map((line, i) => {
      const indent = /^ */.exec(line)?.[0].length ?? 0;
      const y = bottom + legend + 18 * (i + 1);
      return `<text x="${20 + 7 * indent}" y="${y}" class="caption">${escape(line.trim())}</text>`;
    }),
    "</svg>",
    "",
  ].join("\n");
}

const titles = {
  "race": "Nothing orders these two calls",
  "overlap": "Source and destination overlap",
  "use-after-free": "Used after it was freed",
  "double-free": "Freed twice",
  "destroyed": "Used after it was destroyed",
  "leak": "Never freed or destroyed",
} as const;

const style = `<style>
.paper { fill: #ffffff }
text { font-family: ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2933 }
.title { font-size: 17px; font-weight: 600 }
.lane { font-size: 12px; font-weight: 500 }
.rail { stroke: #cbd2d9; stroke-width: 2 }
.call { font-size: 10.5px; text-anchor: middle; fill: #3e4c59 }
.place { font-size: 10px; text-anchor: middle; fill: #b42318 }
.work { fill: #9fb3c8; stroke: #627d98 }
.record, .host { fill: #2f6f4f; stroke: #2f6f4f }
.wait { fill: #ffffff; stroke: #2f6f4f; stroke-width: 2 }
.culprit { fill: #f04438; stroke: #b42318; stroke-width: 2 }
.order { fill: none; stroke: #2f6f4f; stroke-width: 1.6 }
.missing { fill: none; stroke: #d92d20; stroke-width: 2.2; stroke-dasharray: 7 5 }
.missing-label { font-size: 12px; font-weight: 600; fill: #b42318; text-anchor: middle; stroke: #ffffff; stroke-width: 4px; paint-order: stroke }
.caption { font-size: 12.5px }
.legend { font-size: 11px; fill: #52606d }
</style>
<defs>
<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#2f6f4f"/></marker>
<marker id="missing-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#d92d20"/></marker>
</defs>`;

/**
 * The marks to draw: the two calls, and of those between them first the marks that create order, then the work of the
 * streams involved, the latest first.
 */
function chooseMarks({ first, second, timeline }: CausalityReport): Mark[] {
  if (first === null || second === null) return [];
  const last = (timeline.at(-1)?.seq ?? 0) + 1;
  const known = new Map(timeline.map((mark) => [mark.seq, mark]));
  const begin = known.get(first.seq) ?? placeholder(first, Math.min(first.seq, (timeline[0]?.seq ?? 1) - 1));
  const end = known.get(second.seq) ?? placeholder(second, last);
  const between = timeline.filter(({ seq, stream, after }) =>
    seq > begin.seq - 4 && seq < end.seq && seq !== begin.seq &&
    (stream === begin.stream || stream === end.stream || after.some((one) => known.get(one)?.stream === begin.stream))
  );
  const linked = between.flatMap(({ after }) => after.flatMap((seq) => known.get(seq) ?? []));
  const makesOrder = ({ kind, after }: Mark) => kind !== "work" || after.length > 0;
  const ranked = [...between, ...linked].sort((a, b) => Number(makesOrder(b)) - Number(makesOrder(a)) || b.seq - a.seq);
  const chosen = new Map([begin, end].map((mark) => [mark.seq, mark]));
  for (const mark of ranked) if (chosen.size < maxMarks) chosen.set(mark.seq, mark);
  return [...chosen.values()].sort((a, b) => a.seq - b.seq);
}

/** A mark for a call that is not in the timeline. */
function placeholder({ stream, call }: CausalityCall, seq: number): Mark {
  return { seq, stream, kind: "work", call, after: [] };
}

/** Which of the two calls a mark stands for, if either. */
function roleOf(mark: Mark, { first, second }: CausalityReport): CausalityCall | null {
  for (const one of [first, second]) {
    if (
      one !== null && one.call === mark.call && one.stream === mark.stream && (one.seq === mark.seq || one.seq === 0)
    ) {
      return one;
    }
  }
  return first !== null && first.seq === mark.seq ? first : null;
}

function drawLane(stream: string, y: number, width: number): string {
  return `<line x1="${left - 12}" y1="${y}" x2="${width - 20}" y2="${y}" class="rail"/>` +
    `<text x="20" y="${y + 4}" class="lane">${escape(stream)}</text>`;
}

function drawMark({ kind, call, x, y }: Placed, role: CausalityCall | null): string {
  const name = call.replace(/^cu(?=[A-Z])/, "").replace(/_v\d$/, "").replace(/Async$/, "");
  const label = `<text x="${x}" y="${y + 24}" class="call">${escape(name)}</text>`;
  const place = role === null
    ? ""
    : `<text x="${x}" y="${y + 37}" class="place">${escape(`${role.does} \u00b7 ${placeOf(role)}`)}</text>`;
  const shape = kind === "work" || role !== null
    ? `<rect x="${x - 17}" y="${y - 10}" width="34" height="20" rx="4" class="${role === null ? "work" : "culprit"}"/>`
    : kind === "host"
    ? `<path d="M${x} ${y - 9}L${x + 9} ${y}L${x} ${y + 9}L${x - 9} ${y}z" class="host"/>`
    : `<circle cx="${x}" cy="${y}" r="7" class="${kind}"/>`;
  return shape + label + place;
}

/** Arrows to a mark from the marks that it comes after. */
function drawEdges(mark: Placed, all: readonly Placed[]): string[] {
  return all.filter(({ seq, stream }) => mark.after.includes(seq) && stream !== mark.stream).map((from) => {
    const { x1, y1, x2, y2 } = ends(from, mark, 11);
    const middle = (x1 + x2) / 2;
    const path = `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
    return `<path d="${path}" class="order" marker-end="url(#arrow)"/>`;
  });
}

function drawMissing(report: CausalityReport, placed: readonly Placed[]): string {
  const culprits = placed.filter((mark) => roleOf(mark, report) !== null);
  const [from, to] = [culprits[0], culprits.at(-1)];
  if (from === undefined || to === undefined || from === to) return "";
  const { x1, y1, x2, y2 } = ends(from, to, 20);
  const same = y1 === y2;
  const [cx, cy] = [(x1 + x2) / 2, same ? y1 - 46 : (y1 + y2) / 2];
  const path = same
    ? `M${from.x} ${y1 - 12}Q${cx} ${cy} ${to.x} ${y2 - 12}`
    : `M${x1} ${y1}C${x1 + 46} ${y1} ${x2 - 46} ${y2} ${x2} ${y2}`;
  const label = report.kind === "race" ? "no order" : "too late";
  return `<path d="${path}" class="missing" marker-end="url(#missing-arrow)"/>` +
    `<text x="${cx}" y="${same ? cy + 14 : cy + 4}" class="missing-label">${label}</text>`;
}

/** Where an arrow begins and ends, so that it touches no mark. */
function ends(from: Placed, to: Placed, gap: number): { x1: number; y1: number; x2: number; y2: number } {
  return { x1: from.x + gap, y1: from.y, x2: to.x - gap, y2: to.y };
}

function drawLegend(y: number): string {
  const items = [
    [`<rect x="0" y="-9" width="20" height="12" rx="3" class="work"/>`, "work", 28, 80],
    [`<circle cx="8" cy="-3" r="6" class="record"/>`, "event recorded", 22, 122],
    [`<circle cx="8" cy="-3" r="6" class="wait"/>`, "stream waits", 22, 108],
    [`<path d="M8 -11L16 -3L8 5L0 -3z" class="host"/>`, "host waits", 24, 98],
    [`<line x1="0" y1="-3" x2="30" y2="-3" class="order" marker-end="url(#arrow)"/>`, "order", 38, 88],
    [`<line x1="0" y1="-3" x2="30" y2="-3" class="missing"/>`, "order that is missing", 38, 160],
  ] as const;
  let x = 20;
  return items.map(([shape, text, offset, space]) => {
    const label = `<text x="${offset}" y="1" class="legend">${text}</text>`;
    const item = `<g transform="translate(${x} ${y + 12})">${shape}${label}</g>`;
    x += space;
    return item;
  }).join("\n");
}

/** Breaks a line between words. */
function wrap(line: string, width: number): string[] {
  const indent = /^ */.exec(line)?.[0] ?? "";
  const lines: string[] = [];
  let current = indent;
  for (const word of line.trim().split(" ")) {
    if (current.trim() !== "" && current.length + word.length >= width) {
      lines.push(current);
      current = indent;
    }
    current += current.trim() === "" ? word : ` ${word}`;
  }
  return [...lines, current];
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
