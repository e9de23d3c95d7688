/** Messages from and to GPU memory, in one process and in two, ordered with its streams. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently } from "../support/child.ts";
import { missingUcxCuda } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { realRoot } from "../support/cuda_root.ts";
import { ucxBehaviours } from "./ucx_behaviours.ts";
import { sendToAnotherProcess } from "../support/ucx_pair.ts";

for (const { name, devices, run } of ucxBehaviours) {
  const [full, options] = needs(missingUcxCuda(devices), name);
  test(full, { ...patiently, ...options }, () => run(realRoot));
}

for (const [where, gpus, other] of [["of the same GPU", 1, 0], ["of another GPU", 2, 1]] as const) {
  const [name, options] = needs(
    missingUcxCuda(gpus),
    `memory of every place is sent to a process ${where} and back`,
  );
  test(name, { ...patiently, ...options }, async () => {
    for (const size of [8, 64 << 20]) {
      const transports = await sendToAnotherProcess("real", other, size);
      assert(transports.some((one) => one.startsWith("cuda")), transports.join(" "));
    }
  });
}

const [title, options] = needs(
  missingUcxCuda(2),
  "memory is sent through the host between GPUs that UCX cannot connect directly",
);
test(title, { ...patiently, ...options }, async () => {
  for (const size of [8, 64 << 20]) {
    const transports = await sendToAnotherProcess("real", 1, size, "^cuda_ipc");
    assert(transports.length > 0 && transports.every((one) => !one.startsWith("cuda_ipc")), transports.join(" "));
  }
});
