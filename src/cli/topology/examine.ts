/**
 * Which GPUs there are, and what connects them: what the driver and the system report, nothing measured.
 *
 * @module
 */
import type { Cuda } from "../../cuda/mod.ts";
import type { CudaDevice } from "../../device/mod.ts";
import { type PciDistance, pciDistance, pciPlace } from "./pci.ts";

/** A GPU. What the system does not report is null. */
export interface TopologyDevice {
  readonly ordinal: number;
  readonly name: string;
  readonly uuid: string;
  readonly pciBusId: string;
  readonly computeCapability: string;
  /** In bytes. */
  readonly totalMemory: number;
  readonly numaNode: number | null;
  readonly cpus: string | null;
  readonly hostLink: string | null;
}

/**
 * What connects two GPUs. The driver does not name it: peers with native atomics on each other's memory are taken to be
 * connected by NVLink, because over PCIe GPUs have none.
 */
export type LinkKind = "NVLink" | "PCIe" | "none";

/** What a GPU can do with the memory of another one. */
export interface TopologyLink {
  readonly from: number;
  readonly to: number;
  readonly kind: LinkKind;
  /** Whether `from` can read and write the memory of `to`. If not, copies go through the host. */
  readonly access: boolean;
  readonly nativeAtomics: boolean;
  /** The driver's order of links by speed: 0 is the fastest. */
  readonly performanceRank: number;
  readonly pciDistance: PciDistance | null;
}

/** Everything that `topology` reports. */
export interface TopologyReport {
  readonly simulated: boolean;
  readonly driverVersion: string;
  readonly devices: readonly TopologyDevice[];
  /** From every device to every other one. */
  readonly links: readonly TopologyLink[];
}

/** Queries all devices. Makes no context, and changes nothing. @param sysRoot the root of sysfs */
export function examineTopology(cuda: Cuda, isSimulated: boolean, sysRoot = "/sys"): TopologyReport {
  const nowhere = { path: null, numaNode: null, cpus: null, hostLink: null };
  // A simulated GPU has a bus id that may be another device's on this machine.
  const places = cuda.devices.map(({ pciBusId }) => isSimulated ? nowhere : pciPlace(pciBusId, sysRoot));
  const placeOf = ({ ordinal }: CudaDevice) => places[ordinal] ?? nowhere;
  return {
    simulated: isSimulated,
    driverVersion: cuda.driverVersion.join("."),
    devices: cuda.devices.map((device): TopologyDevice => {
      const { numaNode, cpus, hostLink } = placeOf(device);
      const { ordinal, name, uuid, pciBusId, totalMemory } = device;
      const computeCapability = device.computeCapability.join(".");
      return { ordinal, name, uuid, pciBusId, computeCapability, totalMemory, numaNode, cpus, hostLink };
    }),
    links: cuda.devices.flatMap((from) =>
      cuda.devices.filter((to) => to !== from).map((to): TopologyLink => {
        const access = from.canAccessPeer(to);
        const nativeAtomics = from.peerAttribute("NATIVE_ATOMIC_SUPPORTED", to) !== 0;
        return {
          from: from.ordinal,
          to: to.ordinal,
          kind: !access ? "none" : nativeAtomics ? "NVLink" : "PCIe",
          access,
          nativeAtomics,
          performanceRank: from.peerAttribute("PERFORMANCE_RANK", to),
          pciDistance: pciDistance(placeOf(from), placeOf(to)),
        };
      })
    ),
  };
}
