// Times the operations of cuda.ts as bare calls of the driver from C: the least that any language pays for them here.
// Prints a line when it is ready, and then, for each name that it reads, the nanoseconds of a call (null for what it does not
// know), all in JSON.
//
// Run by cuda.ts, which compiles it with cc if there is one: cc -O2 cuda_floor.c -ldl. Needs a GPU, and no header of CUDA.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 200, SAMPLES = 20, WARM = 3 };

typedef void *handle;

static void *library;

static void *symbol(const char *name) {
  void *found = dlsym(library, name);
  if (!found) fprintf(stderr, "libcuda has no %s\n", name), exit(1);
  return found;
}

static void check(int code, const char *call) {
  if (code) fprintf(stderr, "%s answered %d\n", call, code), exit(1);
}

#define CALL(name, types, ...) check(((int(*) types)symbol(#name))(__VA_ARGS__), #name)

static handle stream, idle, other, event, pool, function;
static uint64_t block;
static void *parameters[4];

static int (*record)(handle, handle), (*wait_event)(handle, handle, unsigned), (*allocate)(uint64_t *, size_t, handle, handle);
static int (*release)(uint64_t, handle), (*attribute)(void *, int, uint64_t), (*synchronize)(void);
static int (*launch)(handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);

static int record_wait(void) { return record(event, idle) | wait_event(other, event, 0); }

static int record_wait_after_allocation(void) { return record(event, stream) | wait_event(other, event, 0); }

static int allocate_free(void) {
  uint64_t made;
  int code = allocate(&made, 1 << 20, pool, stream);
  return code ? code : release(made, stream);
}

static int pointer_attribute(void) {
  int ordinal;
  return attribute(&ordinal, 9, block);
}

static int launch_four(void) { return launch(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL); }

static const struct { const char *name; int (*run)(void); } operations[] = {
  { "record + wait", record_wait },
  { "record + wait, after an allocation", record_wait_after_allocation },
  { "allocate + free", allocate_free },
  { "pointer attributes", pointer_attribute },
  { "launch, four arguments", launch_four },
};

static int ascending(const void *one, const void *two) {
  double left = *(const double *)one, right = *(const double *)two;
  return (left > right) - (left < right);
}

// The median of batches; the device is waited for between them, off the clock.
static double measure(int (*run)(void)) {
  double times[SAMPLES];
  for (int sample = -WARM; sample < SAMPLES; sample++) {
    struct timespec start, end;
    int code = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < BATCH; i++) code |= run();
    clock_gettime(CLOCK_MONOTONIC, &end);
    check(code | synchronize(), "an operation");
    if (sample >= 0) times[sample] = ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / BATCH;
  }
  qsort(times, SAMPLES, sizeof *times, ascending);
  return times[SAMPLES / 2];
}

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
  ".visible .entry scale(.param .u64 y, .param .u64 x, .param .f32 a, .param .s32 n) { ret; }\n";

int main(void) {
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
  handle context, module;
  CALL(cuInit, (unsigned), 0);
  CALL(cuDevicePrimaryCtxRetain, (handle *, int), &context, 0);
  CALL(cuCtxSetCurrent, (handle), context);
  CALL(cuStreamCreate, (handle *, unsigned), &stream, 1);
  CALL(cuStreamCreate, (handle *, unsigned), &idle, 1);
  CALL(cuStreamCreate, (handle *, unsigned), &other, 1);
  CALL(cuEventCreate, (handle *, unsigned), &event, 2);
  CALL(cuDeviceGetDefaultMemPool, (handle *, int), &pool, 0);
  uint64_t threshold = UINT64_MAX; // all is kept, as cuda.core and Causeway have it: else each batch would ask the system anew
  CALL(cuMemPoolSetAttribute, (handle, int, void *), pool, 4, &threshold);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &block, 1 << 20);
  CALL(cuModuleLoadData, (handle *, const char *), &module, ptx);
  CALL(cuModuleGetFunction, (handle *, handle, const char *), &function, module, "scale");
  static float factor = 2;
  static int count = 7;
  parameters[0] = parameters[1] = &block, parameters[2] = &factor, parameters[3] = &count;
  record = symbol("cuEventRecord"), wait_event = symbol("cuStreamWaitEvent"), allocate = symbol("cuMemAllocFromPoolAsync");
  release = symbol("cuMemFreeAsync"), attribute = symbol("cuPointerGetAttribute"), synchronize = symbol("cuCtxSynchronize");
  launch = symbol("cuLaunchKernel");

  check(allocate_free(), "an allocation on the stream that has allocated");

  puts("\"C\"");
  fflush(stdout);
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    double taken = -1;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
      if (strlen(line) == strlen(operations[i].name) + 3 && !strncmp(line + 1, operations[i].name, strlen(operations[i].name)))
        taken = measure(operations[i].run);
    if (taken < 0) puts("null");
    else printf("%.1f\n", taken);
    fflush(stdout);
  }
  return 0;
}
