// Zero mean and unit variance, fitted on training rows only.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/dataset.h"

namespace tritgrad {

class Standardizer {
 public:
  // Per feature; for images one mean and one deviation over all pixels. Constant features keep their
  // scale (they become 0). Sums in double, row by row: the result does not depend on threads.
  Standardizer(const Dataset& dataset, const std::vector<std::int32_t>& rows);
  // From saved vectors, one element per feature.
  Standardizer(std::vector<float> means, std::vector<float> inverse_stds);

  const std::vector<float>& means() const { return means_; }
  const std::vector<float>& inverse_stds() const { return inverse_stds_; }

  // row[j] = (row[j] - mean[j]) * inverse_std[j]
  void apply(float* row) const;

 private:
  std::vector<float> means_;
  std::vector<float> inverse_stds_;
};

}  // namespace tritgrad
