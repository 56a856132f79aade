#include "engine/standardizer.h"

#include <algorithm>
#include <cmath>

#include "engine/check.h"

namespace tritgrad {
namespace {

// Calls visit(j, value) for all values of the rows.
template <typename Visit>
void for_values(const Dataset& dataset, const std::vector<std::int32_t>& rows, Visit&& visit) {
  std::vector<float> row(static_cast<std::size_t>(dataset.features));
  for (std::int32_t index : rows) {
    dataset.gather(index, row.data());
    for (std::size_t j = 0; j < row.size(); ++j) visit(j, static_cast<double>(row[j]));
  }
}

}  // namespace

Standardizer::Standardizer(const Dataset& dataset, const std::vector<std::int32_t>& rows) {
  check(!rows.empty(), "Standardizer: no rows to fit on");
  const auto features = static_cast<std::size_t>(dataset.features);
  const std::size_t groups = dataset.image ? 1 : features;
  const double count = static_cast<double>(rows.size()) * static_cast<double>(features / groups);
  const auto group = [&](std::size_t j) { return groups == 1 ? 0 : j; };

  std::vector<double> means(groups, 0.0);
  for_values(dataset, rows, [&](std::size_t j, double value) { means[group(j)] += value / count; });
  std::vector<double> variances(groups, 0.0);
  for_values(dataset, rows, [&](std::size_t j, double value) {
    const double centered = value - means[group(j)];
    variances[group(j)] += centered * centered / count;
  });
  for (std::size_t j = 0; j < features; ++j) {
    const double mean = means[group(j)];
    const double deviation = std::sqrt(variances[group(j)]);
    // Rounding noise of a constant column is no deviation.
    const bool constant = deviation <= 1e-7 * std::max(1e-30, std::abs(mean));
    means_.push_back(static_cast<float>(mean));
    inverse_stds_.push_back(constant ? 1.0f : static_cast<float>(1.0 / deviation));
  }
}

Standardizer::Standardizer(std::vector<float> means, std::vector<float> inverse_stds)
    : means_(std::move(means)), inverse_stds_(std::move(inverse_stds)) {
  check(means_.size() == inverse_stds_.size(), "Standardizer: ", means_.size(), " means but ",
        inverse_stds_.size(), " deviations");
}

void Standardizer::apply(float* row) const {
  for (std::size_t j = 0; j < means_.size(); ++j) row[j] = (row[j] - means_[j]) * inverse_stds_[j];
}

}  // namespace tritgrad
