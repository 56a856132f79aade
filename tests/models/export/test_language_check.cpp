// The comparison of an exported language model with its model.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "engine/check.h"
#include "models/export/language_check.h"
#include "tests/support/random_language.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_language_check {
namespace {

constexpr std::int64_t kRows = 3, kTokens = 4, kVocabulary = 10;

LanguageNetwork small_network() {
  return random_language({.sizes = {.layers = 1,
                                    .width = 16,
                                    .heads = 2,
                                    .kv_heads = 2,
                                    .ff = 16,
                                    .context = kTokens,
                                    .vocabulary = kVocabulary}});
}

// Rows of tokens, and what a model makes of them that is the network itself.
struct Compared {
  LanguageNetwork network = small_network();
  std::vector<float> tokens;
  std::vector<std::int32_t> next;
  std::vector<float> logits;

  Compared() {
    for (std::int64_t i = 0; i < kRows * kTokens; ++i) {
      tokens.push_back(static_cast<float>(7 * i % kVocabulary));
      next.push_back(static_cast<std::int32_t>(3 * i % kVocabulary));
    }
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto first = tokens.begin() + row * kTokens;
      const std::vector<std::int32_t> numbers(first, first + kTokens);
      const std::vector<float> of_row = infer(network, numbers);
      logits.insert(logits.end(), of_row.begin(), of_row.end());
    }
  }

  LanguageCheck compare() {
    LanguageCheck result;
    compare_rows(network, {tokens.data(), {kRows, kTokens}}, next,
                 {logits.data(), {kRows * kTokens, kVocabulary}}, result);
    return result;
  }
};

}  // namespace

TEST_CASE("language check: the same network passes with equal losses") {
  Compared same;
  const LanguageCheck result = same.compare();
  CHECK(result.positions == kRows * kTokens);
  CHECK(result.passed());
  CHECK(result.differing_tokens == 0);
  CHECK(result.mean_kl() == 0.0);
  CHECK(result.loss_before() == result.loss_after());
  CHECK_NOTHROW(require_passed(result, "lm.gguf", "text"));
}

TEST_CASE("language check: divergence and loss are those of their definitions") {
  Compared other;
  // A model that is sure of token 0 everywhere, by log 2: p = 2 / 11 and nine times 1 / 11.
  for (std::size_t i = 0; i < other.logits.size(); ++i) {
    other.logits[i] = i % kVocabulary == 0 ? std::log(2.0f) : 0.0f;
  }
  for (float& x : other.network.head) x = 0.0f;  // all logits 0, every token 1 / 10
  other.next.assign(other.next.size(), 0);
  const LanguageCheck result = other.compare();
  const double kl = 2.0 / 11.0 * std::log(20.0 / 11.0) + 9.0 / 11.0 * std::log(10.0 / 11.0);
  CHECK(result.mean_kl() == doctest::Approx(kl).epsilon(1e-6));
  CHECK(result.loss_before() == doctest::Approx(std::log(5.5)).epsilon(1e-6));
  CHECK(result.loss_after() == doctest::Approx(std::log(10.0)).epsilon(1e-6));
  CHECK(result.largest_difference == doctest::Approx(std::log(2.0)).epsilon(1e-6));
  CHECK_THROWS_AS(require_passed(result, "lm.gguf", "text"), Error);
}

TEST_CASE("language check: a single wrong matrix does not pass") {
  Compared wrong;
  for (auto& trit : wrong.network.layers[0].up.trits) trit = static_cast<std::int8_t>(-trit);
  CHECK(!wrong.compare().passed());
}

TEST_CASE("language check: logits that are not finite are told, and fewer are refused") {
  Compared broken;
  broken.logits[5] = std::numeric_limits<float>::infinity();
  const LanguageCheck result = broken.compare();
  CHECK(result.broken_positions == 1);
  CHECK_THROWS_WITH_AS(
      require_passed(result, "lm.gguf", "text"),
      "export: logits of 1 of 12 tokens of 'text' are not finite, so the model has probably "
      "diverged: train again with a lower --lr; 'lm.gguf' is not written",
      Error);
  broken.next.pop_back();
  CHECK_THROWS_AS(broken.compare(), Error);
}

}  // namespace tritgrad::test::test_language_check
