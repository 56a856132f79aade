// Flags: -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512
#define Eigen eigen_avx512
#define TRITGRAD_TARGET target_avx512
#define TRITGRAD_XSIMD_ARCH xsimd::avx512bw
#include "ops/kernels/kernels-inl.h"

namespace tritgrad {

const KernelTable& avx512_kernels() {
  static constexpr KernelTable kTable = target_avx512::make_table("avx512");
  return kTable;
}

}  // namespace tritgrad
