/**
 * The CUDA driver, structs and constants (cuda.h). The functions are in `cuda.ts`.
 *
 * Layouts and values are the same from CUDA 11.8 to 13.5; newer constants are unknown to older drivers, which return
 * CUDA_ERROR_INVALID_VALUE. An object of constants is named by the prefix that its members have in C. Constants that go
 * into a 64-bit field are bigint, as the field itself is.
 *
 * @module
 */
import type { StructDescription } from "./abi.ts";

/** Identity of a device. */
export const CUuuid = {
  bytes: ["u8", 16],
} as const satisfies StructDescription;

/** Handle of a memory allocation, for another process. */
export const CUipcMemHandle = {
  reserved: ["u8", 64],
} as const satisfies StructDescription;

/** Handle of an event, for another process. */
export const CUipcEventHandle = {
  reserved: ["u8", 64],
} as const satisfies StructDescription;

/** Where memory lives. */
export const CUmemLocation = {
  type: "i32", // CU_MEM_LOCATION_TYPE
  id: "i32", // device ordinal or NUMA node
} as const satisfies StructDescription;

/** Which location may access memory, and how. */
export const CUmemAccessDesc = {
  location: CUmemLocation,
  flags: "i32", // CU_MEM_ACCESS_FLAGS_PROT
} as const satisfies StructDescription;

/** A memory pool to be created. Fields that older headers lack were reserved there, and had to be zero. */
export const CUmemPoolProps = {
  allocType: "i32", // CU_MEM_ALLOCATION_TYPE
  handleTypes: "i32", // CU_MEM_HANDLE_TYPE
  location: CUmemLocation,
  win32SecurityAttributes: "ptr", // void *
  maxSize: "size", // bytes, 0: no limit but the system's; since CUDA 12
  usage: "u16", // since CUDA 12
  gpuDirectRDMACapable: "u8", // since CUDA 13
  reserved: ["u8", 53],
} as const satisfies StructDescription;

/** An allocation from a shared pool, for another process. */
export const CUmemPoolPtrExportData = {
  reserved: ["u8", 64],
} as const satisfies StructDescription;

/** A rectangle to copy. Pitches, widths and X in bytes, heights and Y in rows. */
export const CUDA_MEMCPY2D_v2 = {
  srcXInBytes: "size",
  srcY: "size",
  srcMemoryType: "i32", // CU_MEMORYTYPE
  srcHost: "ptr", // const void *
  srcDevice: "ptr", // CUdeviceptr
  srcArray: "ptr", // CUarray
  srcPitch: "size",
  dstXInBytes: "size",
  dstY: "size",
  dstMemoryType: "i32", // CU_MEMORYTYPE
  dstHost: "ptr", // void *
  dstDevice: "ptr", // CUdeviceptr
  dstArray: "ptr", // CUarray
  dstPitch: "size",
  WidthInBytes: "size",
  Height: "size",
} as const satisfies StructDescription;

/** A box to copy. Pitches, widths and X in bytes, heights and Y in rows, depth and Z in slices. */
export const CUDA_MEMCPY3D_v2 = {
  srcXInBytes: "size",
  srcY: "size",
  srcZ: "size",
  srcLOD: "size",
  srcMemoryType: "i32", // CU_MEMORYTYPE
  srcHost: "ptr", // const void *
  srcDevice: "ptr", // CUdeviceptr
  srcArray: "ptr", // CUarray
  reserved0: "ptr", // must be NULL
  srcPitch: "size",
  srcHeight: "size",
  dstXInBytes: "size",
  dstY: "size",
  dstZ: "size",
  dstLOD: "size",
  dstMemoryType: "i32", // CU_MEMORYTYPE
  dstHost: "ptr", // void *
  dstDevice: "ptr", // CUdeviceptr
  dstArray: "ptr", // CUarray
  reserved1: "ptr", // must be NULL
  dstPitch: "size",
  dstHeight: "size",
  WidthInBytes: "size",
  Height: "size",
  Depth: "size",
} as const satisfies StructDescription;

