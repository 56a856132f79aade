// Compiler flags: those of target_avx512vbmi.cpp and -mamx-tile -mamx-int8
#define TRITGRAD_TARGET avx512amx
#define TRITGRAD_ARCH xsimd::avx512bw
#define Eigen eigen_avx512amx
#define TRITGRAD_TILES  // compilers name their own macro for it differently
#include "ops/kernels/kernels-inl.h"
