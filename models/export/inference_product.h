// y = x W^T of one layer as exports write it, and what it computes of one row, in plain loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/parameter.h"
#include "ops/products/linear.h"

namespace tritgrad {

// A weight is a trit times the scale of its group of inputs, or a float.
struct InferenceProduct {
  std::string name = {};  // of the layer
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t group = 1;               // inputs that share a scale; the last group may be shorter
  std::vector<std::int8_t> trits = {};  // [outputs x inputs]; empty where weights are floats
  std::vector<float> scales = {};       // [outputs x groups], of trits
  std::vector<float> weights = {};      // [outputs x inputs], floats
  // x is rounded to int8 by its largest magnitude / 127, and sums are whole numbers.
  bool in_integers = false;

  std::int64_t groups() const { return (inputs + group - 1) / group; }
};

// Returns the values of a parameter, row by row. Throws Error for numbers that are not finite.
std::vector<float> exported_values(const Parameter& parameter);

// Describes the product of a weight and its scale, or null. The weights of ternary_master are its
// gamma times trits, so that one scale does for all. Throws Error for numbers that are not finite.
InferenceProduct describe_product(const std::string& name, Parameter& weight, Parameter* scale,
                                  Compute compute);

// A row as products in integers read it: codes times the scale.
struct RoundedRow {
  std::vector<std::int8_t> codes = {};
  float scale = 0.0f;
};
RoundedRow round_to_int8(const std::vector<float>& x);

// Return the product of a row, which has been rounded where it is in integers.
std::vector<float> multiply_in_integers(const InferenceProduct& w,
                                        const std::vector<std::int8_t>& codes, float x_scale);
std::vector<float> multiply_in_floats(const InferenceProduct& w, const std::vector<float>& x);
// Returns the product of a row in the way that it is made.
std::vector<float> multiply_row(const InferenceProduct& w, const std::vector<float>& x);

}  // namespace tritgrad
