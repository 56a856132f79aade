#include "optim/parallel/momentum_lane.h"

#include <algorithm>
#include <array>

#include "engine/check.h"
#include "engine/kernel_table.h"

namespace tritgrad {

void check_squeezable(const ParameterSpec& parameter, const GroupSpec& group) {
  const RuleSpec& rule = group.rule;
  check(rule.kind == RuleKind::kAdamw || (rule.kind == RuleKind::kAdam && rule.weight_decay == 0.0),
        "--dp apmsqueeze: '", parameter.name, "' is trained by rule '", rule_name(rule.kind),
        rule.kind == RuleKind::kAdam ? "' with coupled weight decay" : "'",
        ", but it is Adam's momentum that travels; use rule adamw, or --dp allreduce or votes");
  check(group.clip_value == 0.0, "--dp apmsqueeze: '", parameter.name,
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
      mean_(ranks, compression, parameter.shape().size()) {
  parameter.keep_gradient();
}

Reduction& MomentumLane::reduction() {
  float* grad = parameter().grad.data;
  if (!frozen_) {
    sum_.attach(grad);
    return sum_;
  }
  const Storage& m = optimizer_->moment(parameter(), 0);
  // The gradient of the batch is the sum of the shares, so a rank's own is `ranks` times its share.
  const auto fresh = static_cast<float>((1.0 - beta1_) * ranks_);
  const auto kept = static_cast<float>(beta1_);
  for_each_block(m.shape(), [&](const Block& block) {
    std::array<float, kBlock> before;
    m.decode_master(block, before.data());
    float* g = grad + block.row * m.shape().cols() + block.col;
    const std::uint8_t* used = used_.data() + (g - grad);
    for (std::int64_t i = 0; i < block.n; ++i) {
      const float momentum = kept * before[static_cast<std::size_t>(i)] + fresh * g[i];
      g[i] = used[i] != 0 ? momentum : 0.0f;
    }
  });
  mean_.attach(grad, used_.data());
  return mean_;
}

void MomentumLane::freeze() {
  const Storage& v = optimizer_->moment(parameter(), 1);
  used_.resize(static_cast<std::size_t>(size()));
  for_each_block(v.shape(), [&](const Block& block) {
    std::array<float, kBlock> second;
    v.decode_master(block, second.data());
    for (std::int64_t i = 0; i < block.n; ++i) {
      used_[static_cast<std::size_t>(block.row * v.shape().cols() + block.col + i)] =
          second[static_cast<std::size_t>(i)] > 0.0f ? 1 : 0;
    }
  });
  frozen_ = true;
}

}  // namespace tritgrad
