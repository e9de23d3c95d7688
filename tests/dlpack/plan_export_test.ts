/**
 * The plan of an export, for every array and every request, against the protocol's rules one by one. Nothing is
 * exported; a simulated root provides the devices and streams in the plans.
 */
import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { test } from "node:test";
import { type ExportPlan, planExport } from "../../src/dlpack/plan_export.ts";
import type { ToDlpackOptions } from "../../src/public/dlpack.ts";
import { Cuda, type CudaDevice, type CudaStream, DType, ExchangeError } from "../../mod.ts";
import { check, fc, scaled } from "../support/property.ts";

/** Where the memory is: on the host, in a Worker, or on a device. */
type Place = "host" | "worker" | 0 | 1;

interface Case {
  readonly place: Place;
  /** The device of the home stream; null without one. */
  readonly home: 0 | 1 | null;
  readonly readonly: boolean;
  readonly dtype: string;
  readonly options: RequestedOptions;
}

/** What a consumer may request, or pass by mistake. A word stands for a stream. */
interface RequestedOptions {
  readonly maxVersion?: unknown;
  readonly copy?: unknown;
  readonly dlDevice?: unknown;
  readonly stream?: unknown;
  readonly max_version?: unknown;
}

const versions = [[1, 0], [1, 3], [2, 0], [0, 8], [0, 0], null];
const devices = [[1, 0], [2, 0], [2, 1], null];
const strangeDevices = [[1, 1], [2, 2], [2, -1], [3, 0], [10, 0]];
/** Names of streams: the home stream, or another one of device 0 or 1. */
const streamNames = ["home", "of 0", "of 1"];
const handles = [1n, 2n, 0x5000n];

const mistaken = fc.constantFrom<RequestedOptions>(
  { maxVersion: 1 },
  { maxVersion: [1] },
  { maxVersion: [1, 0.5] },
  { copy: 1 },
  { copy: "false" },
  { dlDevice: 2 },
  { dlDevice: [2] },
  { dlDevice: [2, "0"] },
  { stream: 1 },
  { stream: "1" },
  { max_version: [1, 0] },
);

const requests: fc.Arbitrary<RequestedOptions> = fc.record({
  maxVersion: fc.constantFrom(...versions),
  copy: fc.constantFrom(true, false, null),
  dlDevice: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...devices) }, fc.constantFrom(...strangeDevices)),
  stream: fc.oneof(
    fc.constantFrom(...streamNames),
    fc.constantFrom(...handles),
    fc.constantFrom(null, -1n, 0n),
  ),
}, { requiredKeys: [] });

const cases: fc.Arbitrary<Case> = fc.record({
  place: fc.constantFrom<Place>("host", "worker", 0, 1),
  home: fc.constantFrom<Case["home"]>(0, 1, null),
  readonly: fc.boolean(),
  dtype: fc.constantFrom("float32", "uint4_packed", "float4_e2m1fn"),
  options: fc.oneof(
    { weight: 9, arbitrary: requests },
    fc.tuple(requests, mistaken).map(([right, wrong]) => ({ ...right, ...wrong })),
  ),
});

test("an export is planned by the rules of DLPack, or refused for a valid reason", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const homes = cuda.devices.map((device) => device.createStream());
  const others = cuda.devices.map((device) => device.createStream());
  const tally = new Map<string, number>();
  check(
    fc.property(cases, (one) => {
      const home = one.home === null ? null : at(homes, one.home);
      const word = one.options.stream;
      const named = word === "home"
        ? home ?? at(others, 0)
        : word === "of 0" || word === "of 1"
        ? at(others, Number(word.slice(3)))
        : null;
      const options = named === null ? one.options : { ...one.options, stream: named };
      const device = typeof one.place === "number" ? at(cuda.devices, one.place) : null;
      const array = {
        buffer: { device, stream: home, endsWithWorker: one.place === "worker" },
        dtype: DType.from(one.dtype),
        readonly: one.readonly,
      };
      const reasons = reasonsAgainst(one, named);
      const expected = reasons.length > 0 ? null : planByTheRules(one, { devices: cuda.devices, home, named });
      try {
        const plan = planExport(array, options as ToDlpackOptions); // some of them not expressible in typed programs
        assert(expected !== null, `expected an error that says ${reasons.map(([, text]) => text).join(" or ")}`);
        assertSamePlan(plan, expected);
        count(expected.copy === null ? "in place" : expected.copy.to === "host" ? "to the host" : "to a device");
      } catch (error) {
        if (expected !== null) throw error;
        const { message } = error as Error;
        const reason = reasons.find(([, text]) => message.includes(text));
        assert(reason !== undefined, `${message}: expected ${reasons.map(([, text]) => text).join(" or ")}`);
        assertInstanceOf(error, reason[0], message);
        count(reason[1]);
      }
    }),
    20_000,
  );
  const seen = [...tally.values()];
  assert(tally.size === 17 && Math.min(...seen) >= scaled(20), JSON.stringify([...tally]));
  for (const stream of [...homes, ...others]) stream.close();

  function count(outcome: string): void {
    tally.set(outcome, (tally.get(outcome) ?? 0) + 1);
  }
});

