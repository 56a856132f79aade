#include "models/export/language_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/check.h"
#include "engine/memory/parallel.h"

namespace tritgrad {
namespace {

std::int64_t most_probable(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

// Returns log sum e^logit.
double log_total(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(total);
}

void compare_position(std::span<const float> before, std::span<const float> after,
                      std::int32_t next, LanguageCheck& result) {
  result.positions += 1;
  const auto is_finite = [](float logit) { return std::isfinite(logit); };
  if (!std::all_of(before.begin(), before.end(), is_finite) ||
      !std::all_of(after.begin(), after.end(), is_finite)) {
    result.broken_positions += 1;
    return;
  }
  const double total_before = log_total(before), total_after = log_total(after);
  for (std::size_t t = 0; t < before.size(); ++t) {
    const auto b = static_cast<double>(before[t]), a = static_cast<double>(after[t]);
    result.kl_sum += std::exp(b - total_before) * ((b - total_before) - (a - total_after));
    result.largest_difference = std::max(result.largest_difference, std::abs(b - a));
  }
  const auto token = static_cast<std::size_t>(next);
  result.loss_sum_before += total_before - static_cast<double>(before[token]);
  result.loss_sum_after += total_after - static_cast<double>(after[token]);
  result.differing_tokens += most_probable(before) != most_probable(after) ? 1 : 0;
}

}  // namespace

void compare_rows(const LanguageNetwork& network, const Tensor& x,
                  std::span<const std::int32_t> next, const Tensor& logits, LanguageCheck& result) {
  const std::int64_t vocabulary = network.sizes.vocabulary;
  check(logits.rows() == x.size() && std::ssize(next) == x.size() && logits.cols() == vocabulary,
        "export: logits have shape ", logits.shape.str(), ", but ", x.size(),
        " tokens and a vocabulary of ", vocabulary, " were expected");
  std::vector<std::vector<float>> found(static_cast<std::size_t>(x.rows()));
  parallel_for(x.rows(), [&](std::int64_t row) {
    const std::vector<std::int32_t> tokens(x.row(row), x.row(row) + x.cols());
    found[static_cast<std::size_t>(row)] = infer(network, tokens);
  });
  const auto width = static_cast<std::size_t>(vocabulary);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::vector<float>& row = found[static_cast<std::size_t>(i / x.cols())];
    const auto at = static_cast<std::size_t>(i % x.cols()) * width;
    compare_position({logits.row(i), width}, std::span(row).subspan(at, width),
                     next[static_cast<std::size_t>(i)], result);
  }
}

void require_passed(const LanguageCheck& result, const std::string& to, const std::string& data) {
  check(result.broken_positions == 0, "export: logits of ", result.broken_positions, " of ",
        result.positions, " tokens of '", data,
        "' are not finite, so the model has probably diverged: train again with a lower --lr; '",
        to, "' is not written");
  check(result.passed(), "export: the self-check of '", to, "' failed: the mean divergence is ",
        result.mean_kl(), " nats on ", result.positions, " tokens of '", data, "', at most ",
        kMostMeanKl, " expected; no file is written");
}

}  // namespace tritgrad
