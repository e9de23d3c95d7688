/**
 * Where devices sit on the PCI bus, as Linux reports under /sys: which bridges and which memory are near.
 *
 * @module
 */
import { readFileSync, realpathSync } from "node:fs";

/** A device's place. What the system does not report (in most virtual machines and containers) is null. */
export interface PciPlace {
  /** The bridges down to the device: `pci0000:16/0000:16:01.0/0000:17:00.0`. */
  readonly path: string | null;
  readonly numaNode: number | null;
  /** The processors near it: `0-31,64-95`. */
  readonly cpus: string | null;
  /** Its fastest possible link to the host: `32.0 GT/s x16`. */
  readonly hostLink: string | null;
}

/** Looks up a device. @param busId as the driver reports it @param root the root of sysfs */
export function pciPlace(busId: string, root = "/sys"): PciPlace {
  const folder = `${root}/bus/pci/devices/${busId.toLowerCase()}`;
  const read = (name: string): string | null => {
    try {
      return readFileSync(`${folder}/${name}`, "utf8").trim() || null;
    } catch {
      return null; // no such file, or not readable
    }
  };
  const node = Number(read("numa_node") ?? -1);
  const [speed, width] = [read("max_link_speed"), read("max_link_width")];
  return {
    path: pathOf(folder),
    numaNode: Number.isInteger(node) && node >= 0 ? node : null, // -1: the machine has only one, or does not say
    cpus: read("local_cpulist"),
    hostLink: speed === null || width === null || /unknown/i.test(speed) || width === "0"
      ? null
      : `${speed.replace(/ PCIe$/, "")} x${width}`,
  };
}

function pathOf(folder: string): string | null {
  try {
    const path = realpathSync(folder);
    return path.includes("/devices/") ? path.slice(path.indexOf("/devices/") + "/devices/".length) : null;
  } catch {
    return null;
  }
}

/** What the shortest path between two devices over PCI crosses. */
export type PciDistance = "switch" | "host bridge" | "NUMA node" | "machine";

/** How far apart two devices are over PCI; null if the system does not say. */
export function pciDistance(from: PciPlace, to: PciPlace): PciDistance | null {
  if (from.path === null || to.path === null) return null;
  const [a, b] = [from.path.split("/"), to.path.split("/")];
  if (a[0] === b[0]) return a.length > 2 && a[1] === b[1] ? "switch" : "host bridge";
  if (from.numaNode === null || to.numaNode === null) return null;
  return from.numaNode === to.numaNode ? "NUMA node" : "machine";
}
