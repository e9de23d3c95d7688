/**
 * The run-time compiler of CUDA C++: libnvrtc (nvrtc.h), written against CUDA 11.8, 12.9 and 13.5.
 *
 * @module
 */
import type { SymbolTable } from "./abi.ts";

/** Functions of libnvrtc. */
export const nvrtc = {
  opening: {
    // nvrtcResult nvrtcVersion(int *major, int *minor);
    nvrtcVersion: { args: ["ptr", "ptr"], returns: "i32" },
    // const char *nvrtcGetErrorString(nvrtcResult result);
    nvrtcGetErrorString: { args: ["i32"], returns: "ptr" },
    // nvrtcResult nvrtcGetNumSupportedArchs(int *numArchs);
    nvrtcGetNumSupportedArchs: { args: ["ptr"], returns: "i32" },
    // nvrtcResult nvrtcGetSupportedArchs(int *supportedArchs);
    nvrtcGetSupportedArchs: { args: ["ptr"], returns: "i32" },
  },
  // Sources, names and options are NUL-terminated.
  program: {
    // nvrtcResult nvrtcCreateProgram(nvrtcProgram *prog, const char *src, const char *name, int numHeaders,
    //   const char *const *headers, const char *const *includeNames);
    nvrtcCreateProgram: { args: ["ptr", "buffer", "buffer", "i32", "ptr", "ptr"], returns: "i32" },
    // nvrtcResult nvrtcDestroyProgram(nvrtcProgram *prog);
    nvrtcDestroyProgram: { args: ["ptr"], returns: "i32" },
    // nvrtcResult nvrtcAddNameExpression(nvrtcProgram prog, const char *const name_expression);
    nvrtcAddNameExpression: { args: ["ptr", "buffer"], returns: "i32" },
    // nvrtcResult nvrtcCompileProgram(nvrtcProgram prog, int numOptions, const char *const *options);
    nvrtcCompileProgram: { args: ["ptr", "i32", "ptr"], returns: "i32" },
    // nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram prog, size_t *logSizeRet);
    nvrtcGetProgramLogSize: { args: ["ptr", "ptr"], returns: "i32" },
    // nvrtcResult nvrtcGetProgramLog(nvrtcProgram prog, char *log);
    nvrtcGetProgramLog: { args: ["ptr", "ptr"], returns: "i32" },
    // nvrtcResult nvrtcGetLoweredName(nvrtcProgram prog, const char *const name_expression, const char **lowered_name);
    nvrtcGetLoweredName: { args: ["ptr", "buffer", "ptr"], returns: "i32" },
    // nvrtcResult nvrtcGetCUBINSize(nvrtcProgram prog, size_t *cubinSizeRet);
    nvrtcGetCUBINSize: { args: ["ptr", "ptr"], returns: "i32" },
    // nvrtcResult nvrtcGetCUBIN(nvrtcProgram prog, char *cubin);
    nvrtcGetCUBIN: { args: ["ptr", "ptr"], returns: "i32" },
    // nvrtcResult nvrtcGetPTXSize(nvrtcProgram prog, size_t *ptxSizeRet);
    nvrtcGetPTXSize: { args: ["ptr", "ptr"], returns: "i32" },
    // nvrtcResult nvrtcGetPTX(nvrtcProgram prog, char *ptx);
    nvrtcGetPTX: { args: ["ptr", "ptr"], returns: "i32" },
    // since CUDA 12
    // nvrtcResult nvrtcGetLTOIRSize(nvrtcProgram prog, size_t *LTOIRSizeRet);
    nvrtcGetLTOIRSize: { args: ["ptr", "ptr"], returns: "i32", optional: true },
    // since CUDA 12
    // nvrtcResult nvrtcGetLTOIR(nvrtcProgram prog, char *LTOIR);
    nvrtcGetLTOIR: { args: ["ptr", "ptr"], returns: "i32", optional: true },
  },
} as const satisfies SymbolTable;

/** Result of every function but nvrtcGetErrorString(). */
export const nvrtcResult = {
  NVRTC_SUCCESS: 0,
  NVRTC_ERROR_OUT_OF_MEMORY: 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE: 2,
  NVRTC_ERROR_INVALID_INPUT: 3,
  NVRTC_ERROR_INVALID_PROGRAM: 4,
  NVRTC_ERROR_INVALID_OPTION: 5,
  NVRTC_ERROR_COMPILATION: 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE: 7,
  NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION: 8,
  NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION: 9,
  NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID: 10,
  NVRTC_ERROR_INTERNAL_ERROR: 11,
  NVRTC_ERROR_TIME_FILE_WRITE_FAILED: 12,
  NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED: 13,
  NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED: 14,
  NVRTC_ERROR_PCH_CREATE: 15,
  NVRTC_ERROR_CANCELLED: 16,
  NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED: 17,
  NVRTC_ERROR_BUSY: 18,
} as const;
