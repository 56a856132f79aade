#include "optim/parallel/gradient_exchange.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/check.h"
#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "engine/memory/parallel.h"

namespace tritgrad {
namespace {

class SumExchange final : public GradientExchange {
 public:
  SumExchange(const Communicator& ranks, Parameter& target, FormatKind format)
      : GradientExchange(target), sum_(ranks, wire_code(format), target.shape().size()) {
    target.keep_gradient(format);
    sum_.attach(target.share_gradient());
  }

  Reduction& reduction() override { return sum_; }

 private:
  FloatSum sum_;
};

class Int8Exchange final : public GradientExchange {
 public:
  Int8Exchange(const Communicator& ranks, Parameter& target)
      : GradientExchange(target),
        ranks_(ranks.size()),
        mean_(ranks, WireCode::kInt8, target.shape().size()) {
    target.keep_gradient();
    target.share_gradient();
  }

  // The gradient of the batch is the sum over the ranks, so the mean of `ranks` times each.
  Reduction& reduction() override {
    float* grad = parameter().grad.data;
    const auto factor = static_cast<float>(ranks_);
    for (std::int64_t i = 0; i < size(); ++i) grad[i] *= factor;
    mean_.attach(grad, nullptr);
    return mean_;
  }
  CompressedMean* compressed() override { return &mean_; }

 private:
  int ranks_;
  CompressedMean mean_;
};

// An exchange that holds the joint gradient itself, and offers it to the optimizer as a lazy one.
class LazyExchange : public GradientExchange {
 public:
  using GradientExchange::GradientExchange;

 protected:
  void offer(bool finite) {
    source_ = {[](const void* exchange, std::int64_t row_begin, std::int64_t row_end,
                  std::int64_t col_begin, std::int64_t col_end, float* out, const PrefetchList&) {
                 const auto* self = static_cast<const LazyExchange*>(exchange);
                 const std::int64_t cols = self->parameter().shape().cols();
                 for (std::int64_t row = row_begin; row < row_end; ++row) {
                   self->read(row * cols + col_begin, col_end - col_begin, out);
                   out += col_end - col_begin;
                 }
               },
               this, finite};
    parameter().lazy_gradient = &source_;
  }

 private:
  // Reads elements [first, first + n), row-major, of the joint gradient.
  virtual void read(std::int64_t first, std::int64_t n, float* out) const = 0;

  LazyGradient source_{};
};

class OrderedExchange final : public LazyExchange {
 public:
  OrderedExchange(const Communicator& ranks, Parameter& target)
      : LazyExchange(target), parts_(ranks, target.shape().size()) {}

  void begin(const Parts& parts) override { parts_.begin(parts.all); }
  void collect(int part) override {
    const float* grad = parameter().read_gradient(0, size(), parts_.part(part));
    if (grad != parts_.part(part)) std::copy_n(grad, size(), parts_.part(part));
  }
  bool is_finite() const override {
    return kernels().reductions.all_finite(parts_.part(0), parts_.count() * size());
  }
  Reduction& reduction() override { return parts_; }
  void deliver() override {
    for (int part = 1; part < parts_.count(); ++part) {
      kernels().reductions.add_scaled(parts_.part(0), parts_.part(part), 1.0f, size());
    }
    offer(kernels().reductions.all_finite(parts_.part(0), size()));
  }

 private:
  void read(std::int64_t first, std::int64_t n, float* out) const override {
    std::copy_n(parts_.part(0) + first, n, out);
  }

  GatheredParts parts_;  // the first part becomes the sum
};

class VoteExchange final : public LazyExchange {
 public:
  VoteExchange(const Communicator& ranks, Parameter& target, bool majority)
      : LazyExchange(target), majority_(majority), sum_(ranks, target.shape().size(), majority) {}

  void begin(const Parts& parts) override {
    sum_.begin(parts.all);
    vote_value_ = majority_ ? 1.0f : 1.0f / static_cast<float>(parts.all);
  }

  // Rows are read in the tiles in which a gradient is cheapest to compute.
  void collect(int /*part*/) override {
    const std::int64_t cols = parameter().shape().cols();
    const LazyGradient* source = parameter().lazy_gradient;
    parallel_ranges(
        parameter().shape().rows(), LazyGradient::kRows, [&](std::int64_t begin, std::int64_t end) {
          alignas(kAlignment) std::array<float, LazyGradient::kRows * kBlock> tile;
          for (std::int64_t col = 0; col < cols; col += kBlock) {
            const std::int64_t n = std::min(kBlock, cols - col);
            if (source != nullptr) {
              source->read(source->context, begin, end, col, col + n, tile.data(), {});
            }
            for (std::int64_t row = begin; row < end; ++row) {
              const std::int64_t first = row * cols + col;
              float* numbers = tile.data() + (row - begin) * n;
              cast(first, n,
                   source != nullptr ? numbers : parameter().read_gradient(first, n, numbers));
            }
          }
        });
  }
  bool is_finite() const override { return true; }
  Reduction& reduction() override { return sum_; }
  void deliver() override { offer(true); }

