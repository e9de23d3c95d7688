/**
 * Modules and kernels: PTX that an interpreter runs.
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
import { ffiPort } from "../../ffi/port.ts";
import { roundUp, struct } from "../../ffi/struct.ts";
import { readCString, readField } from "../../ffi/c_string.ts";
import type { CallTable } from "../call_table.ts";
import { faultCode, observedMemory } from "../kernel_faults.ts";
import { jitErrorOf, type JitOptions, readJitOptions } from "../jit_options.ts";
import type { SimulatorState } from "../simulator_state.ts";
import { deviceAttributes } from "./device.ts";
import { nativeView, readWord, writeInt, writeWord } from "../out_parameters.ts";
import type { Allocation, Context, Stream } from "../objects.ts";
import { PtxError, PtxFault, type PtxKernel, type PtxModule } from "../../ptx/mod.ts";
import { refuse, unsimulated } from "../call_error.ts";

/** Threads of a block, at most. */
const maxThreads = 1024;

/** Bytes of shared memory of a block: without asking, and after cuFuncSetAttribute(). */
const sharedBytes = { default: 49152, most: 232448 } as const;

/** Attributes of a function are numbers below this. */
const attributes = 1 + Math.max(...Object.values(CU_FUNC_ATTRIBUTE));

/** A module: a program and its variables in the memory of a context. */
interface LoadedModule {
  readonly handle: bigint;
  readonly context: Context;
  readonly program: PtxModule;
  readonly variables: ReadonlyMap<string, Allocation>;
  readonly functions: Map<string, LoadedFunction>;
  /** Whether the code is still there. */
  isLoaded: boolean;
}

/** A kernel of a module. */
interface LoadedFunction {
  readonly handle: bigint;
  readonly name: string;
  readonly module: LoadedModule;
  readonly entry: PtxKernel;
  /** Bytes of dynamic shared memory that launches may ask for. */
  maxDynamicShared: number;
}

/** Groups that share modules and their functions. */
export interface ModuleCalls {
  readonly module: CallTable<"module">;
  readonly kernel: CallTable<"kernel">;
}

