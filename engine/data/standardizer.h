// Features to zero mean and unit variance: out = (x - mean) * inverse_std, with x a value or, of a
// pixel, its square root.
//
// Square roots part the dark tones, where most pixels of clothes or handwriting on black lie, and
// press the light ones together. Fitted on the values of training rows that are there, in double.
// Tables have one mean and one scale per feature, images one for all pixels. A feature that is
// constant over the training rows, or varies too little for fp32, keeps its unit (inverse_std = 1).
// Results are finite: they saturate at the largest fp32 number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/dataset.h"

namespace tritgrad {

enum class PixelScale { kLinear, kSquareRoot };

// "linear" or "sqrt"; parsing throws Error on anything else.
PixelScale parse_pixel_scale(const std::string& text);
const char* to_text(PixelScale scale);

class Standardizer {
 public:
  // Throws Error when there are no rows, and on square roots of what are no pixels of a byte each.
  static Standardizer fit(const Dataset& dataset, std::span<const std::int32_t> rows,
                          PixelScale pixels = PixelScale::kLinear);
  // From saved vectors: as many as features, or one for all.
  Standardizer(std::vector<float> means, std::vector<float> inverse_stds,
               PixelScale pixels = PixelScale::kLinear);

  const std::vector<float>& means() const { return means_; }
  const std::vector<float>& inverse_stds() const { return inverse_stds_; }

  // Throws when the vectors do not fit the number of features.
  void check_features(std::int64_t features) const;
  // Puts means in the place of values that are missing (NaN), which apply() then makes 0.
  void fill(std::span<float> row) const;
  // One row in place.
  void apply(std::span<float> row) const;

 private:
  std::vector<float> means_;
  std::vector<float> inverse_stds_;
  PixelScale pixels_;
};

}  // namespace tritgrad
