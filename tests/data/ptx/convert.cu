// Element-wise conversions, and arithmetic in the 16-bit formats.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void from_float(const float *in, __half *h, __nv_bfloat16 *b, double *d, int *i, unsigned char *u,
                                      long long *l, int n) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  float x = in[k];
  h[k] = __float2half(x);
  b[k] = __float2bfloat16(x);
  d[k] = (double)x;
  i[k] = (int)x;
  u[k] = (unsigned char)__float2uint_rn(x);
  l[k] = __float2ll_rd(x);
}

extern "C" __global__ void to_float(const __half *h, const __nv_bfloat16 *b, const double *d, const long long *l,
                                    float *out, int n) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  out[4 * k] = __half2float(h[k]);
  out[4 * k + 1] = __bfloat162float(b[k]);
  out[4 * k + 2] = (float)d[k];
  out[4 * k + 3] = (float)l[k];
}

extern "C" __global__ void half_math(const __half *a, const __half *b, __half *sum, __half *product, __half *fused, int n) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  sum[k] = __hadd(a[k], b[k]);
  product[k] = __hmul(a[k], b[k]);
  fused[k] = __hfma(a[k], b[k], a[k]);
}

extern "C" __global__ void bfloat_math(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *sum,
                                       __nv_bfloat16 *product, __nv_bfloat16 *fused, int n) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  sum[k] = __hadd(a[k], b[k]);
  product[k] = __hmul(a[k], b[k]);
  fused[k] = __hfma(a[k], b[k], a[k]);
}
