/** One process per GPU of the machine: each sends to every other, in turns and all at once, and every byte is right. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda } from "../../mod.ts";
import { patiently } from "../support/child.ts";
import { missingUcxCuda } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { Mesh } from "../support/ucx_mesh.ts";

const [title, options] = needs(missingUcxCuda(2), "the memory of each GPU is sent to a process of each other one");

test(title, { ...options, ...patiently }, async () => {
  using cuda = Cuda.open();
  const all = cuda.devices.map(({ ordinal }) => ordinal);
  const others = (one: number) => all.filter((other) => other !== one);
  for (const bytes of [8, 3 << 20]) {
    await using mesh = await Mesh.start(all.length, bytes);
    let pairs = 0;
    for (const from of all) {
      for (const to of others(from)) {
        const answers = await mesh.tell((one) =>
          one === from ? { to: [to], from: [], count: 5 } : one === to ? { to: [], from: [from], count: 5 } : null
        );
        assertEquals(answers.map(({ wrong }) => wrong), [0, 0], `${bytes} bytes from ${from} to ${to}`);
        assert(answers.some(({ transports }) => transports.some((name) => name.startsWith("cuda"))));
        pairs++;
      }
    }
    const answers = await mesh.tell((one) => ({ to: others(one), from: others(one), count: 10 }));
    assertEquals(answers.map(({ wrong }) => wrong), all.map(() => 0), `${bytes} bytes, all at once`);
    console.log(`${pairs} pairs of ${all.length} GPUs, ${bytes} bytes`);
  }
});
