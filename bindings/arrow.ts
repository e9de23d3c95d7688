/**
 * Arrow's C Data, C Stream, C Device and asynchronous device stream interfaces: structs and constants (arrow/c/abi.h).
 *
 * The consumer allocates a base struct; the producer owns everything that it points to. `release` is NULL once the
 * struct was released or moved.
 *
 * @module
 */
import type { StructDescription } from "./abi.ts";

/** Type of an array and of its children. */
export const ArrowSchema = {
  format: "ptr", // const char *
  name: "ptr", // const char *
  metadata: "ptr", // const char *: int32 count, then per pair int32 length, key, int32 length, value
  flags: "i64", // ARROW_FLAG
  n_children: "i64",
  children: "ptr", // ArrowSchema **
  dictionary: "ptr", // ArrowSchema *
  release: "ptr", // void (*)(ArrowSchema *)
  private_data: "ptr", // void *
} as const satisfies StructDescription;

/** Values of an array and of its children. Lengths and `offset` count elements; `null_count` is -1 if unknown. */
export const ArrowArray = {
  length: "i64",
  null_count: "i64",
  offset: "i64",
  n_buffers: "i64",
  n_children: "i64",
  buffers: "ptr", // const void **
  children: "ptr", // ArrowArray **
  dictionary: "ptr", // ArrowArray *
  release: "ptr", // void (*)(ArrowArray *)
  private_data: "ptr", // void *
} as const satisfies StructDescription;

/** A stream of arrays of one schema. The functions return 0 or an errno. */
export const ArrowArrayStream = {
  get_schema: "ptr", // int (*)(ArrowArrayStream *, ArrowSchema *out)
  get_next: "ptr", // int (*)(ArrowArrayStream *, ArrowArray *out)
  get_last_error: "ptr", // const char *(*)(ArrowArrayStream *)
  release: "ptr", // void (*)(ArrowArrayStream *)
  private_data: "ptr", // void *
} as const satisfies StructDescription;

/** An array whose buffers are in device memory; everything else in it is in host memory. */
export const ArrowDeviceArray = {
  array: ArrowArray,
  device_id: "i64", // -1 for the CPU
  device_type: "i32", // ARROW_DEVICE
  sync_event: "ptr", // CUDA: pointer to a cudaEvent_t that the consumer must wait for; NULL: nothing to wait for
  reserved: ["i64", 3], // must be zero
} as const satisfies StructDescription;

/** A stream of device arrays of one schema and one device type. The functions return 0 or an errno. */
export const ArrowDeviceArrayStream = {
  device_type: "i32", // ARROW_DEVICE
  get_schema: "ptr", // int (*)(ArrowDeviceArrayStream *, ArrowSchema *out)
  get_next: "ptr", // int (*)(ArrowDeviceArrayStream *, ArrowDeviceArray *out)
  get_last_error: "ptr", // const char *(*)(ArrowDeviceArrayStream *)
  release: "ptr", // void (*)(ArrowDeviceArrayStream *)
  private_data: "ptr", // void *
} as const satisfies StructDescription;

/** An array yet to be delivered (experimental). */
export const ArrowAsyncTask = {
  extract_data: "ptr", // int (*)(ArrowAsyncTask *, ArrowDeviceArray *out)
  private_data: "ptr", // void *
} as const satisfies StructDescription;

/** The producer's side, where a consumer requests more arrays (experimental). */
export const ArrowAsyncProducer = {
  device_type: "i32", // ARROW_DEVICE
  request: "ptr", // void (*)(ArrowAsyncProducer *, int64_t n)
  cancel: "ptr", // void (*)(ArrowAsyncProducer *)
  additional_metadata: "ptr", // const char *, as ArrowSchema.metadata
  private_data: "ptr", // void *
} as const satisfies StructDescription;

/** The consumer's side, where a producer delivers a schema, tasks and errors (experimental). */
export const ArrowAsyncDeviceStreamHandler = {
  on_schema: "ptr", // int (*)(ArrowAsyncDeviceStreamHandler *, ArrowSchema *)
  on_next_task: "ptr", // int (*)(ArrowAsyncDeviceStreamHandler *, ArrowAsyncTask *, const char *metadata)
  on_error: "ptr", // void (*)(ArrowAsyncDeviceStreamHandler *, int code, const char *message, const char *metadata)
  release: "ptr", // void (*)(ArrowAsyncDeviceStreamHandler *)
  producer: "ptr", // ArrowAsyncProducer *
  private_data: "ptr", // void *
} as const satisfies StructDescription;

/** `ArrowSchema.flags`. */
export const ARROW_FLAG = { DICTIONARY_ORDERED: 1n, NULLABLE: 2n, MAP_KEYS_SORTED: 4n } as const;

/** `device_type` of the device structs: the numbers are DLPack's. */
export const ARROW_DEVICE = {
  CPU: 1,
  CUDA: 2,
  CUDA_HOST: 3,
  OPENCL: 4,
  VULKAN: 7,
  METAL: 8,
  VPI: 9,
  ROCM: 10,
  ROCM_HOST: 11,
  EXT_DEV: 12,
  CUDA_MANAGED: 13,
  ONEAPI: 14,
  WEBGPU: 15,
  HEXAGON: 16,
} as const;

/** Names of the Python capsules that carry these structs. */
export const ARROW_CAPSULE = {
  SCHEMA: "arrow_schema",
  ARRAY: "arrow_array",
  ARRAY_STREAM: "arrow_array_stream",
  DEVICE_ARRAY: "arrow_device_array",
  DEVICE_ARRAY_STREAM: "arrow_device_array_stream",
} as const;
