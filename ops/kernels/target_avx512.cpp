// Compiler flags: -mavx512f -mavx512cd -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma
// (xsimd reaches its avx512bw through avx512cd; no processor has the former without the latter.)
#define TRITGRAD_TARGET avx512
#define TRITGRAD_ARCH xsimd::avx512bw
#define Eigen eigen_avx512
#include "ops/kernels/kernels-inl.h"
