// APMSqueeze (Tang et al. 2020), the form of 1-bit Adam (Tang et al. 2021): Adam whose second
// moment is frozen after a warm-up, and whose momentum then travels as signs.
//
//   m_i = beta1 m + (1 - beta1) g_i     of rank i, m the common momentum of the step before
//   m   = the mean of all m_i, compressed with error feedback on both ways (compressed_mean.h)
//   w  -= lr m^ / (sqrt(v^) + eps)
//
// Coordinates whose second moment is 0 never had a gradient; signs cannot say 0, so they are left
// out. Bias is corrected as in Adam, with the v of the last update of the warm-up.
//
// Under ECO the stored momentum also carries the rounding errors of the weights. They are the same
// on all ranks and far larger than gradients, so they are kept out of what travels: m above is then
// the momentum as it was delivered, which the lane remembers, and beta1 of what storage has beyond
// it is added after the reduction.
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
  void deliver() override;
  // The warm-up is over: the optimizer's moments are those of its last update.
  void freeze();
  // After freeze(), unless the momentum comes from a checkpoint: what is stored now is what the
  // next momentum is built on.
  void begin_momentum();
  CompressedMean* compressed() override { return &mean_; }
  // The joint momentum of the last step [n], the same on all ranks; empty but under ECO.
  std::span<float> momentum() const { return floats_of(momentum_); }

 private:
  const Storage& stored_momentum() const { return optimizer_->moment(parameter(), 0); }

  const Optimizer* optimizer_;
  int ranks_;
  double beta1_;
  ChunkSum sum_;
  CompressedMean mean_;
  bool frozen_ = false;
  Buffer used_;      // [n] of 0 or 1
  Buffer momentum_;  // see momentum()
};

}  // namespace tritgrad
