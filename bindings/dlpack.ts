/**
 * DLPack 1.3: the structs by which tensors are exchanged, and the constants in them (dlpack.h).
 *
 * `DLManagedTensor` is the struct from before version 1.0. It has no version and no flags, and some consumers still
 * request it. Minor versions only add constants and the exchange table: these layouts hold for every 1.x.
 *
 * @module
 */
import type { StructDescription } from "./abi.ts";

/** Major version of these tables. A tensor of another one must be released unread. */
export const DLPACK_MAJOR_VERSION = 1;

/** Minor version of these tables. */
export const DLPACK_MINOR_VERSION = 3;

/** A version, at the start of every struct that may change. */
export const DLPackVersion = {
  major: "u32",
  minor: "u32",
} as const satisfies StructDescription;

/** Where memory lives. `device_id` is 0 for host memory. */
export const DLDevice = {
  device_type: "i32", // DLDeviceType
  device_id: "i32",
} as const satisfies StructDescription;

/** Type of one element: `lanes` numbers of `bits` bits each. */
export const DLDataType = {
  code: "u8", // DLDataTypeCode
  bits: "u8",
  lanes: "u16",
} as const satisfies StructDescription;

/** A tensor that does not own its memory. The first element is at `data + byte_offset`; strides count elements. */
export const DLTensor = {
  data: "ptr", // void *
  device: DLDevice,
  ndim: "i32",
  dtype: DLDataType,
  shape: "ptr", // int64_t *, `ndim` of them
  strides: "ptr", // int64_t *, `ndim` of them; before 1.2 NULL meant row major and compact
  byte_offset: "u64",
} as const satisfies StructDescription;

/** A tensor and its owner, without a version (before DLPack 1.0). */
export const DLManagedTensor = {
  dl_tensor: DLTensor,
  manager_ctx: "ptr", // void *
  deleter: "ptr", // void (*)(DLManagedTensor *self), may be NULL
} as const satisfies StructDescription;

/** A tensor and its owner. Everything up to `flags` stays in place in later major versions. */
export const DLManagedTensorVersioned = {
  version: DLPackVersion,
  manager_ctx: "ptr", // void *
  deleter: "ptr", // void (*)(DLManagedTensorVersioned *self), may be NULL
  flags: "u64", // DLPACK_FLAG_BITMASK
  dl_tensor: DLTensor,
} as const satisfies StructDescription;

/** Head of the exchange table: its version, and the table for an older major version, or NULL. */
export const DLPackExchangeAPIHeader = {
  version: DLPackVersion,
  prev_api: "ptr", // DLPackExchangeAPIHeader *
} as const satisfies StructDescription;

/**
 * The functions behind a Python type's `__dlpack_c_exchange_api__`. None of them synchronises; each returns 0, or -1
 * with a Python exception set.
 */
export const DLPackExchangeAPI = {
  header: DLPackExchangeAPIHeader,
  // int (*)(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
  //   void (*SetError)(void *error_ctx, const char *kind, const char *message))
  managed_tensor_allocator: "ptr",
  // int (*)(void *py_object, DLManagedTensorVersioned **out)
  managed_tensor_from_py_object_no_sync: "ptr",
  // int (*)(DLManagedTensorVersioned *tensor, void **out_py_object)
  managed_tensor_to_py_object_no_sync: "ptr",
  // int (*)(void *py_object, DLTensor *out), may be NULL
  dltensor_from_py_object_no_sync: "ptr",
  // int (*)(DLDeviceType device_type, int32_t device_id, void **out_current_stream)
  current_work_stream: "ptr",
} as const satisfies StructDescription;

/** `DLDevice.device_type`. */
export const DLDeviceType = {
  kDLCPU: 1,
  kDLCUDA: 2,
  kDLCUDAHost: 3,
  kDLOpenCL: 4,
  kDLVulkan: 7,
  kDLMetal: 8,
  kDLVPI: 9,
  kDLROCM: 10,
  kDLROCMHost: 11,
  kDLExtDev: 12,
  kDLCUDAManaged: 13,
  kDLOneAPI: 14,
  kDLWebGPU: 15,
  kDLHexagon: 16,
  kDLMAIA: 17,
  kDLTrn: 18,
} as const;

/** `DLDataType.code`. */
export const DLDataTypeCode = {
  kDLInt: 0,
  kDLUInt: 1,
  kDLFloat: 2,
  kDLOpaqueHandle: 3,
  kDLBfloat: 4,
  kDLComplex: 5,
  kDLBool: 6,
  kDLFloat8_e3m4: 7,
  kDLFloat8_e4m3: 8,
  kDLFloat8_e4m3b11fnuz: 9,
  kDLFloat8_e4m3fn: 10,
  kDLFloat8_e4m3fnuz: 11,
  kDLFloat8_e5m2: 12,
  kDLFloat8_e5m2fnuz: 13,
  kDLFloat8_e8m0fnu: 14,
  kDLFloat6_e2m3fn: 15,
  kDLFloat6_e3m2fn: 16,
  kDLFloat4_e2m1fn: 17,
} as const;

/** `DLManagedTensorVersioned.flags`. */
export const DLPACK_FLAG_BITMASK = { READ_ONLY: 1n, IS_COPIED: 2n, IS_SUBBYTE_TYPE_PADDED: 4n } as const;

/** Names of the Python capsules that carry these structs; a consumer renames a capsule when taking it. */
export const DLPACK_CAPSULE = {
  UNVERSIONED: "dltensor",
  UNVERSIONED_USED: "used_dltensor",
  VERSIONED: "dltensor_versioned",
  VERSIONED_USED: "used_dltensor_versioned",
  EXCHANGE_API: "dlpack_exchange_api",
} as const;