function at<T>(all: readonly T[], index: number): T {
  const one = all[index];
  assert(one !== undefined);
  return one;
}

/** Compares field by field, devices and streams by identity: there is only one object for each. */
function assertSamePlan(plan: ExportPlan, expected: ExportPlan): void {
  assertEquals([plan.isVersioned, plan.hostWaits], [expected.isVersioned, expected.hostWaits]);
  assertStrictEquals(plan.consumer, expected.consumer);
  assertStrictEquals(plan.copy?.to, expected.copy?.to);
  const homeOf = (copy: ExportPlan["copy"]) => copy !== null && "home" in copy ? copy.home : null;
  assertStrictEquals(homeOf(plan.copy), homeOf(expected.copy));
}

/** What follows from several options of a case. */
function implications({ place, options }: Case) {
  const here = typeof place === "number" ? [2, place] : [1, 0];
  const wanted = options.dlDevice ?? here;
  const target = Array.isArray(wanted) ? wanted : here;
  const moves = `${target}` !== `${here}`;
  return {
    isOnHost: typeof place !== "number",
    isOld: Array.isArray(options.maxVersion) && options.maxVersion[0] === 0,
    moves,
    isCopied: moves || place === "worker" || options.copy === true,
    target,
    namesStream: options.stream !== undefined && options.stream !== null && options.stream !== -1n,
  };
}

/** Each reason to refuse a case: the error's class, and a part of its text that no other error has. */
function reasonsAgainst(one: Case, named: CudaStream | null): [new (...args: never[]) => Error, string][] {
  const { place, readonly, dtype, options } = one;
  const { isOnHost, isOld, moves, isCopied, target: [type, id], namesStream } = implications(one);
  const isMissing = (value: unknown) => value === undefined || value === null;
  const isPair = (value: unknown) =>
    isMissing(value) || (Array.isArray(value) && value.length === 2 && value.every(Number.isInteger));
  const isStream = named !== null || isMissing(options.stream) || typeof options.stream === "bigint";
  const mistakes: [boolean, string][] = [
    ["max_version" in options, "did you mean maxVersion?"],
    [!isPair(options.maxVersion), "expected [major, minor]"],
    [!isMissing(options.copy) && typeof options.copy !== "boolean", "expected true, false or null"],
    [!isPair(options.dlDevice), "expected [type, number]"],
    [!isStream, "expected a CudaStream, its handle as a bigint, or null"],
  ];
  const refusals: [boolean, string][] = [
    [isOld && dtype === "float4_e2m1fn", "cannot say that each element has a byte of its own"],
    [isOld && readonly && !isCopied, "cannot say that it is read-only"],
    [namesStream && isOnHost && !moves, "Cannot order host memory on a stream"],
    [namesStream && options.stream === 0n && !(isOnHost && !moves), "DLPack forbids it"],
    [moves && options.copy === false, "without a copy: let the consumer allow it"],
    [place === "worker" && options.copy === false, "it is freed when the Worker ends"],
    [moves && type !== 2 && !(type === 1 && id === 0), "expected the host (1, 0) or a CUDA device (2, n)"],
    [moves && type === 2 && isOnHost && named === null, "pass a CudaStream of that device"],
    [moves && type === 2 && id !== 0 && id !== 1, "expected 0 to 1"],
  ];
  const applying = (all: [boolean, string][]) => all.filter(([applies]) => applies).map(([, text]) => text);
  return [
    ...applying(mistakes).map((text): [typeof TypeError, string] => [TypeError, text]),
    ...applying(refusals).map((text): [typeof ExchangeError, string] => [ExchangeError, text]),
  ];
}

/** The plan for a case that is not refused. */
function planByTheRules(
  one: Case,
  { devices, home, named }: {
    readonly devices: readonly CudaDevice[];
    readonly home: CudaStream | null;
    readonly named: CudaStream | null;
  },
): ExportPlan {
  const { isOnHost, isOld, isCopied, target: [type, id], namesStream } = implications(one);
  const { stream } = one.options;
  const device = type === 2 ? at(devices, id) : null;
  // A copy stays on the home stream if possible, else follows the consumer, else uses the default stream.
  const ofCopy = [home, named].find((candidate) => candidate?.device === device) ?? device?.defaultStream;
  return {
    isVersioned: !isOld,
    copy: !isCopied ? null : device === null || ofCopy === undefined ? { to: "host" } : { to: device, home: ofCopy },
    hostWaits: isOnHost && stream === undefined,
    // Only on a device can a stream wait. A consumer that names none works on the legacy default stream.
    consumer: device === null || (stream !== undefined && !namesStream)
      ? null
      : named ?? (stream as bigint | undefined) ?? 1n,
  };
}
