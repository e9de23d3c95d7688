/** 10,000 opens and closes of what lives on a GPU leave the memory of the host and of the device as it was. */
import { assert } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Cuda, type CudaDevice, type CudaStream, DeviceMemoryResource, StridedMemoryView } from "../../mod.ts";
import { CU_STREAM } from "../../bindings/cuda_types.ts";
import { NativeArena, type Out } from "../../src/ffi/arena.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { scaled } from "../support/property.ts";

const missing = missingGpus();

/** What one cycle is, by the resource that it opens and closes. */
const cycles: { readonly [resource: string]: (device: CudaDevice, stream: CudaStream) => void } = {
  stream: (device) => device.createStream().close(),
  event: (device) => device.createEvent().close(),
  "recorded event": (_, stream) => stream.record().close(),
  "device buffer": (device, stream) => new DeviceMemoryResource(device).allocate(65536, { stream }).close(),
  "DLPack export of device memory": (device, stream) => {
    using buffer = new DeviceMemoryResource(device).allocate(65536, { stream });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [65536], dtype: "uint8" });
    StridedMemoryView.fromDlpack(view.toDlpack({ stream }), { stream }).close();
  },
};

/** The same with nothing but the driver's functions: what the driver itself keeps is not ours to answer for. */
const driverAlone: { readonly [resource: string]: (device: CudaDevice, out: Out<"ptr">) => void } = {
  stream: (device, out) => {
    const { stream } = device.driver;
    device.within(() => stream.cuStreamCreate(out.$address, CU_STREAM.NON_BLOCKING));
    device.within(() => stream.cuStreamDestroy_v2(out.value));
  },
};

function resident(): number {
  return Number(readFileSync("/proc/self/statm", "utf8").split(" ")[1]) * 4096;
}

for (const [resource, cycle] of Object.entries(cycles)) {
  test(...needs(missing, `10,000 cycles of ${resource} leave memory flat`), () => {
    using cuda = Cuda.open();
    using arena = new NativeArena();
    const device = cuda.device(0);
    using stream = device.createStream();
    const [free, total] = [arena.out("size"), arena.out("size")];
    const freeOnDevice = () => {
      device.synchronize();
      device.within(() => cuda.driver.memory.cuMemGetInfo_v2(free.$address, total.$address));
      return free.value;
    };
    const rounds = scaled(10_000);
    const alone = driverAlone[resource];
    const out = arena.out("ptr");
    const grow = (work: () => void) => {
      const start = resident();
      for (let i = 0; i < rounds; i++) work();
      return resident() - start;
    };
    const drivers = alone === undefined ? 0 : (grow(() => alone(device, out)), grow(() => alone(device, out))) / rounds;
    for (let i = 0; i < rounds; i++) cycle(device, stream);
    const before = { host: resident(), device: freeOnDevice() };
    for (let i = 0; i < rounds; i++) cycle(device, stream);
    const host = (resident() - before.host) / rounds;
    const device_ = (before.device - freeOnDevice()) / rounds;
    assert(host < drivers + 200, `${host} bytes of host memory per cycle are lost, the driver alone loses ${drivers}`);
    assert(device_ < 16, `${device_} bytes of device memory per cycle are lost`);
  });
}

test(...needs(missing, "1,000 cycles of Cuda.open leave memory flat"), () => {
  const cycle = () => {
    using cuda = Cuda.open();
    cuda.device(0).attribute("MULTIPROCESSOR_COUNT");
  };
  for (let i = 0; i < 1000; i++) cycle();
  const before = resident();
  for (let i = 0; i < 1000; i++) cycle();
  const lost = (resident() - before) / 1000;
  assert(lost < 1000, `${lost} bytes per cycle are lost`);
});
