// Compiler flags: none beyond the baseline. Only gemm and the peak loops: the other
// reference kernels are scalar code.
#define TRITGRAD_TARGET baseline
#define Eigen eigen_baseline
#include "ops/kernels/products/gemm-inl.h"
#include "ops/kernels/products/peak_loops-inl.h"
