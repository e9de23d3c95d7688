/**
 * Capsules from which the pointer is taken.
 *
 * @module
 */
import { NativeArena, readCString } from "../ffi/mod.ts";
import type { CapsulePointer } from "../cdata/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import type { Handle } from "./handle.ts";

const names = new Map<string, bigint>();

/** The address of a capsule's name. The capsule keeps the address, so names are never freed. */
export function capsuleName(name: string): bigint {
  // getOrInsertComputed takes Bun 10 ns longer, here and in Interpreter.helper.
  return names.get(name) ?? cacheName(name);
}

function cacheName(name: string): bigint {
  const address = new NativeArena().cString(name);
  names.set(name, address);
  return address;
}

// law python/pointerOf: vortex/core/bridge
/**
 * The pointer of a capsule, which the caller can take: the capsule then no longer frees or hands it out.
 *
 * @throws {ExchangeError} if it is not a capsule of that name, or its pointer was taken before
 */
export function pointerOf(handle: Handle, name: string): CapsulePointer {
  const { python } = handle;
  return python.locked(() => {
    const { object } = handle;
    const { capsules, errors } = python.api;
    const nameAt = capsules.PyCapsule_GetName(object);
    if (nameAt === 0n) errors.PyErr_Clear(); // not a capsule: a pending exception would make the next call fail
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
