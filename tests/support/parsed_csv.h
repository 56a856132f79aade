// Tables as tests write them: what becomes of their text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/csv.h"
#include "tests/support/support_files.h"

namespace tritgrad::test {

using Names = std::vector<std::string>;
using Labels = std::vector<std::int32_t>;

inline Dataset parse(std::string_view text, const CsvOptions& options = {}) {
  return parse_csv(text, "t.csv", options);
}

inline std::string refused(std::string_view text, const CsvOptions& options = {}) {
  return refusal([&] { parse(text, options); });
}

inline std::vector<float> values(const Dataset& data) {
  const float* begin = data.values.as<float>();
  return {begin, begin + data.rows * data.features};
}

}  // namespace tritgrad::test
