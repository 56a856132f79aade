// Buckets of MicroAdam's error feedback whose bounds are equal (delta = Delta): between them is
// nothing to divide by, so their codes are 0, and all of the bucket is decoded to delta.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.h"

namespace tritgrad {

struct BucketCount {
  std::int64_t buckets = 0;        // that the rule keeps
  std::int64_t zero_at_start = 0;  // delta = Delta = 0 before the first step
  std::int64_t written = 0;        // by all steps together
  std::int64_t constant = 0;       // of those written
  std::int64_t zero = 0;           // of those constant: delta = 0
};

// Reads the bounds in the optimizer's own state, which must outlive it.
class ConstantBuckets {
 public:
  explicit ConstantBuckets(Optimizer& optimizer);

  void look();  // called after a step
  const BucketCount& count() const { return count_; }

 private:
  std::vector<std::span<const std::uint16_t>> bounds_;  // bf16 [bucket][low, high]
  BucketCount count_;
};

}  // namespace tritgrad
