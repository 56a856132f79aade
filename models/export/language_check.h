// Whether an exported language model computes what its model does.
//
// Logits cannot be compared bit by bit: sums in floats differ by their order, and where one of them
// is rounded to int8 to the other side, all that follows moves by about as much as rounding to int8
// does anyway. So probabilities are: a file that says something else is far beyond kMostMeanKl.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/tensor.h"
#include "models/export/language_network.h"

namespace tritgrad {

// Nats of the divergence from the model's probabilities to those of the description, on average.
inline constexpr double kMostMeanKl = 1e-3;

struct LanguageCheck {
  std::int64_t positions = 0;
  std::int64_t differing_tokens = 0;  // positions whose most probable token is another one
  std::int64_t broken_positions = 0;  // at which the model or the description has no finite logits
  double kl_sum = 0.0;                // nats, over positions
  double largest_difference = 0.0;    // of two logits
  double loss_sum_before = 0.0;       // nats, over positions, of the model
  double loss_sum_after = 0.0;        // of the description

  double mean_kl() const { return kl_sum / static_cast<double>(positions); }
  double loss_before() const { return loss_sum_before / static_cast<double>(positions); }
  double loss_after() const { return loss_sum_after / static_cast<double>(positions); }
  bool passed() const { return positions > 0 && broken_positions == 0 && mean_kl() <= kMostMeanKl; }
};

// Adds rows of tokens x [n x tokens] with the tokens behind each [n tokens], of which the model's
// logits are [n tokens x vocabulary]. Rows are independent, and inferred on all threads.
void compare_rows(const LanguageNetwork& network, const Tensor& x,
                  std::span<const std::int32_t> next, const Tensor& logits, LanguageCheck& result);

// Throws Error, which says where or by how much, unless the file `to` may be written.
void require_passed(const LanguageCheck& result, const std::string& to, const std::string& data);

}  // namespace tritgrad
