/**
 * What is measured, under nvbandwidth's names where it measures the same.
 *
 * @module
 */
import type { CudaStream } from "../../device/mod.ts";
import type { MemoryBuffer } from "../../memory/mod.ts";
import type { Bench, Place, Seat } from "./bench.ts";

/** Copies in one direction, on a stream. */
export interface Lane {
  readonly stream: CudaStream;
  readonly to: MemoryBuffer;
  /** The byte that fills `to` afterwards. */
  readonly mark: number;
  /** Enqueues one copy of the whole buffer. */
  copy(): void;
}

/** A row or a table of bandwidths. */
export interface Measurement {
  readonly name: string;
  /** What it measures, in terms of `row` and `column`. */
  readonly title: string;
  /** The rows: the host alone, the devices, or one row of each device with itself. */
  readonly rows: "host" | "local" | "devices";
  /** The copies of a cell, which run simultaneously; null if none are possible. */
  lanes(bench: Bench, row: Seat, column: Seat): readonly Lane[] | null;
}

type By = "engine" | "kernel";

/** A copy, on a stream of the device whose engines or multiprocessors do it. */
function lane(seat: Seat, to: Place, from: Place, by: By, stream = seat.stream): Lane {
  const [destination, { source, mark }] = [to.destination, from];
  const copy = by === "engine"
    ? () => destination.copyFrom(source, { stream })
    : () => seat.copyByKernel(stream, destination, source);
  return { stream, to: destination, mark, copy };
}

const both = "in both directions at once, the sum";

/** Everything that can be measured, in the order of the report. */
export const measurements: readonly Measurement[] = [
  {
    name: "host_to_device_memcpy_ce",
    title: "page-locked host memory -> GPU, by copy engine",
    rows: "host",
    lanes: ({ pinned }, _, gpu) => [lane(gpu, gpu, pinned, "engine")],
  },
  {
    name: "device_to_host_memcpy_ce",
    title: "GPU -> page-locked host memory, by copy engine",
    rows: "host",
    lanes: ({ pinned }, _, gpu) => [lane(gpu, pinned, gpu, "engine")],
  },
  {
    name: "host_device_bidirectional_memcpy_ce",
    title: `page-locked host memory <-> GPU, by copy engines, ${both}`,
    rows: "host",
    lanes: ({ pinned }, _, gpu) => [
      lane(gpu, gpu, pinned, "engine"),
      lane(gpu, pinned, gpu, "engine", gpu.second),
    ],
  },
  {
    name: "host_to_device_memcpy_pageable",
    title: "ordinary host memory -> GPU, staged by Causeway",
    rows: "host",
    lanes: ({ pageable }, _, gpu) => [lane(gpu, gpu, pageable, "engine")],
  },
  {
    name: "device_to_host_memcpy_pageable",
    title: "GPU -> ordinary host memory, staged by Causeway",
    rows: "host",
    lanes: ({ pageable }, _, gpu) => [lane(gpu, pageable, gpu, "engine")],
  },
  {
    name: "host_to_device_memcpy_sm",
    title: "page-locked host memory -> GPU, by a kernel",
    rows: "host",
    lanes: ({ pinned }, _, gpu) => [lane(gpu, gpu, pinned, "kernel")],
  },
  {
    name: "device_to_host_memcpy_sm",
    title: "GPU -> page-locked host memory, by a kernel",
    rows: "host",
    lanes: ({ pinned }, _, gpu) => [lane(gpu, pinned, gpu, "kernel")],
  },
  {
    name: "device_local_copy",
    title: "within a GPU, by copy engine: each byte is read and written, and counted once",
    rows: "local",
    lanes: (_, __, gpu) => [lane(gpu, gpu, gpu, "engine")],
  },
  {
    name: "device_local_copy_sm",
    title: "within a GPU, by a kernel: each byte is read and written, and counted once",
    rows: "local",
    lanes: (_, __, gpu) => [lane(gpu, gpu, gpu, "kernel")],
  },
  {
    name: "device_to_device_memcpy_read_ce",
    title: "GPU(row) <- GPU(column), by copy engine of the row",
    rows: "devices",
    lanes: (_, row, column) => [lane(row, row, column, "engine")],
  },
  {
    name: "device_to_device_memcpy_write_ce",
    title: "GPU(row) -> GPU(column), by copy engine of the row",
    rows: "devices",
    lanes: (_, row, column) => [lane(row, column, row, "engine")],
  },
  {
    name: "device_to_device_bidirectional_memcpy_read_ce",
    title: `GPU(row) <-> GPU(column), each reading by copy engine, ${both}`,
    rows: "devices",
    lanes: (_, row, column) => [lane(row, row, column, "engine"), lane(column, column, row, "engine")],
  },
  {
    name: "device_to_device_bidirectional_memcpy_write_ce",
    title: `GPU(row) <-> GPU(column), each writing by copy engine, ${both}`,
    rows: "devices",
    lanes: (_, row, column) => [lane(row, column, row, "engine"), lane(column, row, column, "engine")],
  },
  {
    name: "device_to_device_memcpy_read_sm",
    title: "GPU(row) <- GPU(column), by a kernel of the row",
    rows: "devices",
    lanes: (_, row, column) => row.reaches(column) ? [lane(row, row, column, "kernel")] : null,
  },
  {
    name: "device_to_device_memcpy_write_sm",
    title: "GPU(row) -> GPU(column), by a kernel of the row",
    rows: "devices",
    lanes: (_, row, column) => row.reaches(column) ? [lane(row, column, row, "kernel")] : null,
  },
];
