// Compiler flags: -mavx2 -mfma
#define TRITGRAD_TARGET avx2
#define TRITGRAD_ARCH xsimd::avx2
#define Eigen eigen_avx2
#include "ops/kernels/kernels-inl.h"
