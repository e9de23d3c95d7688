/**
 * What a row of the table of owners promises, as something to run.
 *
 * @module
 */
import { HostMemoryResource, MemoryBuffer, MemoryResource } from "../../../mod.ts";

/** Something that is made many times and dropped. */
export interface Dropped {
  /** Makes it, and lets go of it. */
  once(): unknown;
  /** How many have ended since. */
  ended(): number;
  /** What has to happen before they can. */
  last?(): unknown;
}

/** A call that takes or gives memory. */
export interface OwnershipRow {
  /** Why it cannot be tried here; null if it can. */
  readonly missing?: string | null;
  /** Fails unless the owners before and after the call are as the page says, and what it names ends the matter. */
  ends(): void | Promise<void>;
  /** For calls whose result can be dropped to some effect, or to its loss. */
  drop?(stack: AsyncDisposableStack): Dropped | Promise<Dropped>;
}

/** Host memory that counts how often some of it was freed. */
export class CountedMemory extends MemoryResource {
  override readonly isDeviceAccessible = false;
  override readonly isHostAccessible = true;
  /** Buffers that were freed. */
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

  /** Has an object counted. */
  watch<T extends object>(object: T): T {
    this.#registry.register(object, null);
    return object;
  }
}
