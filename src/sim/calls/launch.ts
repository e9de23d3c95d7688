/**
 * Kernels: their attributes, and launching them.
 *
 * @module
 */
import {
  CU_DEVICE_ATTRIBUTE,
  CU_FUNC_ATTRIBUTE,
  CU_GRAPH_NODE_TYPE,
  CU_LAUNCH_PARAM,
  CUlaunchConfig,
  CUresult,
} from "../../../bindings/cuda_types.ts";
import { ffiPort, roundUp } from "../../ffi/mod.ts";
import { PtxFault, type PtxKernel } from "../../ptx/mod.ts";
import { type CallError, type CallTable, refuse, unsimulated } from "../call.ts";
import { faultCode, observedMemory } from "../kernel_faults.ts";
import type { Context, LoadedFunction, Stream } from "../objects.ts";
import { nativeView, readWord, viewStruct, writeInt, writeWord } from "../out_parameters.ts";
import type { Simulator } from "../simulator.ts";
import { deviceAttributes } from "./device.ts";

/** Maximum number of threads per block. */
const maxThreads = 1024;

/** Bytes of shared memory that a block may use: by default, and after cuFuncSetAttribute(). */
export const sharedBytes = { default: 49152, most: 232448 } as const;

/** Function attributes are numbers below this. */
const attributes = 1 + Math.max(...Object.values(CU_FUNC_ATTRIBUTE));

/** The error for an attribute that only compiled code has, such as its registers, or that does not exist. */
function attributeError(attribute: number): CallError {
  return attribute < 0 || attribute >= attributes
    ? refuse(CUresult.CUDA_ERROR_INVALID_VALUE)
    : unsimulated("attributes of compiled code");
}

