#include "tools/report/median.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tritgrad {

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  for (double& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
  }
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1 || std::isinf(values[middle])) return values[middle];
  return 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace tritgrad
