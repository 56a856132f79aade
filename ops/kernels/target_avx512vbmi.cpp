// Compiler flags: those of target_avx512.cpp and -mavx512vnni, -mavx512ifma and -mavx512vbmi
#define TRITGRAD_TARGET avx512vbmi
#define TRITGRAD_ARCH xsimd::avx512bw
#define Eigen eigen_avx512vbmi
#include "ops/kernels/kernels-inl.h"