/** The calls for kernels. */
export function kernelCalls(simulator: Simulator): CallTable<"kernel"> {
  const kernel = (handle: bigint): LoadedFunction => {
    const found = simulator.functions.get(handle);
    if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
    simulator.usable(found.module.context);
    return found;
  };
  const launch = (handle: bigint, shape: Shape, streamHandle: bigint, params: bigint, extra: bigint): void => {
    const stream = simulator.stream(streamHandle);
    enqueueLaunch(simulator, kernel(handle), shape, stream, params, extra);
  };
  return {
    cuFuncGetAttribute(out, attribute, handle) {
      const { entry, maxDynamicShared } = kernel(handle);
      switch (attribute) {
        case CU_FUNC_ATTRIBUTE.MAX_THREADS_PER_BLOCK:
          return writeInt(out, threadLimit(entry));
        case CU_FUNC_ATTRIBUTE.SHARED_SIZE_BYTES:
          return writeInt(out, entry.staticSharedBytes);
        case CU_FUNC_ATTRIBUTE.MAX_DYNAMIC_SHARED_SIZE_BYTES:
          return writeInt(out, maxDynamicShared);
        case CU_FUNC_ATTRIBUTE.PTX_VERSION:
        case CU_FUNC_ATTRIBUTE.BINARY_VERSION:
          return writeInt(out, 90);
        default:
          throw attributeError(attribute);
      }
    },
    cuFuncGetParamInfo(handle, index, offset, size) {
      const param = kernel(handle).entry.params[Number(index)];
      if (param === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      writeWord(offset, BigInt(param.offset));
      if (size !== 0n) writeWord(size, BigInt(param.size));
    },
    cuFuncSetAttribute(handle, attribute, value) {
      const found = kernel(handle);
      if (attribute === CU_FUNC_ATTRIBUTE.PREFERRED_SHARED_MEMORY_CARVEOUT) {
        if (value < -1 || value > 100) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
        return; // a hint, and there is no cache to configure
      }
      if (attribute !== CU_FUNC_ATTRIBUTE.MAX_DYNAMIC_SHARED_SIZE_BYTES) throw attributeError(attribute);
      if (value < 0 || value > sharedBytes.most - found.entry.staticSharedBytes) {
        throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      }
      found.maxDynamicShared = value;
    },
    // There are no registers to limit how many blocks fit: threads, blocks and shared memory do.
    cuOccupancyMaxActiveBlocksPerMultiprocessor(out, handle, blockSize, dynamicShared) {
      if (blockSize <= 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      writeInt(out, activeBlocks(kernel(handle), blockSize, Number(dynamicShared)));
    },
    cuOccupancyMaxPotentialBlockSize(gridOut, blockOut, handle, sharedOfBlock, dynamicShared, limit) {
      if (sharedOfBlock !== 0n) throw unsimulated("shared memory as a function of the block's size");
      const found = kernel(handle);
      const most = Math.min(threadLimit(found.entry), limit === 0 ? maxThreads : limit);
      let best = { threads: 0, blockSize: 0 };
      for (let blockSize = most; blockSize > 0; blockSize -= blockSize % 32 || 32) {
        const threads = blockSize * activeBlocks(found, blockSize, Number(dynamicShared));
        if (threads > best.threads) best = { threads, blockSize };
      }
      if (best.blockSize === 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const multiprocessors = deviceAttributes.get(CU_DEVICE_ATTRIBUTE.MULTIPROCESSOR_COUNT) ?? 1;
      writeInt(gridOut, multiprocessors * best.threads / best.blockSize);
      writeInt(blockOut, best.blockSize);
    },
    cuLaunchKernel: (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra) =>
      launch(f, { grid: [gx, gy, gz], block: [bx, by, bz], shared }, stream, params, extra),
    cuLaunchKernelEx(config, f, params, extra) {
      const c = viewStruct(CUlaunchConfig, config);
      if (c.numAttrs !== 0) throw unsimulated("attributes of launches");
      const shape: Shape = {
        grid: [c.gridDimX, c.gridDimY, c.gridDimZ],
        block: [c.blockDimX, c.blockDimY, c.blockDimZ],
        shared: c.sharedMemBytes,
      };
      launch(f, shape, c.hStream, params, extra);
    },
  };
}

/** Blocks of a grid or threads of a block along x, y and z. */
type Dim = readonly [x: number, y: number, z: number];

/** Number of blocks of this size that fit on a multiprocessor at once. */
function activeBlocks({ entry }: LoadedFunction, blockSize: number, dynamicShared: number): number {
  const limit = (name: keyof typeof CU_DEVICE_ATTRIBUTE) => deviceAttributes.get(CU_DEVICE_ATTRIBUTE[name]) ?? 0;
  const shared = entry.staticSharedBytes + dynamicShared + limit("RESERVED_SHARED_MEMORY_PER_BLOCK");
  return blockSize > threadLimit(entry) ? 0 : Math.min(
    Math.floor(limit("MAX_THREADS_PER_MULTIPROCESSOR") / roundUp(blockSize, 32)),
    Math.floor(limit("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR") / shared),
    limit("MAX_BLOCKS_PER_MULTIPROCESSOR"),
  );
}

interface Shape {
  readonly grid: Dim;
  readonly block: Dim;
  /** Bytes of dynamic shared memory. */
  readonly shared: number;
}

function product([x, y, z]: Dim): number {
  return x * y * z;
}

/** Maximum number of threads per block of a kernel. */
function threadLimit({ maxThreads: declared = maxThreads }: PtxKernel): number {
  return Math.min(maxThreads, declared);
}

// law sim/enqueueLaunch: sim/output, ptx/faults
function enqueueLaunch(
  simulator: Simulator,
  { entry, module, maxDynamicShared }: LoadedFunction,
  { grid, block, shared }: Shape,
  stream: Stream,
  params: bigint,
  extra: bigint,
): void {
  const { context, variables } = module;
  if (stream.context !== context) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
  const threads = product(block);
  const tooLarge = grid[0] >= 2 ** 31 || grid[1] > 65535 || grid[2] > 65535 || block[2] > 64;
  if (product(grid) === 0 || threads === 0 || tooLarge || threads > threadLimit(entry)) {
    throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
  if (shared > maxDynamicShared) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  const args = readArguments(entry, params, extra); // copied now: the caller may change them after the call
  simulator.flush(context);
  const globals = new Map([...variables].map(([name, { address }]) => [name, address]));
  const seed = simulator.random.below(2 ** 31);
  simulator.submit(stream, CU_GRAPH_NODE_TYPE.KERNEL, () => {
    simulator.clock += product(grid) * 1e-3;
    const { runningObserver: observer } = simulator;
    const memory = simulator.space.kernelMemory(context);
    try {
      if (!module.isLoaded) throw new PtxFault("trap", 0, `the module of ${entry.name} was unloaded before it ran`);
      entry.run({
        grid,
        block,
        params: args,
        dynamicSharedBytes: shared,
        memory: observer === null ? memory : observedMemory(memory, observer),
        globals,
        seed,
        maxInstructions: simulator.options.maxInstructions,
        print: (text, to) => context.output.add(text, to),
      });
      observer?.ended();
    } catch (error) {
      fail(simulator, context, error);
    }
  });
}

/** Marks the context as lost after a kernel fault. Rethrows an error that is not the kernel's fault unchanged. */
function fail(simulator: Simulator, context: Context, error: unknown): void {
  const code = faultCode(error);
  if (code === null) throw error;
  simulator.lastKernelError = error;
  context.fault = code;
}

/** Reads the arguments into the layout that the kernel expects. */
function readArguments(entry: PtxKernel, params: bigint, extra: bigint): Uint8Array {
  const end = Math.max(0, ...entry.params.map(({ offset, size }) => offset + size));
  const args = new Uint8Array(end);
  if (params !== 0n && extra !== 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  if (params !== 0n) {
    entry.params.forEach(({ offset, size }, i) => {
      const value = readWord(params + BigInt(i * 8));
      args.set(new Uint8Array(nativeView(value, size).buffer), offset);
    });
  } else if (extra !== 0n) args.set(readExtra(extra, end));
  else if (end > 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  return args;
}

/** Reads the arguments as one buffer, from a list of keys and values terminated by CU_LAUNCH_PARAM_END. */
function readExtra(extra: bigint, expected: number): Uint8Array {
  let address = 0n;
  let size = 0n;
  for (let at = extra;; at += 16n) {
    const key = readWord(at);
    if (key === CU_LAUNCH_PARAM.END) break;
    const value = readWord(at + 8n);
    if (key === CU_LAUNCH_PARAM.BUFFER_POINTER) address = value;
    else if (key === CU_LAUNCH_PARAM.BUFFER_SIZE) size = readWord(value);
    else throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
  if (size < BigInt(expected)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  return new Uint8Array(address === 0n ? new ArrayBuffer(0) : ffiPort().memory(address, expected));
}
