#include "models/generation/sampler.h"

#include <algorithm>
#include <cmath>

#include "engine/check.h"

namespace tritgrad {

Sampler::Sampler(const SamplerSpec& spec) : spec_(spec) {
  check(std::isfinite(spec.temperature) && spec.temperature >= 0.0, "temperature ",
        spec.temperature, " found, 0 or more expected");
  check(spec.top_k >= 0, "top-k ", spec.top_k, " found, 0 (all tokens) or more expected");
  check(spec.top_p > 0.0 && spec.top_p <= 1.0, "top-p ", spec.top_p,
        " found, a number above 0 and at most 1 expected");
}

std::int32_t Sampler::next(std::span<const float> logits) {
  const auto finite = [](float x) { return std::isfinite(x); };
  check(std::all_of(logits.begin(), logits.end(), finite),
        "a logit of the model is not finite; its checkpoint is of a run that failed");
  const auto best = std::max_element(logits.begin(), logits.end());
  if (spec_.temperature == 0.0) return static_cast<std::int32_t>(best - logits.begin());
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double above = static_cast<double>(logits[i]) - static_cast<double>(*best);
    candidates_.emplace_back(std::exp(above / spec_.temperature), static_cast<std::int32_t>(i));
  }
  // Of equals the first, so that the order is one.
  std::sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (spec_.top_k > 0 && std::ssize(candidates_) > spec_.top_k) {
    candidates_.resize(static_cast<std::size_t>(spec_.top_k));
  }
  double sum = 0.0;
  for (const auto& [weight, token] : candidates_) sum += weight;
  double kept = 0.0;
  std::size_t n = 0;
  while (n < candidates_.size() && kept < spec_.top_p * sum) kept += candidates_[n++].first;
  const RandomKey key{spec_.seed, random_stream("sampler")};
  double left = kept * (random_bits(key, drawn_++) + 0.5) * 0x1p-32;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    left -= candidates_[i].first;
    if (left < 0.0) return candidates_[i].second;
  }
  return candidates_[n - 1].second;
}

}  // namespace tritgrad