/** A box to copy between two contexts. */
export const CUDA_MEMCPY3D_PEER = {
  srcXInBytes: "size",
  srcY: "size",
  srcZ: "size",
  srcLOD: "size",
  srcMemoryType: "i32", // CU_MEMORYTYPE
  srcHost: "ptr", // const void *
  srcDevice: "ptr", // CUdeviceptr
  srcArray: "ptr", // CUarray
  srcContext: "ptr", // CUcontext
  srcPitch: "size",
  srcHeight: "size",
  dstXInBytes: "size",
  dstY: "size",
  dstZ: "size",
  dstLOD: "size",
  dstMemoryType: "i32", // CU_MEMORYTYPE
  dstHost: "ptr", // void *
  dstDevice: "ptr", // CUdeviceptr
  dstArray: "ptr", // CUarray
  dstContext: "ptr", // CUcontext
  dstPitch: "size",
  dstHeight: "size",
  WidthInBytes: "size",
  Height: "size",
  Depth: "size",
} as const satisfies StructDescription;

/** One attribute of a launch. */
export const CUlaunchAttribute = {
  id: "i32", // CU_LAUNCH_ATTRIBUTE
  pad: ["u8", 4],
  // A union of 64 bytes. `id` determines the member: a cluster's dimensions are three u32 at its start, most others one
  // i32.
  value: ["u64", 8],
} as const satisfies StructDescription;

/** A launch: cuLaunchKernelEx(). */
export const CUlaunchConfig = {
  gridDimX: "u32",
  gridDimY: "u32",
  gridDimZ: "u32",
  blockDimX: "u32",
  blockDimY: "u32",
  blockDimZ: "u32",
  sharedMemBytes: "u32",
  hStream: "ptr", // CUstream
  attrs: "ptr", // CUlaunchAttribute *
  numAttrs: "u32",
} as const satisfies StructDescription;

/** The host, in place of a device ordinal. */
export const CU_DEVICE_CPU = -1;

/** No device. */
export const CU_DEVICE_INVALID = -2;

