// Draws the next token from a model's logits.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/random.h"

namespace tritgrad {

struct SamplerSpec {
  double temperature = 0.8;  // logits are divided by it; 0: the most likely token, always
  std::int64_t top_k = 0;    // only so many of the most likely tokens; 0: all
  double top_p = 1.0;        // only the most likely tokens that together have this probability
                             // (Holtzman et al. 2020)
  std::uint64_t seed = 1;
};

class Sampler {
 public:
  // Throws Error for numbers out of range: temperature 0 or more, top_k 0 or more, top_p in (0, 1].
  explicit Sampler(const SamplerSpec& spec);

  // Returns a token. The n-th call draws with the n-th number of the seed. Throws Error where a
  // logit is not finite.
  std::int32_t next(std::span<const float> logits);

 private:
  SamplerSpec spec_;
  std::uint32_t drawn_ = 0;
  std::vector<std::pair<double, std::int32_t>> candidates_;  // probability and token
};

}  // namespace tritgrad
