// The forecast of what a rank sends for one step, by formula: nothing is allocated, nothing runs.
//
// With d elements, N ranks, P parts and f = (N - 1) / N:
//   sums of floats         2 f d b, b = 4 (fp32) or 2 (bf16)
//   gathered parts         (N - 1) 4 d P / N
//   votes                  f d (s + r), s and r bytes of an addend's and of a sum's code
//   int8, signs            2 f (1.0625 d), 2 f (d / 8 + 4 N)
// up to what chunks of whole bytes and scales add, which is counted here to the byte.
#pragma once

#include <cmath>

#include "optim/parallel/data_parallel.h"

namespace tritgrad {

struct TrafficForecast {
  std::int64_t gradients = 0;   // or votes, or momentum; of rank 0
  std::int64_t statistics = 0;  // of batch norm
  std::int64_t sums = 0;        // losses, counts, notes
  std::int64_t warmup = 0;      // apmsqueeze: in place of `gradients` while it lasts
  std::int64_t state = 0;       // bytes that a rank keeps for compression: errors, masks, momentum

  std::int64_t total() const { return gradients + statistics + sums; }
  // Returns the mean of a run of which that part of the steps, 0 to 1, is warm-up; itself without
  // warm-up.
  TrafficForecast with_warmup(double part) const {
    TrafficForecast mean = *this;
    if (warmup > 0) {
      mean.gradients += std::llround(part * static_cast<double>(warmup - gradients));
    }
    return mean;
  }
};

// Returns whether so many parts of a batch can vote: sums of votes have 8 bits. True where nothing
// travels as votes.
bool votes_fit(const std::vector<ParameterSpec>& plan, const Optimizer::GroupOf& group_of,
               const ParallelSpec& spec, int parts);
// Throws Error where they cannot.
void check_votes_fit(const std::vector<ParameterSpec>& plan, const Optimizer::GroupOf& group_of,
                     const ParallelSpec& spec, int parts);

// Returns the bytes in which an exchange keeps n gradients from part to part: floats in the format
// `gradients`, or votes.
std::int64_t kept_bytes(ExchangeKind kind, std::int64_t n, FormatKind gradients);

// Counts the bytes of a step of `parts` micro-batches, those of all ranks; votes are counted as if
// nobody abstained. Throws Error for what training would refuse.
TrafficForecast forecast_traffic(const std::vector<ParameterSpec>& plan,
                                 const Optimizer::GroupOf& group_of, const ParallelSpec& spec,
                                 int ranks, int parts, FormatKind gradients);

}  // namespace tritgrad
