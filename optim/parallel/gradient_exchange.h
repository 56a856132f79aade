// The way of the gradient of one parameter from the ranks to the optimizer.
//
// Each rank works on some parts (micro-batches) of the batch. An exchange collects the
// parameter's gradient in each of them, hands it to a reduction, and leaves the gradient of the
// whole batch in the parameter, the same bits on all ranks.
#pragma once

#include <memory>

#include "optim/optimizer.h"
#include "optim/parallel/rank_sums.h"

namespace tritgrad {

enum class ExchangeKind {
  // The sum of the gradients of all ranks, in their order; it travels in the format in which
  // gradients are kept, fp32 or bf16.
  kSum,
  // The sum in the order of the parts, which no number of ranks changes. Every part travels.
  kOrdered,
  // Each part votes with the sign of its gradient; the joint gradient is the mean vote, or its sign
  // (majority). Votes and their sums are integers, so this is exact. A gradient that is not finite
  // abstains.
  kVotes,
  // The mean over the ranks as int8, with error feedback.
  kInt8,
  // Adam's momentum as signs: MomentumExchange.
  kMomentum,
};

// Returns the code in which sums of gradients of a format, fp32 or bf16, travel.
WireCode wire_code(FormatKind gradients);

class GradientExchange {
 public:
  explicit GradientExchange(Parameter& parameter) : parameter_(&parameter) {}
  virtual ~GradientExchange() = default;
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  // Begins a step; comes before its first part.
  virtual void begin(const Parts& /*parts*/) {}
  // Takes the parameter's gradient, which is complete in one of this rank's parts and weighted by
  // the rows of the part. Kept gradients add up by themselves.
  virtual void collect(int /*part*/) {}
  // Returns whether the collected gradients are finite: nothing else may be reduced.
  virtual bool is_finite() const;
  // Returns the reduction that is due now.
  virtual Reduction& reduction() = 0;
  // Gives the parameter the joint gradient, after the reduction and until release().
  virtual void deliver() {}
  void release() { parameter().lazy_gradient = nullptr; }

  // Returns the mean that has still something to send; null where nothing is dropped.
  virtual CompressedMean* compressed() { return nullptr; }

  Parameter& parameter() const { return *parameter_; }

 protected:
  std::int64_t size() const { return parameter_->shape().size(); }

 private:
  Parameter* parameter_;
};

// Makes an exchange of any kind but kMomentum. `format` is that of kept gradients.
std::unique_ptr<GradientExchange> make_exchange(ExchangeKind kind, const Communicator& ranks,
                                                Parameter& parameter, FormatKind format,
                                                bool majority);

// APMSqueeze (Tang et al. 2020), the form of 1-bit Adam (Tang et al. 2021): Adam whose second
// moment is frozen after a warm-up, and whose momentum then travels as signs.
//
//   m_i = beta1 m + (1 - beta1) g_i     of rank i, m the common momentum of the step before
//   m   = the mean of all m_i, compressed with error feedback on both ways (CompressedMean)
//   w  -= lr m^ / (sqrt(v^) + eps)
//
// Coordinates whose second moment is 0 never had a gradient; signs cannot say 0, so they are left
// out. Bias is corrected as in Adam, with the v of the last update of the warm-up.
//
// Under ECO the stored momentum also carries the rounding errors of the weights. They are the same
// on all ranks and far larger than gradients, so they are kept out of what travels: m above is then
// the momentum as it was delivered, which the exchange remembers, and beta1 of what storage has
// beyond it is added after the reduction.
class MomentumExchange final : public GradientExchange {
 public:
  // `optimizer` holds the moments. code: kMeanSigns or kRmsSigns.
  MomentumExchange(const Communicator& ranks, Parameter& parameter, const Optimizer& optimizer,
                   WireCode code);

  // Delivers the joint gradient before freeze(), the joint momentum after it.
  Reduction& reduction() override;
  void deliver() override;
  // Ends the warm-up: the optimizer's moments are those of its last update.
  void freeze();
  // Takes what is stored now as what the next momentum is built on; comes after freeze(), unless
  // the momentum comes from a checkpoint.
  void begin_momentum();
  CompressedMean* compressed() override { return &mean_; }
  // The joint momentum of the last step [n], the same on all ranks; empty but under ECO.
  std::span<float> momentum() const { return floats_of(momentum_); }

 private:
  const Storage& stored_momentum() const { return optimizer_->moment(parameter(), 0); }

  const Optimizer* optimizer_;
  int ranks_;
  double beta1_;
  FloatSum sum_;
  CompressedMean mean_;
  bool frozen_ = false;
  Buffer used_;      // [n] of 0 or 1
  Buffer momentum_;  // see momentum()
};

// Throws Error where a parameter is trained by something else than Adam.
void check_squeezable(const ParameterSpec& parameter, const GroupSpec& group);

}  // namespace tritgrad
