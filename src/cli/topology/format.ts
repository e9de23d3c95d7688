/**
 * A topology as text, and as a picture.
 *
 * @module
 */
import { matricesToSvg } from "../matrix_svg.ts";
import { simulatedNotice } from "../open_cuda.ts";
import { showBytes } from "../../layout/mod.ts";
import { textTable } from "../table.ts";
import type { TopologyDevice, TopologyLink, TopologyReport } from "./examine.ts";

const legend = [
  "NVLink  peer access with native atomics, which only NVLink has: the driver does not name the link",
  "PCIe    peer access without native atomics",
  "host    no peer access: copies go through host memory",
  "rank N  the driver's order of links by speed, 0 first",
  "PCI     what the path over the bus crosses: a switch, the host bridge, a NUMA node, or the machine",
];

const title = ({ devices, driverVersion }: TopologyReport) =>
  `${devices.length} GPU${devices.length === 1 ? "" : "s"}, driver of CUDA ${driverVersion}`;

/** As text. */
export function formatTopology(report: TopologyReport): string {
  const { simulated, devices } = report;
  const rows = devices.map(({ ordinal, name, computeCapability, totalMemory, pciBusId, numaNode, hostLink, uuid }) => [
    `${ordinal}`,
    name,
    showBytes(totalMemory),
    computeCapability,
    pciBusId,
    numaNode === null ? "?" : `${numaNode}`,
    hostLink ?? "?",
    uuid,
  ]);
  const lines = [
    ...(simulated ? [simulatedNotice, ""] : []),
    title(report),
    "",
    ...textTable(["GPU", "name", "memory", "sm", "PCI", "NUMA", "to the host", "UUID"], rows, [2]),
  ];
  if (devices.length < 2) return [...lines, "", "No links: there is one GPU."].join("\n");
  const columns = devices.map(({ ordinal }) => `${ordinal}`);
  const links = devices.map((from) => [`${from.ordinal}`, ...devices.map((to) => words(linkOf(report, from, to)))]);
  return [
    ...lines,
    "",
    "Links, from the GPU of the row to that of the column",
    "",
    ...textTable(["", ...columns], links),
  ]
    .concat("", legend).join("\n");
}

/** As a picture: the darker a link, the faster. */
export function topologySvg(report: TopologyReport): string {
  const { devices, links, simulated } = report;
  const slowest = Math.max(...links.map(({ performanceRank }) => performanceRank), 0);
  const heat = (link: TopologyLink | undefined) => {
    if (link === undefined) return null;
    if (!link.access) return 0;
    return (link.kind === "NVLink" ? 1 : 0.5) - 0.4 * link.performanceRank / Math.max(1, slowest);
  };
  const cells = devices.map((from) =>
    devices.map((to) => {
      const link = linkOf(report, from, to);
      return { text: link === undefined ? "-" : link.access ? link.kind : "host", heat: heat(link) };
    })
  );
  const rows = devices.map(({ ordinal, name }) => `${ordinal} ${name}`);
  const columns = devices.map(({ ordinal }) => `${ordinal}`);
  const notes = [`Topology: ${title(report)}`, ...(simulated ? [simulatedNotice] : []), ...legend.slice(0, 3)];
  return matricesToSvg(notes, [{ title: "Links, row to column", rows, columns, cells }]);
}

function linkOf({ links }: TopologyReport, from: TopologyDevice, to: TopologyDevice): TopologyLink | undefined {
  return links.find((one) => one.from === from.ordinal && one.to === to.ordinal);
}

function words(link: TopologyLink | undefined): string {
  if (link === undefined) return "-";
  const { kind, performanceRank, pciDistance } = link;
  const over = pciDistance === null ? "" : `, PCI: ${pciDistance}`;
  return `${kind === "none" ? "host" : `${kind} rank ${performanceRank}`}${over}`;
}
