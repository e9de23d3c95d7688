/**
 * A CUDA driver that does nothing: every call succeeds at once, and handles and addresses are made up. It isolates the
 * cost of the layers above the driver, as it costs next to nothing itself.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { cuda } from "../../bindings/cuda.ts";
import type { CudaDriver } from "../../src/driver/driver.ts";
import { ffiPort } from "../../src/ffi/port.ts";

/** The driver, and what a test can set. */
export interface NullDriver {
  readonly driver: CudaDriver;
  /** What queries return from now on. */
  answer: number;
  /** The address that the next allocation returns, or null for one never used before. */
  nextAddress: bigint | null;
}

/** Where handles begin: not an address of anything. */
const firstHandle = 0x51_0000_0000n;

/** Where device memory begins. */
const firstAddress = 0x0d_0000_0000_0000n;

/** A driver with this many devices. A device's primary context has the handle 0x1000 + its ordinal. */
export function nullDriver(devices = 1): NullDriver {
  let handles = firstHandle;
  let addresses = firstAddress;
  let current = 0n;
  const views = new Map<bigint, DataView>();
  const view = (address: bigint): DataView => {
    let found = views.get(address);
    if (found === undefined) views.set(address, found = new DataView(ffiPort().memory(address, 8)));
    return found;
  };
  const word = (out: bigint, value: bigint): number => {
    view(out).setBigUint64(0, value, true);
    return 0;
  };
  const int = (out: bigint, value: number): number => {
    view(out).setInt32(0, value, true);
    return 0;
  };
  const create = (out: bigint): number => word(out, handles += 0x100n);
  const allocate = (out: bigint, bytes: bigint): number => {
    const address = made.nextAddress ?? addresses;
    if (made.nextAddress === null) addresses += (bytes + 511n) / 512n * 512n;
    made.nextAddress = null;
    return word(out, address);
  };
  const query = (): number => made.answer;
  const special: Readonly<Record<string, (...args: never[]) => number>> = {
    cuDriverGetVersion: (out: bigint) => int(out, 13000),
    cuDeviceGetCount: (out: bigint) => int(out, devices),
    cuGraphGetNodes: (_graph: bigint, _nodes: bigint, count: bigint) => word(count, 1n), // whatever was captured
    cuDeviceGet: int,
    cuDeviceGetAttribute: (out: bigint) => int(out, 1),
    cuDevicePrimaryCtxRetain: (out: bigint, device: number) => word(out, 0x1000n + BigInt(device)),
    cuDevicePrimaryCtxGetState: (_device: number, flags: bigint, active: bigint) => int(flags, 0) || int(active, 1),
    cuCtxGetCurrent: (out: bigint) => word(out, current),
    cuCtxGetDevice: (out: bigint) => int(out, Number(current - 0x1000n)),
    cuCtxSetCurrent: (handle: bigint) => Number((current = handle) * 0n),
    cuCtxPushCurrent_v2: (handle: bigint) => Number((current = handle) * 0n),
    cuStreamCreate: create,
    cuStreamCreateWithPriority: create,
    cuEventCreate: create,
    cuMemPoolCreate: create,
    cuDeviceGetMemPool: create,
    cuStreamEndCapture: (_stream: bigint, out: bigint) => create(out),
    cuGraphInstantiateWithFlags: create,
    cuStreamQuery: query,
    cuEventQuery: query,
    cuMemAlloc_v2: allocate,
    cuMemHostAlloc: allocate,
    cuMemAllocManaged: allocate,
    cuMemAllocAsync: allocate,
    cuMemAllocFromPoolAsync: allocate,
    cuMemFreeAsync: (address: bigint) => Number((made.nextAddress = address) * 0n), // allocated next, as pools do
    cuMemGetAddressRange_v2: () => 1, // it knows no address
  };
  const groups = Object.entries<SymbolTable[string]>(cuda).map(([group, table]) => [
    group,
    Object.fromEntries(Object.keys(table).map((name) => [name, special[name] ?? (() => 0)])),
  ]);
  // One function per symbol of the table.
  const made: NullDriver = { driver: Object.fromEntries(groups) as CudaDriver, answer: 0, nextAddress: null };
  return made;
}
