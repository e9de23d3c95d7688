/**
 * The CUDA driver, functions: libcuda. Its structs and constants are in `cuda_types.ts`.
 *
 * The names are those that the library exports: if the header maps a plain name to a versioned one by macro
 * (`cuMemAlloc` to `cuMemAlloc_v2`), the versioned one is used. If a later `_v3` exists, the form that every driver
 * since CUDA 11.4 has is bound; drivers keep old forms. Optional functions are newer than 11.4.
 *
 * Omitted: functions that take a struct of at most 16 bytes by value, because one of the two runtimes cannot pass one
 * and the registers that carry it depend on the machine. These are cuMemAdvise_v2() and cuMemPrefetchAsync_v2() (a
 * CUmemLocation).
 *
 * A `buffer` is a NUL-terminated string. Every other pointer is an address: of memory that the driver retains, or of an
 * out-parameter.
 *
 * @module
 */
import type { SymbolTable } from "./abi.ts";

/** Functions of libcuda. */
export const cuda = {
  // Functions needed to detect a GPU, and to describe an error.
  opening: {
    // CUresult cuInit(unsigned int Flags);
    cuInit: { args: ["u32"], returns: "i32" },
    // CUresult cuDriverGetVersion(int *driverVersion);
    cuDriverGetVersion: { args: ["ptr"], returns: "i32" },
    // CUresult cuDeviceGetCount(int *count);
    cuDeviceGetCount: { args: ["ptr"], returns: "i32" },
    // CUresult cuDeviceGet(CUdevice *device, int ordinal);
    cuDeviceGet: { args: ["ptr", "i32"], returns: "i32" },
    // CUresult cuGetErrorName(CUresult error, const char **pStr);
    cuGetErrorName: { args: ["i32", "ptr"], returns: "i32" },
    // CUresult cuGetErrorString(CUresult error, const char **pStr);
    cuGetErrorString: { args: ["i32", "ptr"], returns: "i32" },
  },
  device: {
    // CUresult cuDeviceGetName(char *name, int len, CUdevice dev);
    cuDeviceGetName: { args: ["ptr", "i32", "i32"], returns: "i32" },
    // CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev);
    cuDeviceGetUuid_v2: { args: ["ptr", "i32"], returns: "i32" },
    // CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev);
    cuDeviceGetAttribute: { args: ["ptr", "i32", "i32"], returns: "i32" },
    // CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev);
    cuDeviceTotalMem_v2: { args: ["ptr", "i32"], returns: "i32" },
    // CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev);
    cuDeviceGetPCIBusId: { args: ["ptr", "i32", "i32"], returns: "i32" },
    // CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId);
    cuDeviceGetByPCIBusId: { args: ["ptr", "buffer"], returns: "i32" },
    // CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev);
    cuDeviceCanAccessPeer: { args: ["ptr", "i32", "i32"], returns: "i32" },
    // CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
    //   CUdevice dstDevice);
    cuDeviceGetP2PAttribute: { args: ["ptr", "i32", "i32", "i32"], returns: "i32" },
  },
  // The primary context of a device, and other contexts; functions that enable, wait or record in a context.
  context: {
    // CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev);
    cuDevicePrimaryCtxRetain: { args: ["ptr", "i32"], returns: "i32" },
    // CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev);
    cuDevicePrimaryCtxRelease_v2: { args: ["i32"], returns: "i32" },
    // CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active);
    cuDevicePrimaryCtxGetState: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    // CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags);
    cuDevicePrimaryCtxSetFlags_v2: { args: ["i32", "u32"], returns: "i32" },
    // CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);
    cuCtxCreate_v2: { args: ["ptr", "u32", "i32"], returns: "i32" },
    // CUresult cuCtxDestroy_v2(CUcontext ctx);
    cuCtxDestroy_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuCtxGetCurrent(CUcontext *pctx);
    cuCtxGetCurrent: { args: ["ptr"], returns: "i32" },
    // CUresult cuCtxSetCurrent(CUcontext ctx);
    cuCtxSetCurrent: { args: ["ptr"], returns: "i32" },
    // CUresult cuCtxPushCurrent_v2(CUcontext ctx);
    cuCtxPushCurrent_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuCtxPopCurrent_v2(CUcontext *pctx);
    cuCtxPopCurrent_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuCtxGetDevice(CUdevice *device);
    cuCtxGetDevice: { args: ["ptr"], returns: "i32" },
    // CUresult cuCtxGetFlags(unsigned int *flags);
    cuCtxGetFlags: { args: ["ptr"], returns: "i32" },
    // since CUDA 12.0
    // CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId);
    cuCtxGetId: { args: ["ptr", "ptr"], returns: "i32", optional: true },
    // CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority);
    cuCtxGetStreamPriorityRange: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuCtxSynchronize(void);
    cuCtxSynchronize: { args: [], returns: "i32" },
    // since CUDA 12.5
    // CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent);
    cuCtxRecordEvent: { args: ["ptr", "ptr"], returns: "i32", optional: true },
    // since CUDA 12.5
    // CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent);
    cuCtxWaitEvent: { args: ["ptr", "ptr"], returns: "i32", optional: true },
    // CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags);
    cuCtxEnablePeerAccess: { args: ["ptr", "u32"], returns: "i32" },
    // CUresult cuCtxDisablePeerAccess(CUcontext peerContext);
    cuCtxDisablePeerAccess: { args: ["ptr"], returns: "i32" },
  },
  stream: {
    // CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags);
    cuStreamCreate: { args: ["ptr", "u32"], returns: "i32" },
    // CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority);
    cuStreamCreateWithPriority: { args: ["ptr", "u32", "i32"], returns: "i32" },
    // CUresult cuStreamDestroy_v2(CUstream hStream);
    cuStreamDestroy_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuStreamSynchronize(CUstream hStream);
    cuStreamSynchronize: { args: ["ptr"], returns: "i32" },
    // CUresult cuStreamQuery(CUstream hStream);
    cuStreamQuery: { args: ["ptr"], returns: "i32" },
    // CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags);
    cuStreamWaitEvent: { args: ["handle", "handle", "u32"], returns: "i32" },
    // CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx);
    cuStreamGetCtx: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags);
    cuStreamGetFlags: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuStreamGetPriority(CUstream hStream, int *priority);
    cuStreamGetPriority: { args: ["ptr", "ptr"], returns: "i32" },
    // since CUDA 12.0
    // CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId);
    cuStreamGetId: { args: ["ptr", "ptr"], returns: "i32", optional: true },
    // since CUDA 12.8
    // CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device);
    cuStreamGetDevice: { args: ["ptr", "ptr"], returns: "i32", optional: true },
    // CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags);
    cuStreamAttachMemAsync: { args: ["ptr", "ptr", "size", "u32"], returns: "i32" },
    // CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData);
    cuLaunchHostFunc: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  },
  event: {
    // CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags);
    cuEventCreate: { args: ["ptr", "u32"], returns: "i32" },
    // CUresult cuEventDestroy_v2(CUevent hEvent);
    cuEventDestroy_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuEventRecord(CUevent hEvent, CUstream hStream);
    cuEventRecord: { args: ["handle", "handle"], returns: "i32" },
    // CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags);
    cuEventRecordWithFlags: { args: ["ptr", "ptr", "u32"], returns: "i32" },
    // CUresult cuEventQuery(CUevent hEvent);
    cuEventQuery: { args: ["ptr"], returns: "i32" },
    // CUresult cuEventSynchronize(CUevent hEvent);
    cuEventSynchronize: { args: ["ptr"], returns: "i32" },
    // CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd);
    cuEventElapsedTime: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  },
  // Device memory that is allocated and freed immediately, not in stream order.
  memory: {
    // CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize);
    cuMemAlloc_v2: { args: ["ptr", "size"], returns: "i32" },
    // CUresult cuMemFree_v2(CUdeviceptr dptr);
    cuMemFree_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
    //   unsigned int ElementSizeBytes);
    cuMemAllocPitch_v2: { args: ["ptr", "ptr", "size", "size", "u32"], returns: "i32" },
    // CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
    cuMemGetInfo_v2: { args: ["ptr", "ptr"], returns: "i32" },
  },
  // Page-locked host memory.
  hostMemory: {
    // CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags);
    cuMemHostAlloc: { args: ["ptr", "size", "u32"], returns: "i32" },
    // CUresult cuMemAllocHost_v2(void **pp, size_t bytesize);
    cuMemAllocHost_v2: { args: ["ptr", "size"], returns: "i32" },
    // CUresult cuMemFreeHost(void *p);
    cuMemFreeHost: { args: ["ptr"], returns: "i32" },
    // CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags);
    cuMemHostRegister_v2: { args: ["ptr", "size", "u32"], returns: "i32" },
    // CUresult cuMemHostUnregister(void *p);
    cuMemHostUnregister: { args: ["ptr"], returns: "i32" },
    // CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags);
    cuMemHostGetDevicePointer_v2: { args: ["ptr", "ptr", "u32"], returns: "i32" },
    // CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p);
    cuMemHostGetFlags: { args: ["ptr", "ptr"], returns: "i32" },
  },
  // Memory that migrates. The `_v2` forms of the last two are omitted: see above.
  managedMemory: {
    // CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags);
    cuMemAllocManaged: { args: ["ptr", "size", "u32"], returns: "i32" },
    // CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
    //   CUdeviceptr devPtr, size_t count);
    cuMemRangeGetAttribute: { args: ["ptr", "size", "i32", "ptr", "size"], returns: "i32" },
    // CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
    //   size_t numAttributes, CUdeviceptr devPtr, size_t count);
    cuMemRangeGetAttributes: { args: ["ptr", "ptr", "ptr", "size", "ptr", "size"], returns: "i32" },
    // CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device);
    cuMemAdvise: { args: ["ptr", "size", "i32", "i32"], returns: "i32" },
    // CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream);
    cuMemPrefetchAsync: { args: ["ptr", "size", "i32", "ptr"], returns: "i32" },
  },
  // What the driver knows about an address.
  pointer: {
    // CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr);
    cuPointerGetAttribute: { args: ["ptr", "i32", "ptr"], returns: "i32" },
    // CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
    //   CUdeviceptr ptr);
    cuPointerGetAttributes: { args: ["u32", "ptr", "ptr", "ptr"], returns: "i32" },
    // CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr);
    cuPointerSetAttribute: { args: ["ptr", "i32", "ptr"], returns: "i32" },
    // CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr);
    cuMemGetAddressRange_v2: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  },
  // Copies of contiguous bytes. The unqualified ones infer the direction from the addresses.
  copy: {
    // CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount);
    cuMemcpy: { args: ["ptr", "ptr", "size"], returns: "i32" },
    // CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount);
    cuMemcpyHtoD_v2: { args: ["ptr", "ptr", "size"], returns: "i32" },
    // CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount);
    cuMemcpyDtoH_v2: { args: ["ptr", "ptr", "size"], returns: "i32" },
    // CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount);
    cuMemcpyDtoD_v2: { args: ["ptr", "ptr", "size"], returns: "i32" },
    // CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
    //   size_t ByteCount);
    cuMemcpyPeer: { args: ["ptr", "ptr", "ptr", "ptr", "size"], returns: "i32" },
    // CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream);
    cuMemcpyAsync: { args: ["ptr", "ptr", "size", "ptr"], returns: "i32" },
    // CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream);
    cuMemcpyHtoDAsync_v2: { args: ["ptr", "ptr", "size", "ptr"], returns: "i32" },
    // CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream);
    cuMemcpyDtoHAsync_v2: { args: ["ptr", "ptr", "size", "ptr"], returns: "i32" },
    // CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream);
    cuMemcpyDtoDAsync_v2: { args: ["ptr", "ptr", "size", "ptr"], returns: "i32" },
    // CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
    //   CUcontext srcContext, size_t ByteCount, CUstream hStream);
    cuMemcpyPeerAsync: { args: ["ptr", "ptr", "ptr", "ptr", "size", "ptr"], returns: "i32" },
  },
  // Copies of rectangles and boxes.
  copyPitched: {
    // CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy);
    cuMemcpy2D_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy);
    cuMemcpy2DUnaligned_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream);
    cuMemcpy2DAsync_v2: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy);
    cuMemcpy3D_v2: { args: ["ptr"], returns: "i32" },
    // CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream);
    cuMemcpy3DAsync_v2: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy);
    cuMemcpy3DPeer: { args: ["ptr"], returns: "i32" },
    // CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream);
    cuMemcpy3DPeerAsync: { args: ["ptr", "ptr"], returns: "i32" },
  },
  // Sizes count elements, not bytes.
  fill: {
    // CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N);
    cuMemsetD8_v2: { args: ["ptr", "u8", "size"], returns: "i32" },
    // CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N);
    cuMemsetD16_v2: { args: ["ptr", "u16", "size"], returns: "i32" },
    // CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N);
    cuMemsetD32_v2: { args: ["ptr", "u32", "size"], returns: "i32" },
    // CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream);
    cuMemsetD8Async: { args: ["ptr", "u8", "size", "ptr"], returns: "i32" },
    // CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream);
    cuMemsetD16Async: { args: ["ptr", "u16", "size", "ptr"], returns: "i32" },
    // CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream);
    cuMemsetD32Async: { args: ["ptr", "u32", "size", "ptr"], returns: "i32" },
  },
  // Widths count elements, pitches bytes.
  fillPitched: {
    // CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height);
    cuMemsetD2D8_v2: { args: ["ptr", "size", "u8", "size", "size"], returns: "i32" },
    // CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
    //   size_t Height);
    cuMemsetD2D16_v2: { args: ["ptr", "size", "u16", "size", "size"], returns: "i32" },
    // CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height);
    cuMemsetD2D32_v2: { args: ["ptr", "size", "u32", "size", "size"], returns: "i32" },
    // CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
    //   size_t Height, CUstream hStream);
    cuMemsetD2D8Async: { args: ["ptr", "size", "u8", "size", "size", "ptr"], returns: "i32" },
    // CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
    //   size_t Height, CUstream hStream);
    cuMemsetD2D16Async: { args: ["ptr", "size", "u16", "size", "size", "ptr"], returns: "i32" },
    // CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
    //   size_t Height, CUstream hStream);
    cuMemsetD2D32Async: { args: ["ptr", "size", "u32", "size", "size", "ptr"], returns: "i32" },
  },
  // Memory allocated and freed in stream order.
  pool: {
    // CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream);
    cuMemAllocAsync: { args: ["ptr", "size", "ptr"], returns: "i32" },
    // CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream);
    cuMemFreeAsync: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream);
    cuMemAllocFromPoolAsync: { args: ["ptr", "size", "ptr", "ptr"], returns: "i32" },
    // CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps);
    cuMemPoolCreate: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuMemPoolDestroy(CUmemoryPool pool);
    cuMemPoolDestroy: { args: ["ptr"], returns: "i32" },
    // CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value);
    cuMemPoolGetAttribute: { args: ["ptr", "i32", "ptr"], returns: "i32" },
    // CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value);
    cuMemPoolSetAttribute: { args: ["ptr", "i32", "ptr"], returns: "i32" },
    // CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep);
    cuMemPoolTrimTo: { args: ["ptr", "size"], returns: "i32" },
    // CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location);
    cuMemPoolGetAccess: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    // CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count);
    cuMemPoolSetAccess: { args: ["ptr", "ptr", "size"], returns: "i32" },
    // CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev);
    cuDeviceGetDefaultMemPool: { args: ["ptr", "i32"], returns: "i32" },
    // CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev);
    cuDeviceGetMemPool: { args: ["ptr", "i32"], returns: "i32" },
    // CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool);
    cuDeviceSetMemPool: { args: ["i32", "ptr"], returns: "i32" },
    // since CUDA 13.0
    // CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type);
    cuMemGetDefaultMemPool: { args: ["ptr", "ptr", "i32"], returns: "i32", optional: true },
    // since CUDA 13.0
    // CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type);
    cuMemGetMemPool: { args: ["ptr", "ptr", "i32"], returns: "i32", optional: true },
    // since CUDA 13.0
    // CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool);
    cuMemSetMemPool: { args: ["ptr", "i32", "ptr"], returns: "i32", optional: true },
  },
  // Pools shared between processes.
  poolSharing: {
    // CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
    //   CUmemAllocationHandleType handleType, unsigned long long flags);
    cuMemPoolExportToShareableHandle: { args: ["ptr", "ptr", "i32", "u64"], returns: "i32" },
    // CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
    //   CUmemAllocationHandleType handleType, unsigned long long flags);
    cuMemPoolImportFromShareableHandle: { args: ["ptr", "ptr", "i32", "u64"], returns: "i32" },
    // CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr);
    cuMemPoolExportPointer: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData);
    cuMemPoolImportPointer: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  },
  // Memory and events shared between processes, by handles of 64 bytes.
  ipc: {
    // CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr);
    cuIpcGetMemHandle: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags);
    cuIpcOpenMemHandle_v2: { args: ["ptr", "struct64", "u32"], returns: "i32" },
    // CUresult cuIpcCloseMemHandle(CUdeviceptr dptr);
    cuIpcCloseMemHandle: { args: ["ptr"], returns: "i32" },
    // CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event);
    cuIpcGetEventHandle: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle);
    cuIpcOpenEventHandle: { args: ["ptr", "struct64"], returns: "i32" },
  },
  // Capturing the work of a stream into a graph.
  capture: {
    // CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode);
    cuStreamBeginCapture_v2: { args: ["ptr", "i32"], returns: "i32" },
    // CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph);
    cuStreamEndCapture: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus);
    cuStreamIsCapturing: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
    //   cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out, size_t *numDependencies_out);
    cuStreamGetCaptureInfo_v2: { args: ["ptr", "ptr", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
    // CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies,
    //   unsigned int flags);
    cuStreamUpdateCaptureDependencies: { args: ["ptr", "ptr", "size", "u32"], returns: "i32" },
    // CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
    cuThreadExchangeStreamCaptureMode: { args: ["handle"], returns: "i32" },
  },
  graph: {
    // CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags);
    cuGraphCreate: { args: ["ptr", "u32"], returns: "i32" },
    // CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes);
    cuGraphGetNodes: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    // CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges);
    cuGraphGetEdges: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
    // CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type);
    cuGraphNodeGetType: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags);
    cuGraphDebugDotPrint: { args: ["ptr", "buffer", "u32"], returns: "i32" },
    // CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags);
    cuGraphInstantiateWithFlags: { args: ["ptr", "ptr", "u64"], returns: "i32" },
    // CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
    //   CUgraphExecUpdateResult *updateResult_out);
    cuGraphExecUpdate: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
    // CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream);
    cuGraphUpload: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream);
    cuGraphLaunch: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuGraphExecDestroy(CUgraphExec hGraphExec);
    cuGraphExecDestroy: { args: ["ptr"], returns: "i32" },
    // CUresult cuGraphDestroy(CUgraph hGraph);
    cuGraphDestroy: { args: ["ptr"], returns: "i32" },
    // CUresult cuDeviceGraphMemTrim(CUdevice device);
    cuDeviceGraphMemTrim: { args: ["i32"], returns: "i32" },
    // CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value);
    cuDeviceGetGraphMemAttribute: { args: ["i32", "i32", "ptr"], returns: "i32" },
    // CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value);
    cuDeviceSetGraphMemAttribute: { args: ["i32", "i32", "ptr"], returns: "i32" },
  },
  module: {
    // CUresult cuModuleLoadData(CUmodule *module, const void *image);
    cuModuleLoadData: { args: ["ptr", "ptr"], returns: "i32" },
    // CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options,
    //   void **optionValues);
    cuModuleLoadDataEx: { args: ["ptr", "ptr", "u32", "ptr", "ptr"], returns: "i32" },
    // CUresult cuModuleUnload(CUmodule hmod);
    cuModuleUnload: { args: ["ptr"], returns: "i32" },
    // CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name);
    cuModuleGetFunction: { args: ["ptr", "ptr", "buffer"], returns: "i32" },
    // CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name);
    cuModuleGetGlobal_v2: { args: ["ptr", "ptr", "ptr", "buffer"], returns: "i32" },
  },
  // Modules that are not bound to a context, since CUDA 12.0.
  library: {
    // since CUDA 12.0
    // CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
    //   void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
    //   void **libraryOptionValues, unsigned int numLibraryOptions);
    cuLibraryLoadData: {
      args: ["ptr", "ptr", "ptr", "ptr", "u32", "ptr", "ptr", "u32"],
      returns: "i32",
      optional: true,
    },
    // since CUDA 12.0
    // CUresult cuLibraryUnload(CUlibrary library);
    cuLibraryUnload: { args: ["ptr"], returns: "i32", optional: true },
    // since CUDA 12.0
    // CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name);
    cuLibraryGetKernel: { args: ["ptr", "ptr", "buffer"], returns: "i32", optional: true },
    // since CUDA 12.0
    // CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel);
    cuKernelGetFunction: { args: ["ptr", "ptr"], returns: "i32", optional: true },
  },
  // Attributes of a function, and its launch.
  kernel: {
    // CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc);
    cuFuncGetAttribute: { args: ["ptr", "i32", "ptr"], returns: "i32" },
    // CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value);
    cuFuncSetAttribute: { args: ["ptr", "i32", "i32"], returns: "i32" },
    // since CUDA 12.4
    // CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize);
    cuFuncGetParamInfo: { args: ["ptr", "size", "ptr", "ptr"], returns: "i32", optional: true },
    // CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
    //   size_t dynamicSMemSize);
    cuOccupancyMaxActiveBlocksPerMultiprocessor: { args: ["ptr", "ptr", "i32", "size"], returns: "i32" },
    // CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
    //   CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit);
    cuOccupancyMaxPotentialBlockSize: { args: ["ptr", "ptr", "ptr", "ptr", "size", "i32"], returns: "i32" },
    // CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
    //   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
    //   CUstream hStream, void **kernelParams, void **extra);
    cuLaunchKernel: {
      args: ["ptr", "u32", "u32", "u32", "u32", "u32", "u32", "u32", "ptr", "ptr", "ptr"],
      returns: "i32",
    },
    // CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
    //   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
    //   unsigned int sharedMemBytes, CUstream hStream, void **kernelParams);
    cuLaunchCooperativeKernel: {
      args: ["ptr", "u32", "u32", "u32", "u32", "u32", "u32", "u32", "ptr", "ptr"],
      returns: "i32",
    },
    // since CUDA 11.6
    // CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra);
    cuLaunchKernelEx: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32", optional: true },
  },
  // Linking PTX and cubins at run time.
  linker: {
    // CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
    //   CUlinkState *stateOut);
    cuLinkCreate_v2: { args: ["u32", "ptr", "ptr", "ptr"], returns: "i32" },
    // CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
    //   unsigned int numOptions, CUjit_option *options, void **optionValues);
    cuLinkAddData_v2: { args: ["ptr", "i32", "ptr", "size", "buffer", "u32", "ptr", "ptr"], returns: "i32" },
    // CUresult cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut);
    cuLinkComplete: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
    // CUresult cuLinkDestroy(CUlinkState state);
    cuLinkDestroy: { args: ["ptr"], returns: "i32" },
  },
} as const satisfies SymbolTable;
