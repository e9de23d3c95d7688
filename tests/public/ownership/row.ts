/**
 * What a row of the ownership table promises, as runnable code.
 *
 * @module
 */
import { HostMemoryResource, MemoryBuffer, MemoryResource } from "../../../mod.ts";

/** An object that is created many times and dropped. */
export interface Dropped {
  /** Creates it, and drops it. */
  once(): unknown;
  /** How many of these objects have ended since. */
  ended(): number;
  /** Work that has to run before they can end. */
  last?(): unknown;
}

/** A call that takes or returns memory. */
export interface OwnershipRow {
  /** Why it cannot be run here; null if it can. */
  readonly missing?: string | null;
  /** Fails unless ownership before and after the call is as the page says, and ends by what the page names. */
  ends(): void | Promise<void>;
  /** For calls whose result, when dropped, has an effect or is lost. */
  drop?(stack: AsyncDisposableStack): Dropped | Promise<Dropped>;
}

/** Host memory that counts frees. */
export class CountedMemory extends MemoryResource {
  override readonly isDeviceAccessible = false;
  override readonly isHostAccessible = true;
  /** Number of buffers freed. */
  freed = 0;

  override allocate(bytes: number): MemoryBuffer {
    const memory = new HostMemoryResource().allocate(bytes);
    const free = () => {
      this.freed++;
      memory.close();
    };
    return MemoryBuffer.fromAllocation({ ptr: memory.ptr, size: bytes, device: null, stream: null, free });
  }
}

/** Counts objects that were collected. */
export class Collected {
  count = 0;
  readonly #registry = new FinalizationRegistry<null>(() => this.count++);

  /** Counts an object once it is collected. */
  watch<T extends object>(object: T): T {
    this.#registry.register(object, null);
    return object;
  }
}
