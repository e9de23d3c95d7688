/**
 * Requests release callbacks where the system refuses executable memory: `refused_child.ts seccomp|mdwe|nothing`.
 * Prints their kind and what a release did, or `"unsupported"` if the kernel does not support this kind of refusal.
 */
import process from "node:process";
import { ArrowArray } from "../../bindings/arrow.ts";
import { DLManagedTensor } from "../../bindings/dlpack.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { releaseThunks } from "../../src/native/release_thunk.ts";
import { refuseExecutableMemory } from "../support/refused_memory.ts";

const port = ffiPort();
using arena = new NativeArena();
function report(): object {
  const { kind, address } = releaseThunks();
  const counter = arena.out("i32");
  const release = { args: ["ptr"], returns: "void" } as const;
  const array = arena.struct(ArrowArray);
  array.private_data = counter.$address;
  array.release = address.ArrowArray;
  port.functionAt(array.release, release)(array.$address);
  const tensor = arena.struct(DLManagedTensor);
  tensor.manager_ctx = counter.$address;
  tensor.deleter = address.DLManagedTensor;
  port.functionAt(tensor.deleter, release)(tensor.$address);
  return { kind, released: counter.value, cleared: array.release === 0n, deleterKept: tensor.deleter !== 0n };
}

const how = process.argv[2];
const isReady = how === "seccomp" || how === "mdwe" ? refuseExecutableMemory(how) : true;
console.log(JSON.stringify(isReady ? report() : "unsupported"));
