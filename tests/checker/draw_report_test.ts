/** The drawing of a report shows its content, whatever names and places occur. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { CausalityReport } from "../../src/checker/mod.ts";
import { Cuda, DeviceMemoryResource } from "../../mod.ts";
import { check, fc } from "../support/property.ts";

/** A race between two of three streams, after a wait that does not order them. */
function race(): CausalityReport {
  const cuda = Cuda.simulate({ check: { onReport: () => {}, leaks: false } });
  const device = cuda.device(0);
  using one = device.createStream();
  using other = device.createStream();
  using third = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(4096, { stream: one });
  buffer.fill(1, { stream: one });
  other.wait(one);
  third.synchronize();
  buffer.fill(2, { stream: other });
  buffer.fill(3, { stream: one });
  one.wait(other);
  cuda.close();
  const [report] = cuda.reports;
  assert(report !== undefined);
  return report;
}

function count(svg: string, what: RegExp): number {
  return [...svg.matchAll(what)].length;
}

/** Whether tags open and close in the right order, as an XML parser requires. */
function isBalanced(svg: string): boolean {
  const open: string[] = [];
  for (const [, closing, name = "", selfClosing] of svg.matchAll(/<(\/?)([a-z]+)\b[^>]*?(\/?)>/g)) {
    if (selfClosing === "/") continue;
    if (closing === "/") {
      if (open.pop() !== name) return false;
    } else open.push(name);
  }
  return open.length === 0;
}

test("a race is drawn with both streams, both calls, the existing order, and the missing order", () => {
  const report = race();
  const svg = report.toSvg();
  assert(isBalanced(svg), svg);
  for (const call of [report.first, report.second]) {
    assert(call !== null);
    assert(svg.includes(`>${call.stream}</text>`), `the stream ${call.stream}`);
    const [place] = /draw_report_test\.ts:\d+:\d+/.exec(call.stack[0] ?? "") ?? [];
    assert(place !== undefined && svg.includes(place), `the place ${place}`);
  }
  assertEquals(count(svg, /class="culprit"/g), 2);
  assertEquals(count(svg, /<path [^>]*class="missing"/g), 1);
  assert(count(svg, /<path [^>]*class="order"/g) >= 1, "the existing wait");
  assert(count(svg, /<circle [^>]*r="7" class="record"/g) >= 1 && count(svg, /<circle [^>]*r="7" class="wait"/g) >= 1);
  assert(svg.includes("Race: nothing orders cuMemsetD8Async"), "the caption");
});

test("whatever a report says is drawn as text and nothing else", () => {
  const report = race();
  check(
    fc.property(fc.string(), fc.string(), fc.string(), (stream, place, message) => {
      const rename = (call: CausalityReport["first"]) => call === null ? null : { ...call, stream, stack: [place] };
      const { kind, address, bytes, leaks } = report;
      const timeline = report.timeline.map((mark) => ({ ...mark, stream }));
      const [first, second] = [rename(report.first), rename(report.second)];
      const svg = new CausalityReport({ kind, message, first, second, address, bytes, leaks, timeline }).toSvg();
      const withoutText = svg.replace(/<(text|title)\b[^>]*>[^<]*<\/\1>/g, "").replace(/<style>.*?<\/style>/s, "");
      assert(!/[&]/.test(withoutText) && isBalanced(withoutText), svg);
    }),
    300,
  );
});

// JSON.stringify threw "Do not know how to serialize a BigInt".
test("a report is written as JSON with all its parts, addresses and handles as its message has them", () => {
  const cuda = Cuda.simulate({ check: { onReport: () => {} } });
  const stream = cuda.device(0).createStream({ name: "left open" });
  cuda.close();
  for (const report of [race(), ...cuda.reports]) {
    const written = JSON.parse(JSON.stringify({ report })).report;
    const hex = (value: bigint | null | undefined) => typeof value === "bigint" ? `0x${value.toString(16)}` : value;
    const call = (one: CausalityReport["first"]) => one === null ? null : { ...one, address: hex(one.address) };
    const { kind, message, first, second, address, bytes, timeline } = report;
    const leaks = report.leaks.map((leak) => ({ ...leak, handle: hex(leak.handle), made: call(leak.made) }));
    const parts = { kind, message, first: call(first), second: call(second), address: hex(address), bytes, timeline };
    assertEquals(written, JSON.parse(JSON.stringify({ ...parts, leaks })));
  }
  assertEquals(cuda.reports[0]?.leaks[0]?.handle, stream.handle);
});
