#include "models/export/inference_product.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/check.h"
#include "engine/formats/storage.h"

namespace tritgrad {

// ---- description ----

std::vector<float> exported_values(const Parameter& parameter) {
  std::vector<float> values(static_cast<std::size_t>(parameter.shape().size()));
  parameter.storage().decode_rows(0, parameter.shape().rows(), values.data());
  check(std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); }),
        "export: '", parameter.name(),
        "' has numbers that are not finite; train again with a lower rate");
  return values;
}

namespace {

std::vector<std::int8_t> signs_of(const std::vector<float>& values) {
  std::vector<std::int8_t> signs;
  signs.reserve(values.size());
  for (const float x : values) signs.push_back(static_cast<std::int8_t>((x > 0.0f) - (x < 0.0f)));
  return signs;
}

}  // namespace

InferenceProduct describe_product(const std::string& name, Parameter& weight, Parameter* scale,
                                  Compute compute) {
  const LinearOperands w = linear_operands("export", weight, scale);
  InferenceProduct product{.name = name,
                           .inputs = w.inputs,
                           .outputs = w.outputs,
                           .group = w.group_size,
                           .in_integers = in_integers(weight, scale, compute)};
  std::vector<float> values = exported_values(weight);
  if (w.scale != nullptr) {
    product.trits = signs_of(values);
    product.scales = exported_values(*w.scale);
  } else if (weight.storage().spec().kind == FormatKind::kTernaryMaster) {
    product.group = w.inputs;
    product.trits = signs_of(values);
    product.scales.assign(
        static_cast<std::size_t>(w.outputs),
        std::abs(*std::max_element(values.begin(), values.end(),
                                   [](float a, float b) { return std::abs(a) < std::abs(b); })));
  } else {
    product.weights = std::move(values);
  }
  return product;
}

// ---- reference ----

RoundedRow round_to_int8(const std::vector<float>& x) {
  constexpr float kShift = 0x1.8p23f;  // a sum with it has no bits below one
  float largest = 0.0f;
  for (const float each : x) largest = std::max(largest, std::abs(each));
  const float inverse = largest < 0x1p-100f ? 0.0f : 127.0f / largest;
  RoundedRow rounded{{}, largest < 0x1p-100f ? 0.0f : largest / 127.0f};
  rounded.codes.reserve(x.size());
  for (const float each : x) {
    const float level = std::clamp(each * inverse, -127.0f, 127.0f);
    rounded.codes.push_back(static_cast<std::int8_t>((level + kShift) - kShift));
  }
  return rounded;
}

std::vector<float> multiply_in_integers(const InferenceProduct& w,
                                        const std::vector<std::int8_t>& codes, float x_scale) {
  std::vector<float> y;
  y.reserve(static_cast<std::size_t>(w.outputs));
  const std::int8_t* trit = w.trits.data();
  const float* scale = w.scales.data();
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    float sum_of_groups = -0.0f;  // what is added to it stays what it is, zeros too
    for (std::int64_t i = 0; i < w.inputs;) {
      std::int32_t sum = 0;
      for (const std::int64_t end = std::min(i + w.group, w.inputs); i < end; ++i) {
        sum += *trit++ * codes[static_cast<std::size_t>(i)];
      }
      sum_of_groups += x_scale * *scale++ * static_cast<float>(sum);
    }
    y.push_back(sum_of_groups);
  }
  return y;
}

std::vector<float> multiply_in_floats(const InferenceProduct& w, const std::vector<float>& x) {
  std::vector<float> y;
  y.reserve(static_cast<std::size_t>(w.outputs));
  std::size_t place = 0, scale = 0;
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    float sum_of_groups = -0.0f;
    for (std::int64_t i = 0; i < w.inputs; ++scale) {
      float sum = 0.0f;
      for (const std::int64_t end = std::min(i + w.group, w.inputs); i < end; ++i, ++place) {
        const float weight =
            w.trits.empty() ? w.weights[place] : static_cast<float>(w.trits[place]);
        sum += weight * x[static_cast<std::size_t>(i)];
      }
      sum_of_groups += w.trits.empty() ? sum : w.scales[scale] * sum;
    }
    y.push_back(sum_of_groups);
  }
  return y;
}

std::vector<float> multiply_row(const InferenceProduct& w, const std::vector<float>& x) {
  if (!w.in_integers) return multiply_in_floats(w, x);
  const RoundedRow rounded = round_to_int8(x);
  return multiply_in_integers(w, rounded.codes, rounded.scale);
}

}  // namespace tritgrad