/** Result of every function. cuGetErrorName() also names codes newer than this list. */
export const CUresult = {
  CUDA_SUCCESS: 0,
  CUDA_ERROR_INVALID_VALUE: 1,
  CUDA_ERROR_OUT_OF_MEMORY: 2,
  CUDA_ERROR_NOT_INITIALIZED: 3,
  CUDA_ERROR_DEINITIALIZED: 4,
  CUDA_ERROR_PROFILER_DISABLED: 5,
  CUDA_ERROR_PROFILER_NOT_INITIALIZED: 6,
  CUDA_ERROR_PROFILER_ALREADY_STARTED: 7,
  CUDA_ERROR_PROFILER_ALREADY_STOPPED: 8,
  CUDA_ERROR_STUB_LIBRARY: 34,
  CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER: 36,
  CUDA_ERROR_DEVICE_UNAVAILABLE: 46,
  CUDA_ERROR_MULTICAST_RESOURCE_FULL: 47,
  CUDA_ERROR_NO_DEVICE: 100,
  CUDA_ERROR_INVALID_DEVICE: 101,
  CUDA_ERROR_DEVICE_NOT_LICENSED: 102,
  CUDA_ERROR_INVALID_IMAGE: 200,
  CUDA_ERROR_INVALID_CONTEXT: 201,
  CUDA_ERROR_CONTEXT_ALREADY_CURRENT: 202,
  CUDA_ERROR_MAP_FAILED: 205,
  CUDA_ERROR_UNMAP_FAILED: 206,
  CUDA_ERROR_ARRAY_IS_MAPPED: 207,
  CUDA_ERROR_ALREADY_MAPPED: 208,
  CUDA_ERROR_NO_BINARY_FOR_GPU: 209,
  CUDA_ERROR_ALREADY_ACQUIRED: 210,
  CUDA_ERROR_NOT_MAPPED: 211,
  CUDA_ERROR_NOT_MAPPED_AS_ARRAY: 212,
  CUDA_ERROR_NOT_MAPPED_AS_POINTER: 213,
  CUDA_ERROR_ECC_UNCORRECTABLE: 214,
  CUDA_ERROR_UNSUPPORTED_LIMIT: 215,
  CUDA_ERROR_CONTEXT_ALREADY_IN_USE: 216,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: 217,
  CUDA_ERROR_INVALID_PTX: 218,
  CUDA_ERROR_INVALID_GRAPHICS_CONTEXT: 219,
  CUDA_ERROR_NVLINK_UNCORRECTABLE: 220,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND: 221,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION: 222,
  CUDA_ERROR_JIT_COMPILATION_DISABLED: 223,
  CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY: 224,
  CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC: 225,
  CUDA_ERROR_CONTAINED: 226,
  CUDA_ERROR_INSUFFICIENT_LOADER_VERSION: 227,
  CUDA_ERROR_INVALID_SOURCE: 300,
  CUDA_ERROR_FILE_NOT_FOUND: 301,
  CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: 302,
  CUDA_ERROR_SHARED_OBJECT_INIT_FAILED: 303,
  CUDA_ERROR_OPERATING_SYSTEM: 304,
  CUDA_ERROR_INVALID_HANDLE: 400,
  CUDA_ERROR_ILLEGAL_STATE: 401,
  CUDA_ERROR_LOSSY_QUERY: 402,
  CUDA_ERROR_NOT_FOUND: 500,
  CUDA_ERROR_NOT_READY: 600,
  CUDA_ERROR_ILLEGAL_ADDRESS: 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: 701,
  CUDA_ERROR_LAUNCH_TIMEOUT: 702,
  CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING: 703,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED: 704,
  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED: 705,
  CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE: 708,
  CUDA_ERROR_CONTEXT_IS_DESTROYED: 709,
  CUDA_ERROR_ASSERT: 710,
  CUDA_ERROR_TOO_MANY_PEERS: 711,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: 713,
  CUDA_ERROR_HARDWARE_STACK_ERROR: 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION: 715,
  CUDA_ERROR_MISALIGNED_ADDRESS: 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE: 717,
  CUDA_ERROR_INVALID_PC: 718,
  CUDA_ERROR_LAUNCH_FAILED: 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: 720,
  CUDA_ERROR_TENSOR_MEMORY_LEAK: 721,
  CUDA_ERROR_NOT_PERMITTED: 800,
  CUDA_ERROR_NOT_SUPPORTED: 801,
  CUDA_ERROR_SYSTEM_NOT_READY: 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: 803,
  CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: 804,
  CUDA_ERROR_MPS_CONNECTION_FAILED: 805,
  CUDA_ERROR_MPS_RPC_FAILURE: 806,
  CUDA_ERROR_MPS_SERVER_NOT_READY: 807,
  CUDA_ERROR_MPS_MAX_CLIENTS_REACHED: 808,
  CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED: 809,
  CUDA_ERROR_MPS_CLIENT_TERMINATED: 810,
  CUDA_ERROR_CDP_NOT_SUPPORTED: 811,
  CUDA_ERROR_CDP_VERSION_MISMATCH: 812,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: 901,
  CUDA_ERROR_STREAM_CAPTURE_MERGE: 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED: 904,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION: 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: 906,
  CUDA_ERROR_CAPTURED_EVENT: 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: 908,
  CUDA_ERROR_TIMEOUT: 909,
  CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: 910,
  CUDA_ERROR_EXTERNAL_DEVICE: 911,
  CUDA_ERROR_INVALID_CLUSTER_SIZE: 912,
  CUDA_ERROR_FUNCTION_NOT_LOADED: 913,
  CUDA_ERROR_INVALID_RESOURCE_TYPE: 914,
  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: 915,
  CUDA_ERROR_KEY_ROTATION: 916,
  CUDA_ERROR_STREAM_DETACHED: 917,
  CUDA_ERROR_GRAPH_RECAPTURE_FAILURE: 918,
  CUDA_ERROR_FABRIC_NOT_READY: 919,
  CUDA_ERROR_UNKNOWN: 999,
} as const;

