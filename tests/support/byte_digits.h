// Images of 8 bits a pixel without a file.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/data/open_dataset.h"

namespace tritgrad {

// The digits of 16 shades as bytes, 15 apart.
inline Dataset byte_digits() {
  const Dataset digits = open_dataset("digits");
  Dataset bytes;
  bytes.name = "digits";
  bytes.class_names = digits.class_names;
  bytes.labels = digits.labels;
  bytes.image = digits.image;
  bytes.allocate(digits.rows, digits.features, Element::kByte);
  bytes.published_test_rows = digits.published_test_rows;
  const auto* x = digits.values.as<float>();
  std::transform(x, x + digits.rows * digits.features, bytes.values.as<std::uint8_t>(),
                 [](float shade) { return static_cast<std::uint8_t>(15.0f * shade); });
  return bytes;
}

}  // namespace tritgrad
