/** Many messages between two processes, from and to GPU memory of every place: all arrive whole, nothing is leaked. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { missingUcxCuda } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { scaled } from "../support/property.ts";
import { soak } from "../support/ucx_soak.ts";

for (const [where, gpus, other] of [["of the same GPU", 1, 0], ["of another GPU", 2, 1]] as const) {
  const messages = scaled(5000);
  const [name, options] = needs(
    missingUcxCuda(gpus),
    `${messages} messages of any size from and to memory of every place arrive whole at a process ${where}`,
  );
  test(name, { ...options, timeout: 300_000 + 10 * messages }, async () => {
    const transports = await soak("real", other, messages);
    assert(transports.some((one) => one.startsWith("cuda")), transports.join(" "));
  });
}
