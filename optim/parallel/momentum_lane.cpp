#include "optim/parallel/momentum_lane.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/check.h"

namespace tritgrad {
namespace {

// Calls body(first, n, numbers) for all numbers of a moment [first, first + n).
template <typename Body>
void for_each_run(const Storage& moment, const Body& body) {
  for_each_block(moment.shape(), [&](const Block& block) {
    std::array<float, kBlock> numbers;
    moment.decode_master(block, numbers.data());
    body(block.row * moment.shape().cols() + block.col, block.n, numbers.data());
  });
}

}  // namespace

void check_squeezable(const ParameterSpec& parameter, const GroupSpec& group) {
  const RuleSpec& rule = group.rule;
  check(
      rule.kind == RuleKind::kAdamw || (rule.kind == RuleKind::kAdam && rule.weight_decay == 0.0),
      "apmsqueeze: '", parameter.name, "' is trained by rule '", rule_name(rule.kind),
      rule.kind == RuleKind::kAdam ? "' with coupled weight decay" : "'",
      ", but it is Adam's momentum that travels; use rule adamw, or the method allreduce or votes");
  check(group.clip_value == 0.0, "apmsqueeze: '", parameter.name,
        "' has clip_value = ", group.clip_value,
        ", but momentum, which travels, cannot be clipped as gradients are; set "
        "it to 0");
}

MomentumLane::MomentumLane(const Communicator& ranks, Parameter& parameter,
                           const Optimizer& optimizer, Compression compression)
    : Lane(parameter),
      optimizer_(&optimizer),
      ranks_(ranks.size()),
      beta1_(optimizer.group(parameter).rule.beta1),
      sum_(ranks, WireFloat::kFp32, parameter.shape().size()),
      mean_(ranks, compression, parameter.shape().size()),
      used_(static_cast<std::size_t>(size()), Category::kResiduals) {
  parameter.keep_gradient();
  parameter.share_gradient();
  if (optimizer.group(parameter).eco != EcoForm::kOff) {
    momentum_ = Buffer(static_cast<std::size_t>(size()) * sizeof(float), Category::kResiduals);
  }
}

Reduction& MomentumLane::reduction() {
  float* grad = parameter().grad.data;
  if (!frozen_) {
    sum_.attach(grad);
    return sum_;
  }
  // The gradient of the batch is the sum of the shares, so a rank's own is `ranks` times its share.
  const auto fresh = static_cast<float>((1.0 - beta1_) * ranks_);
  const auto kept = static_cast<float>(beta1_);
  const auto* used = used_.as<std::uint8_t>();
  for_each_run(stored_momentum(), [&](std::int64_t first, std::int64_t n, const float* stored) {
    const float* before = momentum_.size() > 0 ? momentum().data() + first : stored;
    for (std::int64_t i = 0; i < n; ++i) {
      const float own = kept * before[i] + fresh * grad[first + i];
      grad[first + i] = used[first + i] != 0 ? own : 0.0f;
    }
  });
  mean_.attach(grad, used);
  return mean_;
}

void MomentumLane::deliver() {
  if (!frozen_ || momentum_.size() == 0) return;
  float* grad = parameter().grad.data;
  const auto kept = static_cast<float>(beta1_);
  for_each_run(stored_momentum(), [&](std::int64_t first, std::int64_t n, const float* stored) {
    float* joint = momentum().data() + first;
    for (std::int64_t i = 0; i < n; ++i) {
      const float carried = stored[i] - joint[i];
      joint[i] = std::exchange(grad[first + i], grad[first + i] + kept * carried);
    }
  });
}

void MomentumLane::freeze() {
  auto* used = used_.as<std::uint8_t>();
  for_each_run(optimizer_->moment(parameter(), 1),
               [&](std::int64_t first, std::int64_t n, const float* second) {
                 for (std::int64_t i = 0; i < n; ++i) used[first + i] = second[i] > 0.0f ? 1 : 0;
               });
  frozen_ = true;
}

void MomentumLane::begin_momentum() {
  if (momentum_.size() == 0) return;
  for_each_run(stored_momentum(), [&](std::int64_t first, std::int64_t n, const float* stored) {
    std::copy_n(stored, n, momentum().data() + first);
  });
}

}  // namespace tritgrad
