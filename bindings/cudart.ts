/**
 * The CUDA runtime: libcudart (cuda_runtime_api.h, driver_types.h).
 *
 * Its streams, events and addresses are the driver's own. Written against the headers of CUDA 11.8, 12.9 and 13.5; all
 * functions here have the same prototype in all three. Some names of this library changed their meaning between major
 * versions: cudaGetDeviceProperties(), cudaGraphInstantiate(), cudaStreamGetCaptureInfo(), cudaMemAdvise() and
 * cudaMemPrefetchAsync() are omitted for that reason, and the driver's functions are used instead.
 *
 * @module
 */
import type { StructDescription, SymbolTable } from "./abi.ts";

/** Functions of libcudart. */
export const cudart = {
  // Functions needed to identify the runtime, and to describe an error.
  opening: {
    // cudaError_t cudaRuntimeGetVersion(int *runtimeVersion);
    cudaRuntimeGetVersion: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaDriverGetVersion(int *driverVersion);
    cudaDriverGetVersion: { args: ["ptr"], returns: "i32" },
    // const char *cudaGetErrorName(cudaError_t error);
    cudaGetErrorName: { args: ["i32"], returns: "ptr" },
    // const char *cudaGetErrorString(cudaError_t error);
    cudaGetErrorString: { args: ["i32"], returns: "ptr" },
    // cudaError_t cudaGetDeviceCount(int *count);
    cudaGetDeviceCount: { args: ["ptr"], returns: "i32" },
  },
  device: {
    // cudaError_t cudaGetDevice(int *device);
    cudaGetDevice: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaSetDevice(int device);
    cudaSetDevice: { args: ["i32"], returns: "i32" },
    // cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
    cudaDeviceGetAttribute: { args: ["ptr", "i32", "i32"], returns: "i32" },
    // cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice);
    cudaDeviceCanAccessPeer: { args: ["ptr", "i32", "i32"], returns: "i32" },
    // cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device);
    cudaDeviceGetPCIBusId: { args: ["ptr", "i32", "i32"], returns: "i32" },
    // cudaError_t cudaDeviceSynchronize(void);
    cudaDeviceSynchronize: { args: [], returns: "i32" },
    // cudaError_t cudaGetLastError(void);
    cudaGetLastError: { args: [], returns: "i32" },
    // cudaError_t cudaPeekAtLastError(void);
    cudaPeekAtLastError: { args: [], returns: "i32" },
    // since CUDA 12
    // cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags);
    cudaInitDevice: { args: ["i32", "u32", "u32"], returns: "i32", optional: true },
  },
  stream: {
    // cudaError_t cudaStreamCreate(cudaStream_t *pStream);
    cudaStreamCreate: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags);
    cudaStreamCreateWithFlags: { args: ["ptr", "u32"], returns: "i32" },
    // cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority);
    cudaStreamCreateWithPriority: { args: ["ptr", "u32", "i32"], returns: "i32" },
    // cudaError_t cudaStreamDestroy(cudaStream_t stream);
    cudaStreamDestroy: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaStreamSynchronize(cudaStream_t stream);
    cudaStreamSynchronize: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaStreamQuery(cudaStream_t stream);
    cudaStreamQuery: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
    cudaStreamWaitEvent: { args: ["ptr", "ptr", "u32"], returns: "i32" },
    // cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags);
    cudaStreamGetFlags: { args: ["ptr", "ptr"], returns: "i32" },
    // cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority);
    cudaStreamGetPriority: { args: ["ptr", "ptr"], returns: "i32" },
    // cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus);
    cudaStreamIsCapturing: { args: ["ptr", "ptr"], returns: "i32" },
    // cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData);
    cudaLaunchHostFunc: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    // since CUDA 12
    // cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId);
    cudaStreamGetId: { args: ["ptr", "ptr"], returns: "i32", optional: true },
  },
  event: {
    // cudaError_t cudaEventCreate(cudaEvent_t *event);
    cudaEventCreate: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
    cudaEventCreateWithFlags: { args: ["ptr", "u32"], returns: "i32" },
    // cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
    cudaEventRecord: { args: ["ptr", "ptr"], returns: "i32" },
    // cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags);
    cudaEventRecordWithFlags: { args: ["ptr", "ptr", "u32"], returns: "i32" },
    // cudaError_t cudaEventQuery(cudaEvent_t event);
    cudaEventQuery: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaEventSynchronize(cudaEvent_t event);
    cudaEventSynchronize: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);
    cudaEventElapsedTime: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    // cudaError_t cudaEventDestroy(cudaEvent_t event);
    cudaEventDestroy: { args: ["ptr"], returns: "i32" },
  },
  memory: {
    // cudaError_t cudaMalloc(void **devPtr, size_t size);
    cudaMalloc: { args: ["ptr", "size"], returns: "i32" },
    // cudaError_t cudaFree(void *devPtr);
    cudaFree: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream);
    cudaMallocAsync: { args: ["ptr", "size", "ptr"], returns: "i32" },
    // cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream);
    cudaFreeAsync: { args: ["ptr", "ptr"], returns: "i32" },
    // cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream);
    cudaMallocFromPoolAsync: { args: ["ptr", "size", "ptr", "ptr"], returns: "i32" },
    // cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device);
    cudaDeviceGetDefaultMemPool: { args: ["ptr", "i32"], returns: "i32" },
    // cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags);
    cudaMallocManaged: { args: ["ptr", "size", "u32"], returns: "i32" },
    // cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags);
    cudaHostAlloc: { args: ["ptr", "size", "u32"], returns: "i32" },
    // cudaError_t cudaFreeHost(void *ptr);
    cudaFreeHost: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags);
    cudaHostRegister: { args: ["ptr", "size", "u32"], returns: "i32" },
    // cudaError_t cudaHostUnregister(void *ptr);
    cudaHostUnregister: { args: ["ptr"], returns: "i32" },
    // cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
    cudaMemGetInfo: { args: ["ptr", "ptr"], returns: "i32" },
    // cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr);
    cudaPointerGetAttributes: { args: ["ptr", "ptr"], returns: "i32" },
  },
  copy: {
    // cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
    cudaMemcpy: { args: ["ptr", "ptr", "size", "i32"], returns: "i32" },
    // cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
    //   cudaStream_t stream);
    cudaMemcpyAsync: { args: ["ptr", "ptr", "size", "i32", "ptr"], returns: "i32" },
    // cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count);
    cudaMemcpyPeer: { args: ["ptr", "i32", "ptr", "i32", "size"], returns: "i32" },
    // cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
    //   cudaStream_t stream);
    cudaMemcpyPeerAsync: { args: ["ptr", "i32", "ptr", "i32", "size", "ptr"], returns: "i32" },
    // cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
    //   enum cudaMemcpyKind kind);
    cudaMemcpy2D: { args: ["ptr", "size", "ptr", "size", "size", "size", "i32"], returns: "i32" },
    // cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
    //   size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
    cudaMemcpy2DAsync: { args: ["ptr", "size", "ptr", "size", "size", "size", "i32", "ptr"], returns: "i32" },
    // cudaError_t cudaMemset(void *devPtr, int value, size_t count);
    cudaMemset: { args: ["ptr", "i32", "size"], returns: "i32" },
    // cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream);
    cudaMemsetAsync: { args: ["ptr", "i32", "size", "ptr"], returns: "i32" },
  },
  // cudaGetDriverEntryPoint() is omitted: it has three parameters in CUDA 11 and four later.
  entryPoint: {
    // since CUDA 12.5
    // cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr, unsigned int cudaVersion,
    //   unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus);
    cudaGetDriverEntryPointByVersion: { args: ["buffer", "ptr", "u32", "u64", "ptr"], returns: "i32", optional: true },
  },
} as const satisfies SymbolTable;

