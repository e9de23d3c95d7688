/** Files to devices and to pinned memory, on the simulator, which delays work arbitrarily, under the checker. */
import { assertEquals, assertRejects } from "@std/assert";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import {
  Cuda,
  DeviceMemoryResource,
  NpyError,
  PinnedMemoryResource,
  readNpy,
  StridedMemoryView,
  SystemError,
  writeNpy,
} from "../../mod.ts";
import { headerOf, npy } from "../support/npy_files.ts";
import { scratchFolder } from "../support/scratch.ts";

/** More than two blocks and not a multiple of one, so that both pinned blocks are reused. */
const length = 2.6 * 2 ** 20 | 0;
const data = new Float64Array(length).map((_, i) => i * 1.5);
const little = npy(headerOf("<f8", [length]), new Uint8Array(data.buffer));
const turned = new Uint8Array(data.buffer.slice(0));
for (let at = 0; at < turned.length; at += 8) turned.subarray(at, at + 8).reverse();
const big = npy(headerOf(">f8", [length]), turned);

for (const schedule of ["latest", "round-robin", "random"] as const) {
  test(`every byte arrives on the device, however late the device works (${schedule})`, async () => {
    using cuda = Cuda.simulate({ schedule, seed: 5, check: true });
    const device = cuda.device(0);
    using pool = new DeviceMemoryResource(device, {});
    using stream = device.createStream();
    for (const file of [little, big]) {
      const seen: number[] = [];
      const onProgress = (done: number, total: number) => {
        assertEquals(total, data.byteLength);
        seen.push(done);
      };
      using view = await readNpy(file, { memory: pool, stream, onProgress });
      assertEquals([view.device, view.stream], [device, stream]);
      assertEquals(seen, [0, 2 ** 23, 2 ** 24, data.byteLength]);
      assertEquals(await view.toTypedArray(), data);
      const path = `${scratchFolder()}/back.npy`;
      await writeNpy(path, view);
      using back = await readNpy(path);
      assertEquals(await back.toTypedArray(), data);
    }
    assertEquals(cuda.reports, []);
  });
}

test("pinned memory is filled in place", async () => {
  using cuda = Cuda.simulate({ check: true });
  using view = await readNpy(big, { memory: new PinnedMemoryResource(cuda.device(0)) });
  assertEquals(await view.toTypedArray(), data);
  assertEquals(view.buffer.kind, "pinned");
});

test("a failure on the way leaves nothing allocated", async () => {
  using cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  using pool = new DeviceMemoryResource(device, {});
  const stop = () => {
    throw new RangeError("enough");
  };
  await assertRejects(() => readNpy(little, { memory: pool, onProgress: stop }), RangeError, "enough");
  const cut = `${scratchFolder()}/cut.npy`;
  writeFileSync(cut, new Uint8Array(100));
  await assertRejects(() => readNpy(cut, { memory: pool }), NpyError);
  device.synchronize();
  assertEquals(pool.pool.use.used, 0);
});

test("elements that NumPy lacks are refused before a file is made", async () => {
  const bytes = StridedMemoryView.fromTypedArray(new Uint8Array(4));
  const path = `${scratchFolder()}/x.npy`;
  const lanes = StridedMemoryView.fromBuffer(bytes.buffer, { shape: [1], dtype: "uint8x4" });
  await assertRejects(() => writeNpy(path, lanes), NpyError, "elements of one number");
  await assertRejects(() => readNpy(path), SystemError, "Cannot open");
});
