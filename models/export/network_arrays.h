// The arrays of a network in the forms that several targets share.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/export/export_target.h"
#include "models/export/inference_network.h"

namespace tritgrad {

// Returns the weights as floats, [outputs x inputs]: floats as they are, trits times the scale of
// their group.
std::vector<float> decoded_weights(const InferenceProduct& product);

// The trits of a byte are its digits to `base`, less 1, the first one the lowest.
struct TritDigits {
  std::int64_t count;
  int base;

  // Returns the bytes of a row of so many trits, which begins on a byte.
  std::int64_t bytes_of(std::int64_t row) const { return (row + count - 1) / count; }
};
inline constexpr TritDigits kBase3Digits{5, 3};

// Packs rows of `row` trits. The digits behind the last trit of a row are `filler`.
std::vector<std::uint8_t> pack_trits(const std::vector<std::int8_t>& trits, std::int64_t row,
                                     TritDigits digits, int filler);

// Returns [rows, channels, pixels] from [rows, pixels, channels].
template <typename Number>
std::vector<Number> channels_first(const std::vector<Number>& numbers, std::int64_t channels,
                                   std::int64_t pixels) {
  std::vector<Number> moved;
  moved.reserve(numbers.size());
  for (std::int64_t row = 0; row < std::ssize(numbers); row += pixels * channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        moved.push_back(numbers[static_cast<std::size_t>(row + pixel * channels + c)]);
      }
    }
  }
  return moved;
}

struct NamedVector {
  const char* name;
  const std::vector<float>& numbers;
};

// Returns "mean", "inverse_std", "gain" and "bias" of a layer, which are empty where its norm has
// none.
std::array<NamedVector, 4> norm_vectors(const InferenceLayer& layer);

// Returns the bytes of a network in floats, with offsets in double, but for its trits, which each
// target packs in its own way.
ExportBytes bytes_without_trits(const InferenceNetwork& network);

// Throws Error, with the ending of the target, for classes whose names are not UTF-8 and for cells
// of a table that become the mean: programs of arrays alone have neither.
void check_as_arrays(const InferenceNetwork& network, const std::string& ending);

}  // namespace tritgrad
