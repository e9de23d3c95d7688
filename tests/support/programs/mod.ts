/**
 * Random programs of producers and consumers: their steps, and the results they must give if the steps run one after
 * the other.
 *
 * `plan.ts` makes them from random numbers, `run.ts` runs them through the library and, for consumers and producers of
 * other libraries, through the driver's own calls.
 *
 * @module
 */
import { deviceOf, type How, type LaneKind } from "../stream_lanes.ts";

/** Streams of a device: the usual ones, and two of other libraries, which may destroy them at any time. */
export const kinds: readonly LaneKind[] = ["legacy", "blocking", "free", "free", "thread", "free", "free"];

/** The device of a lane. */
export function deviceOfLane(lane: number): number {
  return deviceOf(lane, kinds);
}

/** Whether a lane is a stream of another library. */
export function isForeign(lane: number): boolean {
  return lane % kinds.length >= 5;
}

/** Whether a lane is a default stream, which is never destroyed. */
export function isDefault(lane: number): boolean {
  const kind = kinds[lane % kinds.length];
  return kind === "legacy" || kind === "thread";
}

/** Where memory comes from. `foreign`: another library's, by cuMemAllocAsync. */
export type Resource = "current" | "own" | "synchronous" | "pinned" | "managed" | "foreign";

/** Rows and columns of a block of 4 x 4 bytes. */
export interface Part {
  readonly row: number;
  readonly rows: number;
  readonly col: number;
  readonly cols: number;
}

/** Rows and columns of a block. */
export const side = 4;

/** All of a block. */
export const whole: Part = { row: 0, rows: side, col: 0, cols: side };

/** Whether a part is contiguous. */
export function isDense({ rows, cols }: Part): boolean {
  return cols === side || rows === 1;
}

/** What memory is accessed through: an array of ours, an export that another library has taken, or a loan. */
export interface Via {
  readonly kind: "array" | "export" | "loan";
  readonly id: number;
}

/** How an array is exported. */
export type Convention = "versioned" | "legacy" | "arrow";

/** How an array is imported. */
export type Protocol = "dlpack" | "interface" | "arrow";

/** Where an importer declares that it will use the array: a stream, only the device, or no order wanted. */
export type Given = "stream" | "device" | "null";

/** How a stream is named to a producer: as an object, by its handle, or not at all where that means the same. */
export type Naming = "object" | "handle" | "default";

/** How a consumer releases: by a call, from a thread of its own, or without having taken anything. */
export type ReleasedBy = "call" | "thread" | "close";

/**
 * What is released: everything, only the schema, or all but the other child, which its consumer has moved out before.
 */
export type Released = "all" | "schema" | "all but twin";

/** One step. Arrays, exports, loans, slots and lanes are numbers. */
export type Step =
  | {
    readonly do: "allocate";
    readonly array: number;
    readonly device: number;
    readonly resource: Resource;
    readonly lane: number;
  }
  | {
    readonly do: "fill";
    readonly via: Via;
    readonly lane: number;
    readonly value: number;
    readonly block: number;
    readonly part: Part;
  }
  | {
    readonly do: "read";
    readonly via: Via;
    readonly lane: number;
    readonly slot: number;
    readonly block: number;
    readonly part: Part;
  }
  | {
    readonly do: "copy";
    readonly from: number;
    readonly to: number;
    readonly lane: number;
    readonly blocks: readonly [from: number, to: number];
    readonly parts: readonly [from: Part, to: Part];
  }
  | { readonly do: "home"; readonly array: number; readonly lane: number }
  | { readonly do: "lend"; readonly loan: number; readonly array: number; readonly part: Part; readonly lane: number }
  | {
    readonly do: "describe";
    readonly loan: number;
    readonly array: number;
    readonly part: Part;
    readonly lane: number;
  }
  | { readonly do: "return"; readonly loan: number }
  | {
    readonly do: "export";
    readonly export: number;
    readonly array: number;
    readonly part: Part;
    readonly how: Convention;
    readonly lane: number | null;
    readonly naming: Naming;
    readonly isReadonly: boolean;
    /** The other child, if it is exported as a struct of two arrays. */
    readonly twin: { readonly export: number; readonly array: number; readonly part: Part } | null;
  }
  | { readonly do: "await"; readonly export: number; readonly lane: number }
  | {
    readonly do: "stream";
    readonly stream: number;
    readonly items: readonly { readonly export: number; readonly array: number; readonly part: Part }[];
  }
  | { readonly do: "next"; readonly stream: number; readonly export: number }
  | { readonly do: "release stream"; readonly stream: number; readonly by: ReleasedBy }
  | {
    readonly do: "import";
    readonly array: number;
    readonly from: Via;
    readonly part: Part;
    readonly how: Protocol;
    readonly given: Given;
    readonly device: number;
    readonly lane: number | null;
    readonly isReadonly: boolean;
  }
  | { readonly do: "release"; readonly export: number; readonly by: ReleasedBy; readonly what: Released }
  | { readonly do: "close"; readonly array: number }
  | {
    readonly do: "look";
    readonly live: number;
    readonly released: readonly number[];
    readonly streams: readonly number[];
  }
  | { readonly do: "peers"; readonly owner: number; readonly isOwnPool: boolean; readonly peers: readonly number[] }
  | { readonly do: "order"; readonly before: number; readonly after: number; readonly how: How }
  | { readonly do: "synchronize"; readonly lane: number }
  | { readonly do: "synchronize device"; readonly device: number }
  | { readonly do: "destroy"; readonly lane: number }
  | { readonly do: "close pool"; readonly device: number }
  | { readonly do: "close cuda" };

/** A program. */
export interface Program {
  readonly devices: number;
  /** Whether devices reach each other's memory. */
  readonly hasPeers: boolean;
  /** Whether the driver is older than CUDA 12.5: it cannot record an event for a whole context. */
  readonly isOld: boolean;
  readonly steps: readonly Step[];
  /** How many bytes each read returns. */
  readonly slots: readonly number[];
}

/** Where a program runs. */
export type Setting = Pick<Program, "devices" | "hasPeers" | "isOld">;

/** What each read must return: the steps run one after the other, on plain arrays. */
export function reference({ steps, slots }: Program): number[][] {
  const blocks = new Map<number, number[]>();
  const bytesOf = (block: number): number[] => {
    const known = blocks.get(block) ?? new Array<number>(side * side).fill(0);
    blocks.set(block, known);
    return known;
  };
  const results: number[][] = slots.map(() => []);
  for (const step of steps) {
    if (step.do === "fill") { for (const at of places(step.part)) bytesOf(step.block)[at] = step.value; }
    if (step.do === "read") {
      const bytes = bytesOf(step.block);
      results[step.slot] = places(step.part).map((at) => bytes[at] ?? 0);
    }
    if (step.do === "copy") {
      const [from, to] = step.blocks.map(bytesOf);
      const targets = places(step.parts[1]);
      const values = places(step.parts[0]).map((at) => from?.[at] ?? 0);
      values.forEach((value, i) => to === undefined || (to[targets[i] ?? 0] = value));
    }
  }
  return results;
}

/** The bytes of a part, in the order of its elements. */
function places({ row, rows, col, cols }: Part): number[] {
  return Array.from({ length: rows * cols }, (_, i) => (row + Math.floor(i / cols)) * side + col + i % cols);
}
