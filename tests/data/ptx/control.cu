// Control flow: calls, recursion, switches, local arrays, constants, globals, votes, and what goes wrong.

__constant__ int coefficients[4] = {3, -1, 4, 1};
__device__ int counter = 7;
__device__ int *const where = &counter;

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

extern "C" __global__ void recurse(int *x) { x[threadIdx.x] = fibonacci(x[threadIdx.x]); }

extern "C" __global__ void constants(int *x) {
  x[threadIdx.x] = coefficients[threadIdx.x & 3] * *where;
}

extern "C" __global__ void tickets(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(&counter, 1); }

extern "C" __global__ void local_array(const int *in, int *out, int n) {
  int values[8];
  for (int k = 0; k < 8; k++) values[k] = in[k + threadIdx.x];
  values[in[threadIdx.x] & 7] += 3;
  int sum = 0;
  for (int k = 0; k < n; k++) sum += values[(k * in[0]) & 7];
  out[threadIdx.x] = sum;
}

extern "C" __global__ void branches(const int *in, int *out) {
  int x = in[threadIdx.x];
  switch (x & 15) {
    case 0: x = 3; out[32] = 1; break;
    case 1: x *= 4; break;
    case 2: x = out[33] + 5; break;
    case 3: x -= 1; out[34] = 2; break;
    case 4: x ^= 77; break;
    case 5: out[35] = 5; break;
    case 6: x = -x; break;
    case 7: x = out[36] * 3; break;
    default: x = 1000 + x;
  }
  out[threadIdx.x] = x;
}

extern "C" __global__ void votes(const int *in, unsigned *out) {
  int x = in[threadIdx.x];
  unsigned ballot = __ballot_sync(0xffffffffu, x > 0);
  int any = __any_sync(0xffffffffu, x == 5), all = __all_sync(0xffffffffu, x < 100);
  int other = __shfl_xor_sync(0xffffffffu, x, 5);
  out[threadIdx.x] = ballot ^ (any << 1) ^ all ^ (other << 8);
}

extern "C" __global__ void spin_lock(int *lock, int *value) {
  while (atomicCAS(lock, 0, 1) != 0) {}
  __threadfence();
  *(volatile int *)value = *(volatile int *)value + 1;
  __threadfence();
  atomicExch(lock, 0);
}

extern "C" __global__ void lost_updates(volatile int *value) { *value = *value + 1; }

extern "C" __global__ void half_barrier(int *x) {
  if (threadIdx.x < 32) __syncthreads();
  else while (((volatile int *)x)[0] == 0) __nanosleep(10);
}

extern "C" __global__ void lonely_meeting(int *x) {
  if (threadIdx.x < 16) x[0] = __shfl_sync(0xffffffffu, x[1], 0);
  else __syncwarp();
}

extern "C" __global__ void misaligned(char *x) { *(int *)(x + threadIdx.x) = 1; }

extern "C" __global__ void stop(int *x) { if (x[threadIdx.x] == 9) __trap(); }
