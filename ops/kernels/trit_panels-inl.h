// Packed trits as panels of the integer product, which hold trit + 1: what a digit of a packed byte
// is. The bytes are brought into the order of a panel before they are decoded, as they are a fifth
// of the trits.
#pragma once

#include "engine/format.h"
#include "ops/kernels/codecs-inl.h"
#include "ops/kernels/pack_down-inl.h"
#include "ops/kernels/transpose-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

static_assert(kTritStripe == kPanelColumns);

void pack_trits_across(std::uint8_t* panel, const std::uint8_t* packed, std::int64_t ld_packed) {
  const TritDigits trit_digits;
  for (std::int64_t byte = 0; byte < kTritStripe; byte += 4 * kWords) {
    for (std::int64_t column = 0; column < kPanelColumns; column += kWords) {
      U8::register_type words[kWords];
      for (int i = 0; i < kWords; ++i)
        words[i] = read<U8>(packed + (column + i) * ld_packed + byte);
      transpose(words);
      for (int i = 0; i < kWords; ++i) {
        U8 digits[5];
        trit_digits.split(digits, U8(words[i]));
        for (int k = 0; k < 5; ++k) {
          const std::int64_t depth = k * kTritStripe + byte + 4 * i;
          write(panel + depth * kPanelColumns + 4 * column, digits[k]);
        }
      }
    }
  }
}

void pack_trits_down(std::uint8_t* panels, std::int64_t ld_panels, const std::uint8_t* packed,
                     std::int64_t ld_packed, std::int64_t rows, std::int64_t first,
                     std::int64_t last) {
  const TritDigits trit_digits;
  for (std::int64_t row = 0; row < rows; row += 4) {
    for (std::int64_t byte = 0; byte < kTritStripe; byte += kLanes<U8>) {
      U8 four[4];
      for (int j = 0; j < 4; ++j) four[j] = read<U8>(packed + (row + j) * ld_packed + byte);
      wide::interleave(four);
      for (int v = 0; v < 4; ++v) {
        U8 digits[5];
        trit_digits.split(digits, four[v]);
        std::uint8_t* to = panels + row * kPanelColumns + 4 * byte + v * kLanes<U8>;
        for (int k = 0; k < 5; ++k) {
          if (first <= k && k < last) write(to + (k - first) * ld_panels, digits[k]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