/** Result of cudaPointerGetAttributes(). It grew in CUDA 13, which writes all of it. */
export const cudaPointerAttributes = {
  type: "i32", // cudaMemoryType
  device: "i32",
  devicePointer: "ptr", // void *
  hostPointer: "ptr", // void *
  localityDomainOrdinal: "i32", // since CUDA 13
  reserved: ["i64", 7], // since CUDA 13
} as const satisfies StructDescription;

/** Results that code has to distinguish; cudaGetErrorName() knows them all. The numbers are mostly the driver's. */
export const cudaError = {
  cudaSuccess: 0,
  cudaErrorInvalidValue: 1,
  cudaErrorMemoryAllocation: 2,
  cudaErrorInitializationError: 3,
  cudaErrorCudartUnloading: 4,
  cudaErrorStubLibrary: 34,
  cudaErrorInsufficientDriver: 35,
  cudaErrorCallRequiresNewerDriver: 36,
  cudaErrorDevicesUnavailable: 46,
  cudaErrorNoDevice: 100,
  cudaErrorInvalidDevice: 101,
  cudaErrorInvalidResourceHandle: 400,
  cudaErrorNotReady: 600,
  cudaErrorPeerAccessAlreadyEnabled: 704,
  cudaErrorPeerAccessNotEnabled: 705,
  cudaErrorNotSupported: 801,
  cudaErrorSystemNotReady: 802,
  cudaErrorSystemDriverMismatch: 803,
  cudaErrorUnknown: 999,
} as const;

/** Direction of a copy. Default infers it from the addresses. */
export const cudaMemcpyKind = {
  cudaMemcpyHostToHost: 0,
  cudaMemcpyHostToDevice: 1,
  cudaMemcpyDeviceToHost: 2,
  cudaMemcpyDeviceToDevice: 3,
  cudaMemcpyDefault: 4,
} as const;

/** `cudaPointerAttributes.type`. */
export const cudaMemoryType = {
  cudaMemoryTypeUnregistered: 0,
  cudaMemoryTypeHost: 1,
  cudaMemoryTypeDevice: 2,
  cudaMemoryTypeManaged: 3,
} as const;

/** `flags` of cudaStreamCreateWithFlags(). */
export const cudaStreamFlags = { cudaStreamDefault: 0, cudaStreamNonBlocking: 1 } as const;

/** `flags` of cudaEventCreateWithFlags(). */
export const cudaEventFlags = {
  cudaEventDefault: 0,
  cudaEventBlockingSync: 1,
  cudaEventDisableTiming: 2,
  cudaEventInterprocess: 4,
} as const;
