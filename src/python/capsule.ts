/**
 * Capsules whose pointer is taken out.
 *
 * @module
 */
import { NativeArena, readCString } from "../ffi/mod.ts";
import type { CapsulePointer } from "../cdata/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import type { Handle } from "./handle.ts";

const names = new Map<string, bigint>();

/** The address of a capsule's name. A capsule keeps it, so the names are never freed. */
export function capsuleName(name: string): bigint {
  return names.get(name) ?? keepName(name); // getOrInsertComputed takes Bun 10 ns longer, here and in Interpreter.helper
}

function keepName(name: string): bigint {
  const address = new NativeArena().cString(name);
  names.set(name, address);
  return address;
}

// law python/pointerOf: vortex/core/bridge
/**
 * The pointer of a capsule, which the caller can take: the capsule then neither frees nor gives it any more.
 *
 * @throws {ExchangeError} if it is no capsule of that name, or its pointer was taken before
 */
export function pointerOf(handle: Handle, name: string): CapsulePointer {
  const { python } = handle;
  return python.locked(() => {
    const { object } = handle;
    const { capsules, errors } = python.api;
    const nameAt = capsules.PyCapsule_GetName(object);
    if (nameAt === 0n) errors.PyErr_Clear(); // no capsule: a pending exception would make the next call fail
    const found = nameAt === 0n ? "" : readCString(nameAt);
    if (found === `used_${name}`) {
      throw new ExchangeError(`Cannot take ${name} out of its capsule twice: ask the producer for another one`);
    }
    if (found !== name) {
      throw new ExchangeError(`Cannot take ${name} out of ${python.show(object)}: expected a capsule of that name`);
    }
    const pointer = capsules.PyCapsule_GetPointer(object, nameAt);
    const take = () =>
      python.locked(() => {
        capsules.PyCapsule_SetDestructor(object, 0n);
        capsules.PyCapsule_SetName(object, capsuleName(`used_${name}`));
      });
    return { pointer, take };
  });
}