/** `attrib` of cuDeviceGetAttribute(), without the limits of textures and surfaces and the graphics interfaces. */
export const CU_DEVICE_ATTRIBUTE = {
  MAX_THREADS_PER_BLOCK: 1,
  MAX_BLOCK_DIM_X: 2,
  MAX_BLOCK_DIM_Y: 3,
  MAX_BLOCK_DIM_Z: 4,
  MAX_GRID_DIM_X: 5,
  MAX_GRID_DIM_Y: 6,
  MAX_GRID_DIM_Z: 7,
  MAX_SHARED_MEMORY_PER_BLOCK: 8,
  TOTAL_CONSTANT_MEMORY: 9,
  WARP_SIZE: 10,
  MAX_PITCH: 11,
  MAX_REGISTERS_PER_BLOCK: 12,
  CLOCK_RATE: 13,
  MULTIPROCESSOR_COUNT: 16,
  KERNEL_EXEC_TIMEOUT: 17,
  INTEGRATED: 18,
  CAN_MAP_HOST_MEMORY: 19,
  COMPUTE_MODE: 20,
  CONCURRENT_KERNELS: 31,
  ECC_ENABLED: 32,
  PCI_BUS_ID: 33,
  PCI_DEVICE_ID: 34,
  MEMORY_CLOCK_RATE: 36,
  GLOBAL_MEMORY_BUS_WIDTH: 37,
  L2_CACHE_SIZE: 38,
  MAX_THREADS_PER_MULTIPROCESSOR: 39,
  ASYNC_ENGINE_COUNT: 40,
  UNIFIED_ADDRESSING: 41,
  PCI_DOMAIN_ID: 50,
  COMPUTE_CAPABILITY_MAJOR: 75,
  COMPUTE_CAPABILITY_MINOR: 76,
  STREAM_PRIORITIES_SUPPORTED: 78,
  GLOBAL_L1_CACHE_SUPPORTED: 79,
  LOCAL_L1_CACHE_SUPPORTED: 80,
  MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: 81,
  MAX_REGISTERS_PER_MULTIPROCESSOR: 82,
  MANAGED_MEMORY: 83,
  MULTI_GPU_BOARD: 84,
  MULTI_GPU_BOARD_GROUP_ID: 85,
  HOST_NATIVE_ATOMIC_SUPPORTED: 86,
  SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: 87,
  PAGEABLE_MEMORY_ACCESS: 88,
  CONCURRENT_MANAGED_ACCESS: 89,
  COMPUTE_PREEMPTION_SUPPORTED: 90,
  CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: 91,
  COOPERATIVE_LAUNCH: 95,
  COOPERATIVE_MULTI_DEVICE_LAUNCH: 96,
  MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: 97,
  CAN_FLUSH_REMOTE_WRITES: 98,
  HOST_REGISTER_SUPPORTED: 99,
  PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES: 100,
  DIRECT_MANAGED_MEM_ACCESS_FROM_HOST: 101,
  VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: 102,
  HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: 103,
  MAX_BLOCKS_PER_MULTIPROCESSOR: 106,
  GENERIC_COMPRESSION_SUPPORTED: 107,
  MAX_PERSISTING_L2_CACHE_SIZE: 108,
  MAX_ACCESS_POLICY_WINDOW_SIZE: 109,
  GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED: 110,
  RESERVED_SHARED_MEMORY_PER_BLOCK: 111,
  READ_ONLY_HOST_REGISTER_SUPPORTED: 113,
  MEMORY_POOLS_SUPPORTED: 115,
  GPU_DIRECT_RDMA_SUPPORTED: 116,
  GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS: 117,
  GPU_DIRECT_RDMA_WRITES_ORDERING: 118,
  MEMPOOL_SUPPORTED_HANDLE_TYPES: 119,
  CLUSTER_LAUNCH: 120,
  DMA_BUF_SUPPORTED: 124,
  IPC_EVENT_SUPPORTED: 125,
  MEM_SYNC_DOMAIN_COUNT: 126,
  TENSOR_MAP_ACCESS_SUPPORTED: 127,
  HANDLE_TYPE_FABRIC_SUPPORTED: 128,
  UNIFIED_FUNCTION_POINTERS: 129,
  NUMA_CONFIG: 130,
  NUMA_ID: 131,
  MULTICAST_SUPPORTED: 132,
  MPS_ENABLED: 133,
  HOST_NUMA_ID: 134,
  GPU_PCI_DEVICE_ID: 139,
  GPU_PCI_SUBSYSTEM_ID: 140,
  HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: 141,
  HOST_NUMA_MEMORY_POOLS_SUPPORTED: 142,
  HOST_NUMA_MULTINODE_IPC_SUPPORTED: 143,
  HOST_MEMORY_POOLS_SUPPORTED: 144,
  HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: 145,
  HOST_ALLOC_DMA_BUF_SUPPORTED: 146,
  ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED: 147,
  ATOMIC_REDUCTION_SUPPORTED: 148,
} as const;

/** `attrib` of cuDeviceGetP2PAttribute(). */
export const CU_DEVICE_P2P_ATTRIBUTE = {
  PERFORMANCE_RANK: 1,
  ACCESS_SUPPORTED: 2,
  NATIVE_ATOMIC_SUPPORTED: 3,
  ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: 5,
} as const;

