// Panels of integer products, packed in registers: rows of bytes are interleaved into groups, or
// transposed, a word of four bytes at a time.
//
// Panels of trits hold trit + 1 and are made of what the trits are kept as. Its bytes are brought
// into the order of a panel first: of packed trits they are a fifth of the trits.
#pragma once

#include "engine/formats/format.h"
#include "engine/kernels/products.h"
#include "ops/kernels/codecs/codecs-inl.h"
#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/products/transpose-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

// Packs four rows of fewer columns than a panel has.
void pack_few_columns(std::uint8_t* group, const std::int8_t* rows, std::int64_t ld,
                      std::int64_t columns, const U8& offsets) {
  constexpr std::int64_t kBytes = kLanes<U8>;
  for (std::int64_t column = 0; column < columns; column += kBytes) {
    const std::int64_t n = columns - column < kBytes ? columns - column : kBytes;
    std::int8_t whole[4 * kBytes];
    for (int j = 0; j < 4; ++j) {
      write(whole + j * kBytes, read_first(rows + j * ld + column, n, I8(std::int8_t{0})));
    }
    interleave_rows(whole, kBytes, [&](int v, const U8& four) {
      write(group + 4 * column + v * kBytes, four + offsets);
    });
  }
  __builtin_memset(group + 4 * columns, 0, static_cast<std::size_t>(4 * (kPanelColumns - columns)));
}

void pack_down(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld, std::int64_t depth,
               std::int64_t columns, int offset) {
  std::int64_t packed = 0;
  const U8 offsets(static_cast<std::uint8_t>(offset));
  for (; columns > 0 && columns < kPanelColumns && packed + 4 <= depth; packed += 4) {
    pack_few_columns(panel + packed * kPanelColumns, rows + packed * ld, ld, columns, offsets);
  }
  if (columns == kPanelColumns) {
    for (; packed + 4 <= depth; packed += 4) {
      for (std::int64_t column = 0; column < kPanelColumns; column += kLanes<U8>) {
        std::uint8_t* to = panel + packed * kPanelColumns + 4 * column;
        interleave_rows(rows + packed * ld + column, ld,
                        [&](int v, const U8& four) { write(to + v * kLanes<U8>, four + offsets); });
      }
    }
  }
  TRITGRAD_TARGET::pack_down(panel + packed * kPanelColumns, rows + packed * ld, ld, depth - packed,
                             columns, offset);
}

void pack_across(std::uint8_t* panel, const std::int8_t* rows, std::int64_t ld, std::int64_t depth,
                 std::int64_t columns, int offset) {
  std::int64_t packed = 0;
  if (columns == kPanelColumns) {
    const U8 offsets(static_cast<std::uint8_t>(offset));
    for (; packed + 4 * kWords <= depth; packed += 4 * kWords) {
      for (std::int64_t column = 0; column < kPanelColumns; column += kWords) {
        transpose_rows(rows + column * ld + packed, ld, [&](int i, const U8& words) {
          write(panel + (packed + 4 * i) * kPanelColumns + 4 * column, words + offsets);
        });
      }
    }
  }
  TRITGRAD_TARGET::pack_across(panel + packed * kPanelColumns, rows + packed, ld, depth - packed,
                               columns, offset);
}

}  // namespace
}  // namespace wide

namespace {

static_assert(kTritStripe == kPanelColumns);

void pack_trits_across(std::uint8_t* panel, const std::uint8_t* packed, std::int64_t ld_packed) {
  const TritDigits trit_digits;
  for (std::int64_t byte = 0; byte < kTritStripe; byte += 4 * kWords) {
    for (std::int64_t column = 0; column < kPanelColumns; column += kWords) {
      transpose_rows(packed + column * ld_packed + byte, ld_packed, [&](int i, const U8& words) {
        U8 digits[5];
        trit_digits.split(digits, words);
        for (int k = 0; k < 5; ++k) {
          const std::int64_t depth = k * kTritStripe + byte + 4 * i;
          write(panel + depth * kPanelColumns + 4 * column, digits[k]);
        }
      });
    }
  }
}

void pack_trits_down(std::uint8_t* panels, std::int64_t ld_panels, const std::uint8_t* packed,
                     std::int64_t ld_packed, std::int64_t rows, std::int64_t first,
                     std::int64_t last) {
  const TritDigits trit_digits;
  for (std::int64_t row = 0; row < rows; row += 4) {
    for (std::int64_t byte = 0; byte < kTritStripe; byte += kLanes<U8>) {
      std::uint8_t* to = panels + row * kPanelColumns + 4 * byte;
      interleave_rows(packed + row * ld_packed + byte, ld_packed, [&](int v, const U8& words) {
        U8 digits[5];
        trit_digits.split(digits, words);
        for (int k = 0; k < 5; ++k) {
          if (k < first || k >= last) continue;
          write(to + (k - first) * ld_panels + v * kLanes<U8>, digits[k]);
        }
      });
    }
  }
}

// Trit + 1 of each code of a latent.
struct LatentDigits {
  explicit LatentDigits(int threshold)
      : up(static_cast<std::int8_t>(threshold)),
        not_down(static_cast<std::int8_t>(-threshold - 1)) {}
  U8 operator()(const U8& codes) const {
    const I8 code(codes);
    return count_up(count_up(U8(std::uint8_t{0}), code > not_down), code > up);
  }

  I8 up, not_down;
};

void pack_latents_across(std::uint8_t* panel, const std::int8_t* codes, std::int64_t ld,
                         std::int64_t depth, int threshold) {
  const LatentDigits digits(threshold);
  for (std::int64_t first = 0; first < depth; first += 4 * kWords) {
    for (std::int64_t column = 0; column < kPanelColumns; column += kWords) {
      transpose_rows(codes + column * ld + first, ld, [&](int i, const U8& words) {
        write(panel + (first + 4 * i) * kPanelColumns + 4 * column, digits(words));
      });
    }
  }
}

void pack_latents_down(std::uint8_t* panels, std::int64_t ld_panels, const std::int8_t* codes,
                       std::int64_t ld, std::int64_t rows, std::int64_t columns, int threshold) {
  const LatentDigits digits(threshold);
  for (std::int64_t row = 0; row < rows; row += 4) {
    for (std::int64_t column = 0; column < columns; column += kLanes<U8>) {
      std::uint8_t* to = panels + column / kPanelColumns * ld_panels + row * kPanelColumns +
                         4 * (column % kPanelColumns);
      interleave_rows(codes + row * ld + column, ld,
                      [&](int v, const U8& words) { write(to + v * kLanes<U8>, digits(words)); });
    }
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
