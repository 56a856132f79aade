// APMSqueeze (Tang et al. 2020), the form of 1-bit Adam (Tang et al. 2021): Adam whose second
// moment is frozen after a warm-up, and whose momentum then travels as signs.
//
//   m_i = beta1 m + (1 - beta1) g_i     of rank i, m the common momentum of the step before
//   m   = the mean of all m_i, compressed with error feedback on both ways (compressed_mean.h)
//   w  -= lr m^ / (sqrt(v^) + eps)
//
// Coordinates whose second moment is 0 never had a gradient; signs cannot say 0, so they are left
// out. Bias is corrected as in Adam, with the v of the last update of the warm-up.
#pragma once

#include "optim/optimizer.h"
#include "optim/parallel/chunk_sum.h"
#include "optim/parallel/lane.h"

namespace tritgrad {

// Throws Error where a parameter is trained by something else than Adam.
void check_squeezable(const ParameterSpec& parameter, const GroupSpec& group);

class MomentumLane final : public Lane {
 public:
  // `optimizer` holds the moments. compression: kSign or kSignRms.
  MomentumLane(const Communicator& ranks, Parameter& parameter, const Optimizer& optimizer,
               Compression compression);

  // Delivers the joint gradient before freeze(), the joint momentum after it.
  Reduction& reduction() override;
  void freeze();
  CompressedMean* compressed() override { return &mean_; }

 private:
  const Optimizer* optimizer_;
  int ranks_;
  double beta1_;
  ChunkSum sum_;
  CompressedMean mean_;
  bool frozen_ = false;
  std::vector<std::uint8_t> used_;
};

}  // namespace tritgrad
