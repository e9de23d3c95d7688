// Copies between any two strided layouts, for elements of 1 to 16 bytes; indices have 64 bits.

struct Layout {
  int ndim;
  long long shape[6], from[6], to[6];
};

template <class T> __device__ void copy(const T *source, T *target, const Layout &layout, long long n) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) {
    long long rest = i, from = 0, to = 0;
    for (int axis = layout.ndim - 1; axis >= 0; axis--) {
      long long index = rest % layout.shape[axis];
      rest /= layout.shape[axis];
      from += index * layout.from[axis];
      to += index * layout.to[axis];
    }
    target[to] = source[from];
  }
}

extern "C" __global__ void copy1(const char *s, char *d, const Layout l, long long n) { copy(s, d, l, n); }
extern "C" __global__ void copy2(const short *s, short *d, const Layout l, long long n) { copy(s, d, l, n); }
extern "C" __global__ void copy4(const int *s, int *d, const Layout l, long long n) { copy(s, d, l, n); }
extern "C" __global__ void copy8(const long long *s, long long *d, const Layout l, long long n) { copy(s, d, l, n); }
extern "C" __global__ void copy16(const int4 *s, int4 *d, const Layout l, long long n) { copy(s, d, l, n); }
