/**
 * One process for each GPU, each with a UCX endpoint to every other one: they send and receive as ordered. For
 * `tests/gpu/ucx_mesh_test.ts` and `bench/ucx_mesh.ts`.
 *
 * @module
 */
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { startScript } from "./child.ts";

/** What a process is ordered to do. */
export type Order =
  /** Connect to these addresses; the process's own is among them. */
  | { readonly meet: readonly string[] }
  /** Send `count` messages to each of `to`, and receive `count` from each of `from`, all at once. */
  | { readonly to: readonly number[]; readonly from: readonly number[]; readonly count: number }
  /** Copy through the driver to another GPU of the process, `count` times. */
  | { readonly copyTo: number; readonly count: number };

/** A process's answer: seconds, and how many messages differed from what was sent. */
export interface Answer {
  readonly seconds: number;
  readonly wrong: number;
  readonly transports: readonly string[];
}

/** The processes. */
export class Mesh implements AsyncDisposable {
  readonly #children: readonly ChildProcess[];
  readonly #lines: readonly AsyncIterator<string>[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
    this.#lines = children.map(({ stdout }) => {
      if (stdout === null) throw new TypeError("No pipe");
      return createInterface({ input: stdout })[Symbol.asyncIterator]();
    });
  }

  /** Starts a process for each of `count` GPUs, and connects them. Messages have `bytes` bytes. */
  static async start(count: number, bytes: number): Promise<Mesh> {
    const mesh = new Mesh(
      Array.from({ length: count }, (_, i) =>
        startScript(new URL("../gpu/ucx_mesh_child.ts", import.meta.url), {
          args: [`${i}`, `${count}`, `${bytes}`],
          timeout: 240_000,
        }, ["pipe", "pipe", "inherit"])),
    );
    const meet = await Promise.all(mesh.#children.map((_, i) => mesh.#hear(i)));
    await mesh.tell(() => ({ meet }));
    return mesh;
  }

  async #hear(child: number): Promise<string> {
    const line = await this.#lines[child]?.next();
    if (line === undefined || line.done === true) throw new Error(`Process ${child} ended without an answer`);
    return line.value;
  }

  /** Sends each process an order, or none, and waits for the answers of those that got one. */
  async tell(order: (child: number) => Order | null): Promise<Answer[]> {
    const ordered = this.#children.flatMap(({ stdin }, i) => {
      const what = order(i);
      if (what === null) return [];
      stdin?.write(`${JSON.stringify(what)}\n`);
      return [i];
    });
    return await Promise.all(ordered.map(async (i) => JSON.parse(await this.#hear(i)) as Answer));
  }

  /** Ends the processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((child) =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) resolve(null);
        child.once("close", resolve);
        child.stdin?.end();
      })
    ));
  }
}
