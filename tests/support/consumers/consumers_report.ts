/**
 * Outcomes of exchanging arrays with a library: a report for people, and the failures among them.
 *
 * @module
 */
import type { Cell, Matrix, Outcome } from "./consumers.ts";
import type { Library, Place } from "./libraries.ts";

/** Rows of a Markdown table, grouping element types with the same outcome. */
export function report({ name }: Library, place: Place, { version, asked, cells }: Matrix): string[] {
  const rows = new Map<string, string[]>();
  for (const cell of cells) {
    const row = `${cell.convention} | ${cell.direction} ${name} | ${summary(cell)}`;
    rows.set(row, [...rows.get(row) ?? [], cell.dtype]);
  }
  const title = `${name} ${version}, ${place === "gpu" ? "GPU" : "CPU"}`;
  const says = asked.length > 0 ? `By DLPack it asks for ${asked.join(", ")}.\n\n` : "";
  const lines = [...rows].map(([row, dtypes]) => {
    const [convention = "", direction = "", outcome = ""] = row.split(" | ");
    return `| ${convention} | ${direction} | ${dtypes.join(", ")} | ${outcome} |`;
  });
  return [`\n### ${title}\n\n${says}| convention | direction | element types | outcome |\n|---|---|---|---|`, ...lines];
}

function summary({ outcomes }: Cell): string {
  const tried = outcomes.filter(({ result }) => result !== "none");
  if (tried.length === 0) return `not handed over: ${clean(outcomes[0]?.why ?? "")}`;
  const good = tried.filter(({ result }) => result === "ok").map(({ part }) => part);
  const reasons = new Map<string, string[]>();
  for (const { part, result, why } of tried) {
    if (result === "ok") continue;
    const key = result === "refused"
      ? `refused: ${clean(why)}`
      : result === "wrong"
      ? `WRONG: ${clean(why)}`
      : result === "died"
      ? `THE PROCESS ENDS: ${clean(why)}`
      : clean(why);
    reasons.set(key, [...reasons.get(key) ?? [], part]);
  }
  const bad = [...reasons].map(([why, parts]) =>
    `${parts.length === tried.length ? "" : `${parts.join(", ")}: `}${why}`
  );
  return [...good.length > 0 ? [`ok: ${good.join(", ")}`] : [], ...bad].join("; ");
}

/** A reason in one cell of a table, without numbers that differ from type to type. */
function clean(why: string): string {
  return why.replace(/[|`\n]/g, " ").replace(/\. Did you mean: .*$/, "").replace(
    /\b(code:?|type code|bits|element) \d+/g,
    "$1 ...",
  ).slice(0, 120);
}

/** Failures: anything wrong, and anything refused that the library is known to accept. */
export function failures({ name, known }: Library, place: Place, { cells }: Matrix): string[] {
  const problems: string[] = [];
  const say = ({ convention, direction, dtype }: Cell, { part, result, why }: Outcome) =>
    problems.push(`${dtype} ${direction} ${name} by ${convention}, ${part}: ${result}: ${why}`);
  for (const cell of cells) {
    const expected = known.find((one) => one.place === place && one.convention === cell.convention);
    const parts = cell.direction === "to" ? expected?.parts : expected?.gives;
    for (const outcome of cell.outcomes) {
      const isKnown = expected?.dtypes.includes(cell.dtype) && parts?.includes(outcome.part);
      const mayBe = ["ok", "none"].includes(outcome.result) ||
        (!isKnown && !["wrong", "died"].includes(outcome.result));
      if (!mayBe) say(cell, outcome);
    }
  }
  for (const { convention, dtypes, gives, place: where } of known) {
    if (where !== place) continue;
    for (const direction of gives.length > 0 ? ["to", "from"] : ["to"]) {
      for (const dtype of dtypes) {
        const cell = cells.find((one) =>
          one.convention === convention && one.direction === direction && one.dtype === dtype
        );
        if (cell?.outcomes.some(({ result }) => result === "ok") !== true) {
          const reasons = new Set(cell?.outcomes.map(({ result, why }) => `${result}: ${why}`));
          problems.push(
            `${dtype} ${direction} ${name} by ${convention}: nothing came of it: ${[...reasons].join("; ")}`,
          );
        }
      }
    }
  }
  return problems;
}
