// What kernels say: printf, which promotes its arguments, and assert, which ends the launch.

extern "C" __global__ void hello() { printf("hello\n"); }

extern "C" __global__ void promoted(int *x, float f, double d, long long l) {
  char c = (char)x[1];
  short s = (short)x[2];
  x[0] = printf("%d %s %f %lld %c %p %% %5.2f|%hd\n", x[0], "text", f, l, c, (void *)x, d, s);
}

extern "C" __global__ void each(int name) { printf("%d:%d.%d ", name, blockIdx.x, threadIdx.x); }

extern "C" __global__ void wide(int *x) {
  x[0] = printf("");
  x[1] = printf(nullptr);
  x[2] = printf("%*s%-*.*s", 0, "", 0, 0, "");
}

extern "C" __global__ void positive(int *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(x[i] > 0 && "a number");
  x[i] = -1;
}

// A thread that has failed is waited for no longer, and not for ever by those that spin.
extern "C" __global__ void waiting(volatile int *flag) {
  if (threadIdx.x == 0) {
    assert(flag[1] != 0);
    flag[0] = 1;
  }
  while (flag[0] == 0) {}
}