/** The calls for modules and kernels. */
export function moduleCalls(simulator: SimulatorState): ModuleCalls {
  const modules = new Map<bigint, LoadedModule>();
  const functions = new Map<bigint, LoadedFunction>();
  const loaded = (handle: bigint): LoadedModule => {
    const found = modules.get(handle);
    if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
    simulator.usable(found.context);
    return found;
  };
  const kernel = (handle: bigint): LoadedFunction => {
    const found = functions.get(handle);
    if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
    simulator.usable(found.module.context);
    return found;
  };
  const load = (out: bigint, image: bigint, options?: JitOptions): void => {
    const context = simulator.current();
    if (out === 0n || image === 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    simulator.flush(context);
    const program = readProgram(simulator, image, options);
    const variables = allocateVariables(simulator, context, program);
    const made = { handle: simulator.newHandle(), context, program, variables, functions: new Map(), isLoaded: true };
    modules.set(made.handle, made);
    writeWord(out, made.handle);
  };
  const launch = (handle: bigint, shape: Shape, streamHandle: bigint, params: bigint, extra: bigint): void => {
    const stream = simulator.stream(streamHandle);
    enqueueLaunch(simulator, kernel(handle), shape, stream, params, extra);
  };

  return {
    module: {
      cuModuleLoadData: (out, image) => load(out, image),
      cuModuleLoadDataEx: (out, image, count, options, values) =>
        load(out, image, readJitOptions(count, options, values)),
      cuModuleUnload(handle) {
        const module = loaded(handle);
        simulator.refuseInCapture();
        modules.delete(handle);
        for (const { handle: one } of module.functions.values()) functions.delete(one);
        simulator.waitBeforeFree([module.context]);
        simulator.flush(module.context);
        module.isLoaded = false;
        for (const variable of module.variables.values()) simulator.free(variable);
      },
      cuModuleGetFunction(out, handle, name) {
        const module = loaded(handle);
        if (name === null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
        const text = readField(name);
        let found = module.functions.get(text);
        if (found === undefined) {
          const entry = module.program.entry(text);
          if (entry === null) throw refuse(CUresult.CUDA_ERROR_NOT_FOUND);
          const maxDynamicShared = sharedBytes.default - entry.staticSharedBytes;
          found = { handle: simulator.newHandle(), name: text, module, entry, maxDynamicShared };
          module.functions.set(text, found);
          functions.set(found.handle, found);
        }
        writeWord(out, found.handle);
      },
      cuModuleGetGlobal_v2(out, size, handle, name) {
        const variable = loaded(handle).variables.get(name === null ? "" : readField(name));
        if (variable === undefined) throw refuse(CUresult.CUDA_ERROR_NOT_FOUND);
        if (out !== 0n) writeWord(out, variable.address);
        if (size !== 0n) writeWord(size, BigInt(variable.bytes));
      },
    },
    kernel: {
      cuFuncGetAttribute(out, attribute, handle) {
        const { entry, maxDynamicShared } = kernel(handle);
        switch (attribute) {
          case CU_FUNC_ATTRIBUTE.MAX_THREADS_PER_BLOCK:
            return writeInt(out, mostThreads(entry));
          case CU_FUNC_ATTRIBUTE.SHARED_SIZE_BYTES:
            return writeInt(out, entry.staticSharedBytes);
          case CU_FUNC_ATTRIBUTE.MAX_DYNAMIC_SHARED_SIZE_BYTES:
            return writeInt(out, maxDynamicShared);
          case CU_FUNC_ATTRIBUTE.PTX_VERSION:
          case CU_FUNC_ATTRIBUTE.BINARY_VERSION:
            return writeInt(out, 90);
          default:
            if (attribute < 0 || attribute >= attributes) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
            // registers, local memory and caches: there is no compiled code to have any
            throw unsimulated("attributes of compiled code");
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
          return; // a hint, and there is no cache that it could change
        }
        if (attribute !== CU_FUNC_ATTRIBUTE.MAX_DYNAMIC_SHARED_SIZE_BYTES) {
          throw unsimulated("attributes of compiled code");
        }
        if (value < 0 || value > sharedBytes.most - found.entry.staticSharedBytes) {
          throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
        }
        found.maxDynamicShared = value;
      },
      // Registers do not limit how many blocks fit, for there are none: threads, blocks and shared memory do.
      cuOccupancyMaxActiveBlocksPerMultiprocessor(out, handle, blockSize, dynamicShared) {
        if (blockSize <= 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
        writeInt(out, activeBlocks(kernel(handle), blockSize, Number(dynamicShared)));
      },
      cuOccupancyMaxPotentialBlockSize(gridOut, blockOut, handle, sharedOfBlock, dynamicShared, limit) {
        if (sharedOfBlock !== 0n) throw unsimulated("shared memory by a function of the block's size");
        const found = kernel(handle);
        const most = Math.min(mostThreads(found.entry), limit === 0 ? maxThreads : limit);
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
        nativeView(config, struct(CUlaunchConfig).size);
        const c = struct(CUlaunchConfig).at(config);
        if (c.numAttrs !== 0) throw unsimulated("attributes of launches");
        const shape: Shape = {
          grid: [c.gridDimX, c.gridDimY, c.gridDimZ],
          block: [c.blockDimX, c.blockDimY, c.blockDimZ],
          shared: c.sharedMemBytes,
        };
        launch(f, shape, c.hStream, params, extra);
      },
    },
  };
}

/** Blocks of a grid or threads of a block along x, y and z. */
type Dim = readonly [x: number, y: number, z: number];

/** Blocks of this size that a multiprocessor holds at once. */
function activeBlocks({ entry }: LoadedFunction, blockSize: number, dynamicShared: number): number {
  const limit = (name: keyof typeof CU_DEVICE_ATTRIBUTE) => deviceAttributes.get(CU_DEVICE_ATTRIBUTE[name]) ?? 0;
  const shared = entry.staticSharedBytes + dynamicShared + limit("RESERVED_SHARED_MEMORY_PER_BLOCK");
  return blockSize > mostThreads(entry) ? 0 : Math.min(
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

/** Threads of a block, at most. */
function mostThreads({ maxThreads: declared = maxThreads }: PtxKernel): number {
  return Math.min(maxThreads, declared);
}

/** Reads an image. Only PTX can be read: machine code begins with a mark that no text begins with. */
function readProgram(simulator: SimulatorState, image: bigint, options?: JitOptions): PtxModule {
  const { loadPtx } = simulator.options;
  const first = nativeView(image, 4).getUint32(0, true);
  if (first === elf || first === fatBinary) throw unsimulated("machine code");
  const text = readCString(image);
  try {
    if (text.trim() === "") throw new PtxError(1, "there is nothing to read");
    const program = loadPtx(text);
    options?.report("");
    return program;
  } catch (error) {
    simulator.lastPtxError = error;
    const { code, log } = jitErrorOf(text, error);
    options?.report(log);
    throw refuse(code);
  }
}

/** How a cubin begins, and a fat binary. */
const elf = 0x464c_457f;
const fatBinary = 0xba55_ed50;

/** Allocates and initialises the variables of a program. */
function allocateVariables(simulator: SimulatorState, context: Context, program: PtxModule): Map<string, Allocation> {
  const variables = new Map<string, Allocation>();
  for (const [name, { size }] of program.globals) {
    const variable = simulator.space.allocateDevice(context, size);
    if (variable === null) throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    variables.set(name, variable);
  }
  for (const [name, { init, relocations }] of program.globals) { // now every variable has an address
    const bytes = init.slice();
    const view = new DataView(bytes.buffer);
    for (const { offset, symbol, addend } of relocations) {
      view.setBigUint64(offset, (variables.get(symbol)?.address ?? 0n) + addend, true);
    }
    simulator.space.write(variables.get(name)?.address ?? 0n, bytes);
  }
  return variables;
}

function enqueueLaunch(
  simulator: SimulatorState,
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
  if (product(grid) === 0 || threads === 0 || tooLarge || threads > mostThreads(entry)) {
    throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
  if (shared > maxDynamicShared) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  const args = readArguments(entry, params, extra); // as they are now: the caller may change them after the call
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

/** A kernel has failed: the context is of no more use. What is not the kernel's fault goes to the program as it is. */
function fail(simulator: SimulatorState, context: Context, error: unknown): void {
  const code = faultCode(error);
  if (code === null) throw error;
  simulator.lastKernelError = error;
  context.fault = code;
}

/** The arguments, laid out as the kernel expects them. */
function readArguments(entry: PtxKernel, params: bigint, extra: bigint): Uint8Array {
  const end = Math.max(0, ...entry.params.map(({ offset, size }) => offset + size));
  const args = new Uint8Array(end);
  if (params !== 0n) {
    entry.params.forEach(({ offset, size }, i) => {
      const value = readWord(params + BigInt(i * 8));
      args.set(new Uint8Array(nativeView(value, size).buffer), offset);
    });
  } else if (extra !== 0n) args.set(readExtra(extra, end));
  else if (end > 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  return args;
}

/** The arguments as one buffer, from the list of keys and values that ends in a key of its own. */
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
