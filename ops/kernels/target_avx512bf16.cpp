// Compiler flags: those of target_avx512.cpp and -mavx512bf16
// No kernel uses bf16 instructions; this object only tells how fast they would be.
#define TRITGRAD_TARGET avx512bf16
#include "ops/kernels/products/peak_loops-inl.h"
