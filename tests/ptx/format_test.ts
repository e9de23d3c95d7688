/** printf writes what the C library's printf writes. */
import { assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type FormatArguments, formatC } from "../../src/ptx/format.ts";

type Fact = readonly [format: string, args: readonly (readonly [kind: string, value: string | number])[], text: string];

const facts: readonly Fact[] = JSON.parse(
  readFileSync(new URL("../data/printf_facts.json", import.meta.url), "utf8"),
);

/** Arguments in sequence; a string stands for its own address. */
function taking(args: readonly (readonly [kind: string, value: string | number])[]): FormatArguments {
  const left = [...args];
  let text = "";
  const next = (kinds: string): string | number => {
    const [kind = "", value = ""] = left.shift() ?? [];
    assertEquals(kinds.includes(kind), true, `${kind} is none of ${kinds}`);
    return value;
  };
  return {
    int: () => BigInt.asUintN(32, BigInt(next("i"))),
    long: () => {
      const string = left[0]?.[0] === "s";
      const value = next("qds");
      if (string) text = String(value);
      return string ? 1n : BigInt.asUintN(64, BigInt(value));
    },
    text: (_, most) => text.slice(0, most),
  };
}

/** What the C library supports and CUDA does not: an H100 writes it verbatim, and takes no argument for it. */
const unknown = /\.\*|%[^%a-zA-Z]*(hh|z|j|t)[a-zA-Z]/;

test("every conversion, flag, width and precision gives the text that the C library gives", () => {
  assertEquals(facts.length > 500, true);
  for (const [format, args, text] of facts) {
    if (unknown.test(format)) continue;
    const written = formatC(format, taking(args));
    assertEquals([format, written.text, written.taken], [format, text, args.length]);
  }
});

test("an unknown conversion, and one beyond the 32nd argument, is printed as it stands", () => {
  assertEquals(formatC("%y %", taking([])), { text: "%y %", taken: 0 });
  const many = Array.from({ length: 32 }, (_, i) => ["i", i] as const);
  assertEquals(formatC("%d".repeat(33) + "%%", taking(many)), {
    text: many.map(([, i]) => i).join("") + "%d%",
    taken: 32,
  });
});

test("a NULL string is printed as such", () => {
  assertEquals(formatC("%s|%.2s|%9s", taking([["q", "0"], ["q", "0"], ["q", "0"]])).text, "(null)|(n|   (null)");
});

test("conversions that CUDA does not know are printed as they stand", () => {
  const formats = ["<%.*f>", "<%*.*f>", "<%-*.*s>", "<%.*s>", "<%zu>", "<%q>", "<%5%>", "<%"]; // as an H100 wrote them
  for (const format of formats) assertEquals(formatC(format, taking([])), { text: format, taken: 0 });
});
