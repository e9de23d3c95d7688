/**
 * Kernels: which memory is passed to a launch.
 *
 * @module
 */
import { CU_LAUNCH_PARAM, CUlaunchConfig, CUresult } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/mod.ts";
import { readCString, readField } from "../../ffi/mod.ts";
import { type KernelParam, paramsOf } from "../kernel_params.ts";
import type { CheckerState } from "../checker_state.ts";
import type { PendingCall } from "../pending_call.ts";
import type { CheckedCalls } from "../checked_driver.ts";

/** The first bytes of machine code, with which no PTX begins. */
const binaryMarks: readonly number[] = [0x464c_457f, 0xba55_ed50];

/** A module that is loaded. */
interface Module {
  /** The parameters of its kernels, by name; none if it was not loaded as PTX. */
  readonly params: ReadonlyMap<string, readonly KernelParam[]>;
  /** Those of its kernels that the program has asked for. */
  readonly kernels: Set<bigint>;
}

// law checker/moduleCalls: checker/kernels
/** The calls for modules, which are read to learn which parameters of their kernels are addresses. */
export function moduleCalls(checker: CheckerState, inner: DriverGroups["module"]): CheckedCalls<"module"> {
  const { kernels } = checker;
  /** By handle. */
  const modules = new Map<bigint, Module>();
  const loaded = (code: number, out: bigint, image: bigint): number => {
    if (code !== 0) return code;
    const handle = checker.reader.word(out);
    const mark = checker.reader.at(image, 4).getUint32(0, true);
    const params: Module["params"] = binaryMarks.includes(mark) ? new Map() : paramsOf(readCString(image));
    modules.set(handle, { params, kernels: new Set() });
    return code;
  };
  return {
    cuModuleLoadData: (out, image) => loaded(inner.cuModuleLoadData(out, image), out, image),
    cuModuleLoadDataEx: (out, image, count, options, values) =>
      loaded(inner.cuModuleLoadDataEx(out, image, count, options, values), out, image),
    cuModuleUnload(handle) {
      const code = inner.cuModuleUnload(handle);
      if (code !== 0) return code;
      for (const kernel of modules.get(handle)?.kernels ?? []) kernels.delete(kernel);
      modules.delete(handle);
      return code;
    },
    cuModuleGetFunction(out, handle, name) {
      const code = inner.cuModuleGetFunction(out, handle, name);
      if (code !== 0 || name === null) return code;
      const module = modules.get(handle);
      const params = module?.params.get(readField(name));
      const kernel = checker.reader.word(out);
      module?.kernels.add(kernel);
      if (params === undefined) kernels.delete(kernel);
      else kernels.set(kernel, params);
      return code;
    },
  };
}

/** The calls that launch kernels. */
export function kernelCalls(checker: CheckerState, inner: DriverGroups["kernel"]): CheckedCalls<"kernel"> {
  const launched = (
    pending: PendingCall,
    kernel: bigint,
    params: bigint,
    extra: bigint,
    perform: () => number,
  ): number => {
    addArguments(checker, pending, kernel, params, extra);
    const recording = checker.newRecording(1);
    const code = checker.observed(recording, perform);
    if (code === 0) pending.accepted(recording);
    return code;
  };
  return {
    cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra) {
      const pending = checker.pendingCall("cuLaunchKernel", checker.stream(stream, "cuLaunchKernel"));
      const perform = () => inner.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
      return launched(pending, f, params, extra, perform);
    },
    cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params) {
      const call = "cuLaunchCooperativeKernel";
      return launched(
        checker.pendingCall(call, checker.stream(stream, call)),
        f,
        params,
        0n,
        () => inner.cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params),
      );
    },
    cuLaunchKernelEx(config, f, params, extra) {
      const call = "cuLaunchKernelEx";
      const stream = config === 0n ? 0n : checker.reader.struct(CUlaunchConfig, config).hStream;
      return launched(
        checker.pendingCall(call, checker.stream(stream, call)),
        f,
        params,
        extra,
        () => inner.cuLaunchKernelEx?.(config, f, params, extra) ?? CUresult.CUDA_ERROR_NOT_SUPPORTED,
      );
    },
  };
}

/** Adds the memory that is passed to a launch: every 8-byte argument that is an address in known memory. */
function addArguments(
  checker: CheckerState,
  pending: PendingCall,
  kernel: bigint,
  params: bigint,
  extra: bigint,
): void {
  const known = checker.kernels.get(kernel) ?? queryParams(checker, kernel);
  const packed = params === 0n ? bufferOf(checker, extra) : 0n;
  known.forEach(({ offset, size, writes }, i) => {
    if (size !== 8) return;
    const at = params !== 0n
      ? checker.reader.word(params + BigInt(8 * i))
      : packed === 0n
      ? 0n
      : packed + BigInt(offset);
    if (at === 0n) return;
    const value = Number(checker.reader.word(at));
    if (Number.isSafeInteger(value) && value > 0) pending.usesInKernel(value, writes);
  });
}

/** The most parameters that are queried. */
const maxParams = 256;

/**
 * The parameters of a kernel that was not loaded as PTX, if the driver knows them; what the kernel does with them is
 * unknown.
 */
function queryParams({ inner, reader, kernels }: CheckerState, kernel: bigint): readonly KernelParam[] {
  const params: KernelParam[] = [];
  const { cuFuncGetParamInfo } = inner.kernel;
  const { address, view } = reader;
  for (let i = 0; cuFuncGetParamInfo !== null && i < maxParams; i++) {
    if (cuFuncGetParamInfo(kernel, BigInt(i), address, address + 8n) !== 0) break;
    const [offset, size] = [Number(view.getBigUint64(0, true)), Number(view.getBigUint64(8, true))];
    params.push({ offset, size, writes: null });
  }
  kernels.set(kernel, params);
  return params;
}

/** The arguments as one buffer, from a list of keys and values that ends with CU_LAUNCH_PARAM_END. */
function bufferOf({ reader }: CheckerState, extra: bigint): bigint {
  for (let at = extra; at !== 0n; at += 16n) {
    const key = reader.word(at);
    if (key === CU_LAUNCH_PARAM.BUFFER_POINTER) return reader.word(at + 8n);
    if (key === CU_LAUNCH_PARAM.END) return 0n;
  }
  return 0n;
}