/** Value of CU_DEVICE_ATTRIBUTE.COMPUTE_MODE. */
export const CU_COMPUTEMODE = { DEFAULT: 0, PROHIBITED: 2, EXCLUSIVE_PROCESS: 3 } as const;

/** `flags` of a context. */
export const CU_CTX = {
  SCHED_AUTO: 0,
  SCHED_SPIN: 1,
  SCHED_YIELD: 2,
  SCHED_BLOCKING_SYNC: 4,
  MAP_HOST: 8,
  LMEM_RESIZE_TO_MAX: 16,
  COREDUMP_ENABLE: 32,
  USER_COREDUMP_ENABLE: 64,
  SYNC_MEMOPS: 128,
} as const;

/** `Flags` of cuStreamCreate(). */
export const CU_STREAM = { DEFAULT: 0, NON_BLOCKING: 1 } as const;

/** The legacy default stream, which waits for the blocking streams of its context, as they wait for it. */
export const CU_STREAM_LEGACY = 1n;

/** The default stream of the calling thread. */
export const CU_STREAM_PER_THREAD = 2n;

/** `Flags` of cuEventCreate(). */
export const CU_EVENT = { DEFAULT: 0, BLOCKING_SYNC: 1, DISABLE_TIMING: 2, INTERPROCESS: 4 } as const;

/** `flags` of cuEventRecordWithFlags(). */
export const CU_EVENT_RECORD = { DEFAULT: 0, EXTERNAL: 1 } as const;

/** `Flags` of cuStreamWaitEvent(). */
export const CU_EVENT_WAIT = { DEFAULT: 0, EXTERNAL: 1 } as const;

/** Kinds of memory: the fields of the copy structs, and CU_POINTER_ATTRIBUTE.MEMORY_TYPE. */
export const CU_MEMORYTYPE = { HOST: 1, DEVICE: 2, ARRAY: 3, UNIFIED: 4 } as const;

/** `flags` of cuMemAllocManaged() and cuStreamAttachMemAsync(). */
export const CU_MEM_ATTACH = { GLOBAL: 1, HOST: 2, SINGLE: 4 } as const;

/** `Flags` of cuMemHostAlloc(). */
export const CU_MEMHOSTALLOC = { PORTABLE: 1, DEVICEMAP: 2, WRITECOMBINED: 4 } as const;

/** `Flags` of cuMemHostRegister_v2(). */
export const CU_MEMHOSTREGISTER = { PORTABLE: 1, DEVICEMAP: 2, IOMEMORY: 4, READ_ONLY: 8 } as const;

/** `attribute` of cuPointerGetAttribute(). */
export const CU_POINTER_ATTRIBUTE = {
  CONTEXT: 1,
  MEMORY_TYPE: 2,
  DEVICE_POINTER: 3,
  HOST_POINTER: 4,
  P2P_TOKENS: 5,
  SYNC_MEMOPS: 6,
  BUFFER_ID: 7,
  IS_MANAGED: 8,
  DEVICE_ORDINAL: 9,
  IS_LEGACY_CUDA_IPC_CAPABLE: 10,
  RANGE_START_ADDR: 11,
  RANGE_SIZE: 12,
  MAPPED: 13,
  ALLOWED_HANDLE_TYPES: 14,
  IS_GPU_DIRECT_RDMA_CAPABLE: 15,
  ACCESS_FLAGS: 16,
  MEMPOOL_HANDLE: 17,
  MAPPING_SIZE: 18,
  MAPPING_BASE_ADDR: 19,
  MEMORY_BLOCK_ID: 20,
} as const;

/** `advice` of cuMemAdvise(). */
export const CU_MEM_ADVISE = {
  SET_READ_MOSTLY: 1,
  UNSET_READ_MOSTLY: 2,
  SET_PREFERRED_LOCATION: 3,
  UNSET_PREFERRED_LOCATION: 4,
  SET_ACCESSED_BY: 5,
  UNSET_ACCESSED_BY: 6,
} as const;

/** `attribute` of cuMemRangeGetAttribute(). */
export const CU_MEM_RANGE_ATTRIBUTE = {
  READ_MOSTLY: 1,
  PREFERRED_LOCATION: 2,
  ACCESSED_BY: 3,
  LAST_PREFETCH_LOCATION: 4,
  PREFERRED_LOCATION_TYPE: 5,
  PREFERRED_LOCATION_ID: 6,
  LAST_PREFETCH_LOCATION_TYPE: 7,
  LAST_PREFETCH_LOCATION_ID: 8,
} as const;

