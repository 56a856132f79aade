// Flags: -mavx2 -mfma
#define Eigen eigen_avx2
#define TRITGRAD_TARGET target_avx2
#define TRITGRAD_XSIMD_ARCH xsimd::avx2
#include "ops/kernels/kernels-inl.h"

namespace tritgrad {

const KernelTable& avx2_kernels() {
  static constexpr KernelTable kTable = target_avx2::make_table("avx2");
  return kTable;
}

}  // namespace tritgrad