 private:
  void cast(std::int64_t first, std::int64_t n, const float* grad) {
    std::array<float, kBlock> sign;
    kernels().updates.sign(sign.data(), grad, n);
    std::int8_t* to = sum_.votes() + first;
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<std::int8_t>(to[i] + static_cast<int>(sign[static_cast<std::size_t>(i)]));
    }
  }
  void read(std::int64_t first, std::int64_t n, float* out) const override {
    const std::int8_t* votes = sum_.votes() + first;
    for (std::int64_t i = 0; i < n; ++i) out[i] = vote_value_ * static_cast<float>(votes[i]);
  }

  bool majority_;
  float vote_value_ = 1.0f;
  VoteSum sum_;
};

// Calls body(first, n, numbers) for all numbers of a moment, those of [first, first + n) at a time.
template <typename Body>
void for_each_stored(const Storage& moment, const Body& body) {
  for_each_block(moment.shape(), [&](const Block& block) {
    std::array<float, kBlock> numbers;
    moment.decode_master(block, numbers.data());
    body(block.row * moment.shape().cols() + block.col, block.n, numbers.data());
  });
}

}  // namespace

WireCode wire_code(FormatKind gradients) {
  return gradients == FormatKind::kBf16 ? WireCode::kBf16 : WireCode::kFp32;
}

bool GradientExchange::is_finite() const { return parameter().gradient_is_finite(); }

std::unique_ptr<GradientExchange> make_exchange(ExchangeKind kind, const Communicator& ranks,
                                                Parameter& parameter, FormatKind format,
                                                bool majority) {
  switch (kind) {
    case ExchangeKind::kSum:
      return std::make_unique<SumExchange>(ranks, parameter, format);
    case ExchangeKind::kOrdered:
      return std::make_unique<OrderedExchange>(ranks, parameter);
    case ExchangeKind::kVotes:
      return std::make_unique<VoteExchange>(ranks, parameter, majority);
    case ExchangeKind::kInt8:
      return std::make_unique<Int8Exchange>(ranks, parameter);
    case ExchangeKind::kMomentum:
      break;
  }
  fail("make_exchange: the momentum of '", parameter.name(), "' is exchanged by MomentumExchange");
}

MomentumExchange::MomentumExchange(const Communicator& ranks, Parameter& parameter,
                                   const Optimizer& optimizer, WireCode code)
    : GradientExchange(parameter),
      optimizer_(&optimizer),
      ranks_(ranks.size()),
      beta1_(optimizer.group(parameter).rule.beta1),
      sum_(ranks, WireCode::kFp32, parameter.shape().size()),
      mean_(ranks, code, parameter.shape().size()),
      used_(static_cast<std::size_t>(size()), Category::kResiduals) {
  parameter.keep_gradient();
  parameter.share_gradient();
  if (optimizer.group(parameter).eco != EcoForm::kOff) {
    momentum_ = Buffer(static_cast<std::size_t>(size()) * sizeof(float), Category::kResiduals);
  }
}

Reduction& MomentumExchange::reduction() {
  float* grad = parameter().grad.data;
  if (!frozen_) {
    sum_.attach(grad);
    return sum_;
  }
  // The gradient of the batch is the sum over the ranks, so `ranks` times its addend is what a rank
  // takes for the gradient.
  const auto fresh = static_cast<float>((1.0 - beta1_) * ranks_);
  const auto kept = static_cast<float>(beta1_);
  const auto* used = used_.as<std::uint8_t>();
  for_each_stored(stored_momentum(), [&](std::int64_t first, std::int64_t n, const float* stored) {
    const float* before = momentum_.size() > 0 ? momentum().data() + first : stored;
    for (std::int64_t i = 0; i < n; ++i) {
      const float own = kept * before[i] + fresh * grad[first + i];
      grad[first + i] = used[first + i] != 0 ? own : 0.0f;
    }
  });
  mean_.attach(grad, used);
  return mean_;
}

void MomentumExchange::deliver() {
  if (!frozen_ || momentum_.size() == 0) return;
  float* grad = parameter().grad.data;
  const auto kept = static_cast<float>(beta1_);
  for_each_stored(stored_momentum(), [&](std::int64_t first, std::int64_t n, const float* stored) {
    float* joint = momentum().data() + first;
    for (std::int64_t i = 0; i < n; ++i) {
      const float carried = stored[i] - joint[i];
      joint[i] = std::exchange(grad[first + i], grad[first + i] + kept * carried);
    }
  });
}

void MomentumExchange::freeze() {
  auto* used = used_.as<std::uint8_t>();
  const Storage& second = optimizer_->moment(parameter(), 1);
  for_each_stored(second, [&](std::int64_t first, std::int64_t n, const float* squares) {
    for (std::int64_t i = 0; i < n; ++i) used[first + i] = squares[i] > 0.0f ? 1 : 0;
  });
  frozen_ = true;
}

void MomentumExchange::begin_momentum() {
  if (momentum_.size() == 0) return;
  for_each_stored(stored_momentum(), [&](std::int64_t first, std::int64_t n, const float* stored) {
    std::copy_n(stored, n, momentum().data() + first);
  });
}

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

}  // namespace tritgrad
