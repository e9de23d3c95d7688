/**
 * Modules: loaded PTX, and its variables.
 *
 * @module
 */
import { CUresult } from "../../../bindings/cuda_types.ts";
import { readCString, readField } from "../../ffi/mod.ts";
import { initialBytes, PtxError, type PtxModule } from "../../ptx/mod.ts";
import { type CallTable, refuse, unsimulated } from "../call.ts";
import { jitErrorOf, type JitOptions, readJitOptions } from "../jit_options.ts";
import type { Allocation, Context, LoadedModule } from "../objects.ts";
import { nativeView, writeWord } from "../out_parameters.ts";
import type { Simulator } from "../simulator.ts";
import { sharedBytes } from "./launch.ts";

// law sim/moduleCalls: sim/output, ptx/faults, sim/early_frees
/** The calls for modules. */
export function moduleCalls(simulator: Simulator): CallTable<"module"> {
  const loaded = (handle: bigint): LoadedModule => {
    const found = simulator.modules.get(handle);
    if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE);
    simulator.usable(found.context);
    return found;
  };
  const load = (out: bigint, image: bigint, options?: JitOptions): void => {
    const context = simulator.current();
    if (out === 0n || image === 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    simulator.flush(context);
    const program = readProgram(simulator, image, options);
    const variables = allocateVariables(simulator, context, program);
    const made = { handle: simulator.newHandle(), context, program, variables, functions: new Map(), isLoaded: true };
    simulator.modules.set(made.handle, made);
    writeWord(out, made.handle);
  };
  return {
    cuModuleLoadData: (out, image) => load(out, image),
    cuModuleLoadDataEx: (out, image, count, options, values) =>
      load(out, image, readJitOptions(count, options, values)),
    cuModuleUnload(handle) {
      const module = loaded(handle);
      simulator.refuseInCapture();
      simulator.waitBeforeFree([module.context]);
      simulator.flush(module.context);
      simulator.unload(module);
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
        simulator.functions.set(found.handle, found);
      }
      writeWord(out, found.handle);
    },
    cuModuleGetGlobal_v2(out, size, handle, name) {
      const variable = loaded(handle).variables.get(name === null ? "" : readField(name));
      if (variable === undefined) throw refuse(CUresult.CUDA_ERROR_NOT_FOUND);
      if (out !== 0n) writeWord(out, variable.address);
      if (size !== 0n) writeWord(size, BigInt(variable.bytes));
    },
  };
}

/**
 * Loads an image. Only PTX can be loaded: machine code is recognised by its first bytes, with which no text begins.
 */
function readProgram(simulator: Simulator, image: bigint, options?: JitOptions): PtxModule {
  const { loadPtx } = simulator.options;
  const first = nativeView(image, 4).getUint32(0, true);
  if (first === elf || first === fatBinary) throw unsimulated("machine code");
  const text = readCString(image);
  try {
    if (text.trim() === "") throw new PtxError(1, "the text is empty");
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

/** Magic numbers of a cubin and of a fat binary. */
const elf = 0x464c_457f;
const fatBinary = 0xba55_ed50;

/** Allocates and initialises the variables of a program. */
function allocateVariables(simulator: Simulator, context: Context, program: PtxModule): Map<string, Allocation> {
  const variables = new Map<string, Allocation>();
  for (const [name, { size }] of program.globals) {
    const variable = simulator.space.allocateDevice(context, size, "variable");
    if (variable === null) {
      for (const made of variables.values()) simulator.free(made);
      throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    }
    variables.set(name, variable);
  }
  const addressOf = (name: string): bigint => variables.get(name)?.address ?? 0n;
  for (const [name, variable] of program.globals) { // now every variable has an address
    simulator.space.write(addressOf(name), initialBytes(variable, addressOf));
  }
  return variables;
}