/** `CUmemLocation.type`. */
export const CU_MEM_LOCATION_TYPE = { INVALID: 0, DEVICE: 1, HOST: 2, HOST_NUMA: 3, HOST_NUMA_CURRENT: 4 } as const;

/** `CUmemPoolProps.allocType`. */
export const CU_MEM_ALLOCATION_TYPE = { INVALID: 0, PINNED: 1, MANAGED: 2 } as const;

/** `CUmemPoolProps.handleTypes`, and the handle types by which a pool is exported. */
export const CU_MEM_HANDLE_TYPE = { NONE: 0, POSIX_FILE_DESCRIPTOR: 1, FABRIC: 8 } as const;

/** `CUmemAccessDesc.flags`. */
export const CU_MEM_ACCESS_FLAGS_PROT = { NONE: 0, READ: 1, READWRITE: 3 } as const;

/** `attr` of cuMemPoolGetAttribute(): int up to REUSE_ALLOW_INTERNAL_DEPENDENCIES, then cuuint64_t. */
export const CU_MEMPOOL_ATTR = {
  REUSE_FOLLOW_EVENT_DEPENDENCIES: 1,
  REUSE_ALLOW_OPPORTUNISTIC: 2,
  REUSE_ALLOW_INTERNAL_DEPENDENCIES: 3,
  RELEASE_THRESHOLD: 4,
  RESERVED_MEM_CURRENT: 5,
  RESERVED_MEM_HIGH: 6,
  USED_MEM_CURRENT: 7,
  USED_MEM_HIGH: 8,
} as const;

/** `attr` of cuDeviceGetGraphMemAttribute(): cuuint64_t each. */
export const CU_GRAPH_MEM_ATTR = {
  USED_MEM_CURRENT: 0,
  USED_MEM_HIGH: 1,
  RESERVED_MEM_CURRENT: 2,
  RESERVED_MEM_HIGH: 3,
} as const;

/** `Flags` of cuIpcOpenMemHandle_v2(). */
export const CU_IPC_MEM = { LAZY_ENABLE_PEER_ACCESS: 1 } as const;

/** `mode` of cuStreamBeginCapture_v2(). */
export const CU_STREAM_CAPTURE_MODE = { GLOBAL: 0, THREAD_LOCAL: 1, RELAXED: 2 } as const;

/** Result of cuStreamIsCapturing(). */
export const CU_STREAM_CAPTURE_STATUS = { NONE: 0, ACTIVE: 1, INVALIDATED: 2 } as const;

/** Types of graph nodes. */
export const CU_GRAPH_NODE_TYPE = {
  KERNEL: 0,
  MEMCPY: 1,
  MEMSET: 2,
  HOST: 3,
  GRAPH: 4,
  EMPTY: 5,
  WAIT_EVENT: 6,
  EVENT_RECORD: 7,
  EXT_SEMAS_SIGNAL: 8,
  EXT_SEMAS_WAIT: 9,
  MEM_ALLOC: 10,
  MEM_FREE: 11,
  BATCH_MEM_OP: 12,
  CONDITIONAL: 13,
} as const;

/** `flags` of cuGraphDebugDotPrint(). */
export const CU_GRAPH_DEBUG_DOT_FLAGS = { VERBOSE: 1 } as const;

/** Reasons why cuGraphExecUpdate() failed. */
export const CU_GRAPH_EXEC_UPDATE = {
  SUCCESS: 0,
  ERROR: 1,
  ERROR_TOPOLOGY_CHANGED: 2,
  ERROR_NODE_TYPE_CHANGED: 3,
  ERROR_FUNCTION_CHANGED: 4,
  ERROR_PARAMETERS_CHANGED: 5,
  ERROR_NOT_SUPPORTED: 6,
  ERROR_UNSUPPORTED_FUNCTION_CHANGE: 7,
  ERROR_ATTRIBUTES_CHANGED: 8,
} as const;

/** `flags` of cuGraphInstantiateWithFlags(). */
export const CUDA_GRAPH_INSTANTIATE_FLAG = {
  AUTO_FREE_ON_LAUNCH: 1n,
  UPLOAD: 2n,
  DEVICE_LAUNCH: 4n,
  USE_NODE_PRIORITY: 8n,
} as const;

