#include "models/training/confusion.h"

#include <algorithm>
#include <numeric>

namespace tritgrad {

Confusion::Confusion(const std::vector<std::string>& class_names)
    : classes(class_names),
      counts(class_names.size(), std::vector<std::int64_t>(class_names.size(), 0)) {}

void Confusion::add(const Tensor& logits, std::span<const std::int32_t> labels) {
  for (std::int64_t i = 0; i < logits.rows(); ++i) {
    const float* row = logits.row(i);
    const auto predicted =
        static_cast<std::size_t>(std::max_element(row, row + logits.cols()) - row);
    const auto actual = static_cast<std::size_t>(labels[static_cast<std::size_t>(i)]);
    ++counts[actual][predicted];
  }
}

void Confusion::add(const Confusion& other) {
  for (std::size_t actual = 0; actual < counts.size(); ++actual) {
    for (std::size_t predicted = 0; predicted < counts.size(); ++predicted) {
      counts[actual][predicted] += other.counts[actual][predicted];
    }
  }
}

std::int64_t Confusion::rows_of(std::size_t actual) const {
  return std::accumulate(counts[actual].begin(), counts[actual].end(), std::int64_t{0});
}

double Confusion::recall(std::size_t actual) const {
  const std::int64_t rows = rows_of(actual);
  return rows == 0 ? 0.0 : static_cast<double>(counts[actual][actual]) / static_cast<double>(rows);
}

double Confusion::balanced_accuracy() const {
  double sum = 0.0;
  int present = 0;
  for (std::size_t actual = 0; actual < classes.size(); ++actual) {
    sum += recall(actual);
    present += rows_of(actual) > 0;
  }
  return present == 0 ? 0.0 : sum / present;
}

bool has_uneven_classes(const Dataset& dataset) {
  constexpr int kMostClasses = 256;
  if (dataset.classes() == 0 || dataset.classes() > kMostClasses) return false;
  const std::vector<std::int64_t> counts = dataset.class_counts();
  const auto [smallest, largest] = std::minmax_element(counts.begin(), counts.end());
  return 2 * *largest >= 3 * *smallest;
}

}  // namespace tritgrad
