/**
 * Device properties: those of a mid-size data centre GPU of compute capability 9.0.
 *
 * @module
 */
import {
  CU_DEVICE_ATTRIBUTE,
  CU_DEVICE_P2P_ATTRIBUTE,
  CU_MEM_HANDLE_TYPE,
  CUresult,
} from "../../../bindings/cuda_types.ts";
import { readField } from "../../ffi/mod.ts";
import { type CallTable, checkConstant, refuse } from "../call.ts";
import type { Simulator } from "../simulator.ts";
import { nativeView, writeInt, writeString, writeWord } from "../out_parameters.ts";
import type { Device } from "../objects.ts";

/** Non-zero attributes that are the same for every simulated device. */
export const deviceAttributes: ReadonlyMap<number, number> = new Map(
  Object.entries({
    MAX_THREADS_PER_BLOCK: 1024,
    MAX_BLOCK_DIM_X: 1024,
    MAX_BLOCK_DIM_Y: 1024,
    MAX_BLOCK_DIM_Z: 64,
    MAX_GRID_DIM_X: 2 ** 31 - 1,
    MAX_GRID_DIM_Y: 65535,
    MAX_GRID_DIM_Z: 65535,
    MAX_SHARED_MEMORY_PER_BLOCK: 49152,
    TOTAL_CONSTANT_MEMORY: 65536,
    WARP_SIZE: 32,
    MAX_PITCH: 2 ** 31 - 1,
    MAX_REGISTERS_PER_BLOCK: 65536,
    CLOCK_RATE: 1_000_000,
    MULTIPROCESSOR_COUNT: 16,
    CAN_MAP_HOST_MEMORY: 1,
    CONCURRENT_KERNELS: 1,
    MEMORY_CLOCK_RATE: 1_000_000,
    GLOBAL_MEMORY_BUS_WIDTH: 1024,
    L2_CACHE_SIZE: 2 ** 22,
    MAX_THREADS_PER_MULTIPROCESSOR: 2048,
    ASYNC_ENGINE_COUNT: 3,
    UNIFIED_ADDRESSING: 1,
    COMPUTE_CAPABILITY_MAJOR: 9,
    COMPUTE_CAPABILITY_MINOR: 0,
    STREAM_PRIORITIES_SUPPORTED: 1,
    GLOBAL_L1_CACHE_SUPPORTED: 1,
    LOCAL_L1_CACHE_SUPPORTED: 1,
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: 233472,
    MAX_REGISTERS_PER_MULTIPROCESSOR: 65536,
    MANAGED_MEMORY: 1,
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: 2,
    CONCURRENT_MANAGED_ACCESS: 1,
    COMPUTE_PREEMPTION_SUPPORTED: 1,
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: 1,
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: 232448,
    HOST_REGISTER_SUPPORTED: 1,
    MAX_BLOCKS_PER_MULTIPROCESSOR: 32,
    RESERVED_SHARED_MEMORY_PER_BLOCK: 1024,
    READ_ONLY_HOST_REGISTER_SUPPORTED: 1,
    IPC_EVENT_SUPPORTED: 1,
    UNIFIED_FUNCTION_POINTERS: 1,
  }).map(([name, value]) => [CU_DEVICE_ATTRIBUTE[name as keyof typeof CU_DEVICE_ATTRIBUTE], value]),
);

/** `domain:bus:device.function`: the domain and the function may be left out. */
const busId = /^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-9a-f]))?$/i;

/** The calls of the group. */
export function deviceCalls(simulator: Simulator): CallTable<"device"> {
  /** Devices are on buses of their own: bus 0 of domain 0 has none. */
  const place = ({ ordinal }: Device) => ({ domain: (ordinal + 1) >> 8, bus: (ordinal + 1) & 0xff });
  const hex = (value: number, digits: number) => value.toString(16).toUpperCase().padStart(digits, "0");
  const reaches = (device: number, peer: number) =>
    simulator.device(device) !== simulator.device(peer) && simulator.options.canAccessPeer(device, peer);
  return {
    cuDeviceGetName: (out, length, device) =>
      writeString(out, length, `Simulated GPU ${simulator.device(device).ordinal}`),
    cuDeviceGetUuid_v2(out, device) {
      const bytes = new Uint8Array(nativeView(out, 16).buffer);
      bytes.set(new TextEncoder().encode("simulated gpu   "));
      new DataView(bytes.buffer).setUint16(14, simulator.device(device).ordinal);
    },
    cuDeviceGetAttribute(out, attribute, device) {
      const { domain, bus } = place(simulator.device(device));
      checkConstant(attribute, CU_DEVICE_ATTRIBUTE);
      switch (attribute) {
        case CU_DEVICE_ATTRIBUTE.MEMORY_POOLS_SUPPORTED:
          return writeInt(out, Number(simulator.options.poolsSupported));
        case CU_DEVICE_ATTRIBUTE.MEMPOOL_SUPPORTED_HANDLE_TYPES:
          return writeInt(out, simulator.options.poolsSupported ? CU_MEM_HANDLE_TYPE.POSIX_FILE_DESCRIPTOR : 0);
        case CU_DEVICE_ATTRIBUTE.PCI_DOMAIN_ID:
          return writeInt(out, domain);
        case CU_DEVICE_ATTRIBUTE.PCI_BUS_ID:
          return writeInt(out, bus);
        default:
          writeInt(out, deviceAttributes.get(attribute) ?? 0);
      }
    },
    cuDeviceTotalMem_v2: (out, device) => writeWord(out, BigInt(simulator.device(device).segments.limit)),
    cuDeviceGetPCIBusId(out, length, device) {
      const { domain, bus } = place(simulator.device(device));
      writeString(out, length, `${hex(domain, 4)}:${hex(bus, 2)}:00.0`);
    },
    cuDeviceGetByPCIBusId(out, name) {
      const parts = busId.exec(name === null ? "" : readField(name));
      if (parts === null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const [domain, bus, slot, part] = parts.slice(1).map((digits = "0") => parseInt(digits, 16));
      const device = simulator.devices.find((one) => {
        const at = place(one);
        return at.domain === domain && at.bus === bus && slot === 0 && part === 0;
      });
      if (device === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_DEVICE);
      writeInt(out, device.ordinal);
    },
    cuDeviceCanAccessPeer: (out, device, peer) => writeInt(out, Number(reaches(device, peer))),
    cuDeviceGetP2PAttribute(out, attribute, source, destination) {
      if (simulator.device(source) === simulator.device(destination)) throw refuse(CUresult.CUDA_ERROR_INVALID_DEVICE);
      const { ACCESS_SUPPORTED, NATIVE_ATOMIC_SUPPORTED } = CU_DEVICE_P2P_ATTRIBUTE;
      const access = Number(reaches(source, destination));
      checkConstant(attribute, CU_DEVICE_P2P_ATTRIBUTE);
      writeInt(out, attribute === ACCESS_SUPPORTED || attribute === NATIVE_ATOMIC_SUPPORTED ? access : 0);
    },
  };
}
