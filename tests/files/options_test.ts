/** Every file reader refuses an invalid device, resource, stream or function before it opens the file. */
import { assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { Cuda, PinnedMemoryResource, readNpy, readNpz, StridedMemoryView, writeNpy } from "../../mod.ts";
import { headerOf, npy } from "../support/npy_files.ts";

const file = npy(headerOf("<i4", [2]), new Uint8Array(Int32Array.of(3, 4).buffer));

test("options of another kind are refused with what was expected, before the file is opened", async () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const [device, next] = cuda.devices;
  if (device === undefined || next === undefined) return;
  const memory = new PinnedMemoryResource(device);
  const closed = device.createStream();
  closed.close();
  using stream = device.createStream();
  const wrong: readonly (readonly [options: object, words: string])[] = [
    [{ device: 0 }, 'at 0: expected a CudaDevice, or "host": use cuda.device(0)'],
    [{ device: "cuda:0" }, 'at "cuda:0": expected a CudaDevice, or "host"'],
    [{ device: null }, 'at null: expected a CudaDevice, or "host"'],
    [{ device: cuda }, "expected a CudaDevice"],
    [{ memory: 5 }, "Cannot allocate from 5: expected a MemoryResource"],
    [{ memory: null }, "Cannot allocate from null: expected a MemoryResource"],
    [{ memory: device }, "an instance of CudaDevice: expected a MemoryResource"],
    [{ device, memory }, "expected device or memory, got both"],
    [{ device, stream: 5 }, "in the order of a stream: expected a CudaStream, got 5"],
    [{ memory, stream: device }, "expected a CudaStream, got an instance of CudaDevice: device.createStream()"],
    [{ device, stream: closed }, "got a closed CudaStream"],
    [{ device: next, stream }, "expected one of device 1"],
    [{ stream }, "pass { device } or { memory }"],
    [{ device: "host", stream }, "pass { device } or { memory }"],
    [{ onProgress: 5 }, "Expected onProgress to be a function (done, total) => ..., got 5"],
    [{ onProgress: null }, "Expected onProgress to be a function"],
    [{ devise: device }, "did you mean device?"],
  ];
  for (const [options, words] of wrong) {
    await assertRejects(() => readNpy("/nonexistent", options), TypeError, words);
    await assertRejects(() => readNpz("/nonexistent", options), TypeError, words);
  }
  for (const names of ["weights", [5], 5, null]) {
    const given = { names } as unknown as { names: string[] };
    await assertRejects(() => readNpz("/nonexistent", given), TypeError, "Expected names to be an array of strings");
  }
  const onProgress = 5 as never;
  await assertRejects(
    () => writeNpy("/nonexistent/x", StridedMemoryView.arange(2), { onProgress }),
    TypeError,
    "got 5",
  );
});

test("the host is a place like a device", async () => {
  using view = await readNpy(file, { device: "host" });
  assertEquals([view.device, await view.toTypedArray()], [null, Int32Array.of(3, 4)]);
});