/** `attrib` of cuFuncGetAttribute(). */
export const CU_FUNC_ATTRIBUTE = {
  MAX_THREADS_PER_BLOCK: 0,
  SHARED_SIZE_BYTES: 1,
  CONST_SIZE_BYTES: 2,
  LOCAL_SIZE_BYTES: 3,
  NUM_REGS: 4,
  PTX_VERSION: 5,
  BINARY_VERSION: 6,
  CACHE_MODE_CA: 7,
  MAX_DYNAMIC_SHARED_SIZE_BYTES: 8,
  PREFERRED_SHARED_MEMORY_CARVEOUT: 9,
  CLUSTER_SIZE_MUST_BE_SET: 10,
  REQUIRED_CLUSTER_WIDTH: 11,
  REQUIRED_CLUSTER_HEIGHT: 12,
  REQUIRED_CLUSTER_DEPTH: 13,
  NON_PORTABLE_CLUSTER_SIZE_ALLOWED: 14,
  CLUSTER_SCHEDULING_POLICY_PREFERENCE: 15,
  DEVICE_NODE_UPDATE_SUPPORTED: 16,
} as const;

/** `CUlaunchAttribute.id`. */
export const CU_LAUNCH_ATTRIBUTE = {
  IGNORE: 0,
  ACCESS_POLICY_WINDOW: 1,
  COOPERATIVE: 2,
  SYNCHRONIZATION_POLICY: 3,
  CLUSTER_DIMENSION: 4,
  CLUSTER_SCHEDULING_POLICY_PREFERENCE: 5,
  PROGRAMMATIC_STREAM_SERIALIZATION: 6,
  PROGRAMMATIC_EVENT: 7,
  PRIORITY: 8,
  MEM_SYNC_DOMAIN_MAP: 9,
  MEM_SYNC_DOMAIN: 10,
  PREFERRED_CLUSTER_DIMENSION: 11,
  LAUNCH_COMPLETION_EVENT: 12,
  DEVICE_UPDATABLE_KERNEL_NODE: 13,
  PREFERRED_SHARED_MEMORY_CARVEOUT: 14,
} as const;

/** Keys in the `extra` list of cuLaunchKernel(): pass all arguments in one buffer. */
export const CU_LAUNCH_PARAM = { END: 0n, BUFFER_POINTER: 1n, BUFFER_SIZE: 2n } as const;

/** Options of the just-in-time compiler and of the linker. */
export const CU_JIT = {
  MAX_REGISTERS: 0,
  THREADS_PER_BLOCK: 1,
  WALL_TIME: 2,
  INFO_LOG_BUFFER: 3,
  INFO_LOG_BUFFER_SIZE_BYTES: 4,
  ERROR_LOG_BUFFER: 5,
  ERROR_LOG_BUFFER_SIZE_BYTES: 6,
  OPTIMIZATION_LEVEL: 7,
  TARGET_FROM_CUCONTEXT: 8,
  TARGET: 9,
  FALLBACK_STRATEGY: 10,
  GENERATE_DEBUG_INFO: 11,
  LOG_VERBOSE: 12,
  GENERATE_LINE_INFO: 13,
  CACHE_MODE: 14,
  FAST_COMPILE: 16,
  GLOBAL_SYMBOL_NAMES: 17,
  GLOBAL_SYMBOL_ADDRESSES: 18,
  GLOBAL_SYMBOL_COUNT: 19,
  LTO: 20,
  FTZ: 21,
  PREC_DIV: 22,
  PREC_SQRT: 23,
  FMA: 24,
  REFERENCED_KERNEL_NAMES: 25,
  REFERENCED_KERNEL_COUNT: 26,
  REFERENCED_VARIABLE_NAMES: 27,
  REFERENCED_VARIABLE_COUNT: 28,
  OPTIMIZE_UNUSED_DEVICE_VARIABLES: 29,
  POSITION_INDEPENDENT_CODE: 30,
  MIN_CTA_PER_SM: 31,
  MAX_THREADS_PER_BLOCK: 32,
  OVERRIDE_DIRECTIVE_VALUES: 33,
  SPLIT_COMPILE: 34,
  BINARY_LOADER_THREAD_COUNT: 35,
} as const;

/** `type` of cuLinkAddData_v2(). */
export const CU_JIT_INPUT = { CUBIN: 0, PTX: 1, FATBINARY: 2, OBJECT: 3, LIBRARY: 4 } as const;
