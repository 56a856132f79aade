// Compiler flags: those of target_avx512.cpp and -mavx512vnni
#define TRITGRAD_TARGET avx512vnni
#define TRITGRAD_ARCH xsimd::avx512bw
#define Eigen eigen_avx512vnni
#include "ops/kernels/kernels-inl.h"
