#include "engine/data/dataset.h"

#include <algorithm>
#include <limits>

#include "engine/check.h"
#include "engine/data/token_text.h"
#include "engine/kernels/layers.h"
#include "engine/memory/prefetch.h"
#include "engine/text.h"

namespace tritgrad {

// Returns the bytes of the values.
std::int64_t Dataset::set_sizes(std::int64_t row_count, std::int64_t feature_count, Element type) {
  check(row_count > 0 && feature_count > 0, "data set ", name, ": ", counted(row_count, "row"),
        " of ", counted(feature_count, "feature"), " found, at least one of each needed");
  check(row_count <= std::numeric_limits<std::int32_t>::max(), "data set ", name, ": ", row_count,
        " rows found, at most 2147483647 supported; split the data");
  const std::int64_t value_bytes = type == Element::kByte ? 1 : 4;
  check(feature_count <= std::numeric_limits<std::int64_t>::max() / value_bytes / row_count,
        "data set ", name, ": ", row_count, " x ", feature_count,
        " values are more than memory can address");
  rows = row_count;
  features = feature_count;
  element = type;
  return rows * features * value_bytes;
}

void Dataset::allocate(std::int64_t row_count, std::int64_t feature_count, Element type) {
  const std::int64_t bytes = set_sizes(row_count, feature_count, type);
  values = Buffer(static_cast<std::size_t>(bytes), Category::kData);
}

void Dataset::borrow(std::int64_t row_count, std::int64_t feature_count, Element type,
                     std::span<const std::byte> bytes) {
  const std::int64_t expected = set_sizes(row_count, feature_count, type);
  check(std::ssize(bytes) == expected, "data set ", name, ": ", bytes.size(), " bytes found, ",
        expected, " expected");
  values = Buffer::borrow(bytes);
}

std::int64_t Dataset::outputs() const {
  if (is_text()) return text->vocabulary();
  return is_regression() ? 1 : classes();
}

std::vector<std::int64_t> Dataset::class_counts() const {
  std::vector<std::int64_t> counts(class_names.size(), 0);
  for (std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

std::string Dataset::place(std::int64_t row) const {
  if (lines.empty()) return concat("row ", row, " (counted from 0)");
  return concat("line ", lines[static_cast<std::size_t>(row)]);
}

void Dataset::prefetch(std::int64_t row) const {
  const std::int64_t row_bytes = features * (element == Element::kByte ? 1 : 4);
  tritgrad::prefetch(values.bytes().data() + row * row_bytes, row_bytes);
}

void Dataset::gather(std::int64_t row, std::int64_t begin, std::int64_t end, float* out) const {
  const std::int64_t first = row * features + begin;
  if (element == Element::kByte) {
    kernels().layers.bytes_to_float(out, values.as<std::uint8_t>() + first, end - begin);
  } else {
    std::copy_n(values.as<float>() + first, end - begin, out);
  }
}

}  // namespace tritgrad
