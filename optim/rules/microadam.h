// MicroAdam (Modoranu et al. 2024): Adam whose moments are recomputed from a window of sparse
// gradients, and whose compression error is fed back.
//
//     a = g + decode(e)                      error feedback of the step before
//     I = indices of the k = ceil(density n) largest |a| of a chunk; V = a[I] in bf16, kept in row
//         (t - 1) mod window of a ring; a[I] <- a[I] - V
//     e = encode(a)                          b-bit codes, bounds per bucket
//     z1 = sum over rows of beta1^age V, z2 = sum over rows of beta2^age V^2      (newest: age 0)
//     direction = m^ / (sqrt(v^) + eps) + weight_decay * master
//     m^ = z1 (1 - beta1) / (1 - beta1^w), v^ likewise with beta2
//
// kCorrected: w = min(t, window), the mass that the window really has. kPublished: w = t, which
// makes v^ as little as 1 - beta2^window = 1 % of what it should be, so the rate grows by 3 to 6
// during the first thousands of steps. kStudy: the code of a reproduction study, with its two
// mistakes: ages are scrambled, (t - age) mod window, so that a gradient keeps the weight of its
// place in the ring for as long as it is remembered, and the newest one counts most only once in
// `window` steps; and the bias correction is applied a second time to the step.
//
// Chunks have up to 4096 elements (the top-k is taken in each), so indices fit 16 bits. Ties go to
// the lowest index. Per parameter: 4 density window bytes of window, feedback_bits / 8 of codes and
// 4 / bucket of bounds: 0.9625 with the defaults.
#pragma once

#include <vector>

#include "optim/chunks.h"
#include "optim/rule.h"

namespace tritgrad {

class Microadam : public Rule {
 public:
  static constexpr std::int64_t kElements = kMostFeedback;

  explicit Microadam(const RuleSpec& spec) : spec_(spec) {}

  WeightReading weight_reading() const override {
    return spec_.weight_decay > 0.0 ? WeightReading::kMaster : WeightReading::kNone;
  }
  std::int64_t chunk_limit() const override { return kElements; }
  std::vector<PlaneSpec> planes(const Shape& shape) const override;
  void attach(const Shape& shape, const std::vector<Plane>& planes) override;
  void begin(const RuleStep& step) override;
  void direct(const RuleBlock& block) const override;

 private:
  // The state of a chunk, or of all chunks before one, which is where that one's state begins.
  struct Extent {
    std::int64_t kept = 0;     // elements in a row of the ring
    std::int64_t codes = 0;    // bytes
    std::int64_t buckets = 0;  // pairs of bounds
  };

  std::int64_t kept_of(std::int64_t n) const;
  // Returns where the state of each chunk begins, and last where all of it ends.
  std::vector<Extent> lay_out(const Chunks& chunks) const;
  Feedback feedback(const Extent& begin) const;
  void store_feedback(const Extent& begin, const float* a, std::int64_t n,
                      std::int64_t chunk_index) const;
  void remember(const Extent& begin, float* a, std::int64_t n) const;
  void moments_of_window(const Extent& begin, std::int64_t n, float* z1, float* z2) const;

  RuleSpec spec_;
  std::vector<Extent> begins_;  // by chunk
  std::int64_t kept_total_ = 0;
  Chunks chunks_{Shape{0}, kElements};
  std::uint16_t* index_ = nullptr;  // [window][kept]
  std::uint16_t* value_ = nullptr;  // bf16 [window][kept]
  std::uint8_t* codes_ = nullptr;
  std::uint16_t* bounds_ = nullptr;  // bf16 [bucket][low, high]

  std::int64_t t_ = 0;
  RandomKey key_;
  std::vector<float> weight1_, weight2_;  // by row of the ring, (1 - beta) / mass included
  float rate_ = 1.0f;                     // kStudy: the second bias correction
};

}  // namespace tritgrad
