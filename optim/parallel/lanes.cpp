// Lanes of gradients that are sums of floats.
#include <algorithm>

#include "engine/kernels/reductions.h"
#include "optim/finite_gradient.h"
#include "optim/parallel/chunk_sum.h"
#include "optim/parallel/gathered_parts.h"
#include "optim/parallel/lane.h"

namespace tritgrad {
namespace {

class SumLane final : public Lane {
 public:
  SumLane(const Communicator& ranks, Parameter& target, FormatKind format)
      : Lane(target),
        sum_(ranks, format == FormatKind::kBf16 ? WireFloat::kBf16 : WireFloat::kFp32,
             target.shape().size()) {
    target.keep_gradient(format);
    sum_.attach(target.share_gradient());
  }

  Reduction& reduction() override { return sum_; }

 private:
  ChunkSum sum_;
};

class OrderedLane final : public Lane {
 public:
  OrderedLane(const Communicator& ranks, Parameter& target)
      : Lane(target), shares_(ranks, target.shape().size()) {}

  void begin(const Parts& parts) override { shares_.begin(parts.all); }
  void collect(int part) override {
    const float* grad = parameter().read_gradient(0, size(), shares_.part(part));
    if (grad != shares_.part(part)) std::copy_n(grad, size(), shares_.part(part));
  }
  bool is_finite() const override {
    return kernels().reductions.all_finite(shares_.part(0), shares_.count() * size());
  }
  Reduction& reduction() override { return shares_; }
  void deliver() override {
    for (int part = 1; part < shares_.count(); ++part) {
      kernels().reductions.add_scaled(shares_.part(0), shares_.part(part), 1.0f, size());
    }
    source_ = {[](const void* lane, std::int64_t row_begin, std::int64_t row_end,
                  std::int64_t col_begin, std::int64_t col_end, float* out, const PrefetchList&) {
                 static_cast<const OrderedLane*>(lane)->read(row_begin, row_end, col_begin, col_end,
                                                             out);
               },
               this, kernels().reductions.all_finite(shares_.part(0), size())};
    parameter().gradient_source = &source_;
  }

 private:
  void read(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
            std::int64_t col_end, float* out) const {
    const std::int64_t cols = parameter().shape().cols();
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      out = std::copy_n(shares_.part(0) + row * cols + col_begin, col_end - col_begin, out);
    }
  }

  GatheredParts shares_;  // the first part becomes the sum
  LazyGradient source_{};
};

class Int8Lane final : public Lane {
 public:
  Int8Lane(const Communicator& ranks, Parameter& target)
      : Lane(target),
        ranks_(ranks.size()),
        mean_(ranks, Compression::kInt8, target.shape().size()) {
    target.keep_gradient();
    target.share_gradient();
  }

  // The gradient of the batch is the sum of the shares, so the mean of `ranks` times each.
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

}  // namespace

bool Lane::is_finite() const { return gradient_is_finite(parameter()); }

std::unique_ptr<Lane> make_sum_lane(const Communicator& ranks, Parameter& parameter,
                                    FormatKind format) {
  return std::make_unique<SumLane>(ranks, parameter, format);
}

std::unique_ptr<Lane> make_ordered_lane(const Communicator& ranks, Parameter& parameter) {
  return std::make_unique<OrderedLane>(ranks, parameter);
}

std::unique_ptr<Lane> make_int8_lane(const Communicator& ranks, Parameter& parameter) {
  return std::make_unique<Int8Lane>(ranks, parameter);
}

}  // namespace tritgrad
