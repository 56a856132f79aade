// The lane of parameters that move by votes.
#include <array>

#include "engine/kernels/updates.h"
#include "engine/memory/parallel.h"
#include "optim/parallel/vote_sum.h"

namespace tritgrad {
namespace {

class VoteLane final : public Lane {
 public:
  VoteLane(const Communicator& ranks, Parameter& target, bool majority)
      : Lane(target), majority_(majority), sum_(ranks, target.shape().size(), majority) {}

  void begin(const Parts& parts) override {
    sum_.begin(parts.all);
    share_ = majority_ ? 1.0f : 1.0f / static_cast<float>(parts.all);
  }

  // Rows are read in the tiles in which a gradient is cheapest to compute.
  void collect(int /*part*/) override {
    const std::int64_t cols = parameter().shape().cols();
    const LazyGradient* source = parameter().gradient_source;
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
  void deliver() override {
    source_ = {[](const void* lane, std::int64_t row_begin, std::int64_t row_end,
                  std::int64_t col_begin, std::int64_t col_end, float* out, const PrefetchList&) {
                 static_cast<const VoteLane*>(lane)->read(row_begin, row_end, col_begin, col_end,
                                                          out);
               },
               this, true};
    parameter().gradient_source = &source_;
  }

 private:
  void cast(std::int64_t first, std::int64_t n, const float* grad) {
    std::array<float, kBlock> sign;
    kernels().updates.sign(sign.data(), grad, n);
    std::int8_t* to = sum_.votes() + first;
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<std::int8_t>(to[i] + static_cast<int>(sign[static_cast<std::size_t>(i)]));
    }
  }

  void read(std::int64_t row_begin, std::int64_t row_end, std::int64_t col_begin,
            std::int64_t col_end, float* out) const {
    const std::int64_t cols = parameter().shape().cols();
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      const std::int8_t* votes = sum_.votes() + row * cols;
      for (std::int64_t col = col_begin; col < col_end; ++col) {
        *out++ = share_ * static_cast<float>(votes[col]);
      }
    }
  }

  bool majority_;
  float share_ = 1.0f;  // what one vote counts
  VoteSum sum_;
  LazyGradient source_{};
};

}  // namespace

std::unique_ptr<Lane> make_vote_lane(const Communicator& ranks, Parameter& parameter,
                                     bool majority) {
  return std::make_unique<VoteLane>(ranks, parameter, majority);
}

}  // namespace tritgrad
