/**
 * The programs that each device has used most recently, under a key of everything that their code depends on.
 *
 * @module
 */
import type { CudaDevice } from "../device.ts";
import { isCapturing } from "../graph/active_captures.ts";
import { PerDevice } from "../per_device.ts";
import { isBlockedByCapture } from "../relaxed_capture.ts";
import { waitForDevice } from "../wait_for_device.ts";

/** How many programs are kept for each device. */
const maxPrograms = 256;

/** What was loaded on a device, such as a program. */
interface Loaded {
  close(): void;
}

// law device/ProgramCache: device/kernel/program_cache
/** Programs, or what is made from them, loaded on first use and closed with their device. */
export class ProgramCache<T extends Loaded> {
  /** By key, the least recently used one first. */
  readonly #caches = new PerDevice<Map<string, T>>(() => new Map(), (programs, device) => {
    if (programs.size > 0) unload(device, [...programs.values()]);
  });

  /** What a device has under a key; loads it if there is nothing, and then closes what was not used for the longest. */
  get(device: CudaDevice, key: string, load: () => T): T {
    const programs = this.#caches.of(device);
    const program = programs.get(key) ?? load();
    programs.delete(key); // so that it comes last
    programs.set(key, program);
    // While a stream is captured the host may not wait: there are more for a while.
    if (programs.size > maxPrograms && !isCapturing(device.driver) && !isBlockedByCapture(device)) {
      const oldest = [...programs].slice(0, programs.size - maxPrograms);
      for (const [name] of oldest) programs.delete(name);
      unload(device, oldest.map(([, one]) => one));
    }
    return program;
  }
}

/** Closes programs once they do not run. */
function unload(device: CudaDevice, programs: readonly Loaded[]): void {
  waitForDevice(device);
  for (const program of programs) program.close();
}
