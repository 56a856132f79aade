// Trits as panels of integer products: packed ones without being decoded first, and those of every
// format that holds any.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "engine/formats/storage.h"
#include "ops/products/trit_panels.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/support.h"
#include "tests/support/support_formats.h"

namespace tritgrad::test::test_trit_panels {
namespace {

// Returns where a panel has number `depth` of column `column`.
std::int64_t place(std::int64_t depth, std::int64_t column) {
  return (depth / 4 * kPanelColumns + column) * 4 + depth % 4;
}

std::int64_t in_fours(std::int64_t depth) { return (depth + 3) / 4 * 4; }

constexpr std::int64_t kBlockBytes = kBlock / 5;

struct Rows {
  std::int64_t begin, end;
};

// Any bytes, those that no trits give among them.
Guarded<std::uint8_t> packed_rows(std::int64_t rows, std::int64_t ld, std::int64_t offset) {
  Guarded<std::uint8_t> packed((rows - 1) * ld + kBlockBytes, offset);
  for (std::int64_t i = 0; i < (rows - 1) * ld + kBlockBytes; ++i) {
    packed[i] = static_cast<std::uint8_t>(random_below(kKey, static_cast<std::uint64_t>(i), 256));
  }
  return packed;
}

// The trits of one block of each row, by the reference.
std::vector<std::int8_t> trits_of(Guarded<std::uint8_t>& packed, std::int64_t rows,
                                  std::int64_t ld) {
  std::vector<std::int8_t> trits(static_cast<std::size_t>(rows * kBlock));
  reference_kernels().codecs.decode_trits(trits.data(), kBlock, packed.data(), ld, rows, kBlock);
  return trits;
}

}  // namespace

TEST_CASE("trit panels: packed rows across hold every trit where the contract says") {
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    for (const std::int64_t ld : {std::int64_t{64}, std::int64_t{71}, std::int64_t{820}}) {
      CAPTURE(ld);
      Guarded<std::uint8_t> packed = packed_rows(kPanelColumns, ld, ld % 3);
      const std::vector<std::int8_t> trits = trits_of(packed, kPanelColumns, ld);
      Guarded<std::uint8_t> panel(kBlock * kPanelColumns, ld % 2);
      table->products.pack_trits_across(panel.data(), packed.data(), ld);
      std::int64_t wrong = 0;
      for (std::int64_t c = 0; c < kPanelColumns; ++c) {
        for (std::int64_t i = 0; i < kBlock; ++i) {
          wrong += panel[place(i, c)] != trits[static_cast<std::size_t>(c * kBlock + i)] + 1;
        }
      }
      REQUIRE(wrong == 0);
      REQUIRE((panel[-1] == 0x5A && panel[kBlock * kPanelColumns] == 0x5A));
    }
  }
}

TEST_CASE("trit panels: packed rows down fill the panels that are asked for and no others") {
  constexpr std::int64_t kPanels = kBlock / kPanelColumns;
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    for (const std::int64_t rows : {4, 8, 12, 64, 252}) {
      CAPTURE(rows);
      const std::int64_t ld = 64 + rows % 7;
      Guarded<std::uint8_t> packed = packed_rows(rows, ld, rows % 5);
      const std::vector<std::int8_t> trits = trits_of(packed, rows, ld);
      for (std::int64_t first = 0; first <= kPanels; ++first) {
        for (std::int64_t last = first; last <= kPanels; ++last) {
          CAPTURE(first);
          CAPTURE(last);
          const std::int64_t panel_bytes = rows * kPanelColumns, gap = 192;
          const std::int64_t ld_panels = panel_bytes + gap;
          const std::int64_t size = (last - first) * ld_panels;
          Guarded<std::uint8_t> panels(size, 1);
          table->products.pack_trits_down(panels.data(), ld_panels, packed.data(), ld, rows, first,
                                          last);
          std::int64_t wrong = 0;
          for (std::int64_t p = first; p < last; ++p) {
            std::uint8_t* panel = panels.data() + (p - first) * ld_panels;
            for (std::int64_t r = 0; r < rows; ++r) {
              for (std::int64_t c = 0; c < kPanelColumns; ++c) {
                const std::int64_t trit = r * kBlock + p * kPanelColumns + c;
                wrong += panel[place(r, c)] != trits[static_cast<std::size_t>(trit)] + 1;
              }
            }
            for (std::int64_t i = 0; i < gap; ++i) wrong += panel[panel_bytes + i] != 0x5A;
          }
          REQUIRE(wrong == 0);
          REQUIRE((panels[-1] == 0x5A && panels[size] == 0x5A));
        }
      }
    }
  }
}

TEST_CASE("trit panels: latents become the trits that they hold, across and down") {
  constexpr std::int64_t kDepth = 128, kColumns = 192, kDown = 12;
  for (const KernelTables* table : supported_kernels()) {
    CAPTURE(table->name);
    for (const int threshold : {0, 1, 42, 126}) {
      CAPTURE(threshold);
      const std::int64_t ld = kColumns + threshold % 5;
      Guarded<std::int8_t> codes(kPanelColumns * ld, threshold % 3);
      for (std::int64_t i = 0; i < kPanelColumns * ld; ++i) {
        codes[i] = static_cast<std::int8_t>(i * 37 % 256);
      }
      const auto digit = [&](std::int64_t row, std::int64_t column) {
        const int code = codes[row * ld + column];
        return 1 + (code > threshold) - (code < -threshold);
      };
      Guarded<std::uint8_t> across(kDepth * kPanelColumns, 1);
      table->products.pack_latents_across(across.data(), codes.data(), ld, kDepth, threshold);
      std::int64_t wrong = 0;
      for (std::int64_t c = 0; c < kPanelColumns; ++c) {
        for (std::int64_t i = 0; i < kDepth; ++i) wrong += across[place(i, c)] != digit(c, i);
      }
      REQUIRE(wrong == 0);
      REQUIRE((across[-1] == 0x5A && across[kDepth * kPanelColumns] == 0x5A));
      constexpr std::int64_t panel_bytes = kDown * kPanelColumns, ld_panels = panel_bytes + 64;
      constexpr std::int64_t size = kColumns / kPanelColumns * ld_panels;
      Guarded<std::uint8_t> down(size, 1);
      table->products.pack_latents_down(down.data(), ld_panels, codes.data(), ld, kDown, kColumns,
                                        threshold);
      for (std::int64_t c = 0; c < kColumns; ++c) {
        std::uint8_t* panel = down.data() + c / kPanelColumns * ld_panels;
        for (std::int64_t r = 0; r < kDown; ++r) {
          wrong += panel[place(r, c % kPanelColumns)] != digit(r, c);
        }
        wrong += panel[panel_bytes + c % 64] != 0x5A;
      }
      REQUIRE(wrong == 0);
      REQUIRE((down[-1] == 0x5A && down[size] == 0x5A));
    }
  }
}

namespace {

// The trits of a storage plus 1, and what panels of its tiles differ from them in.
class Digits {
 public:
  explicit Digits(const Storage& storage) : storage_(storage), cols_(storage.shape().cols()) {
    trits_.resize(static_cast<std::size_t>(storage.shape().size()));
    for_each_block(storage.shape(), [&](const Block& block) {
      decode_trits(storage, block, trits_.data() + block.row * cols_ + block.col);
    });
  }

  // Counts what is wrong in one panel, which is zeros where the tile ends.
  std::int64_t wrong_across(const MatrixPiece& tile) const {
    std::vector<std::uint8_t> panel(kBlock * kPanelColumns, kUntouched);
    pack_across(storage_, tile, panel.data());
    const std::int64_t n = std::min(kBlock, cols_ - tile.col);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < kBlock; ++i) {
      for (std::int64_t c = 0; c < kPanelColumns; ++c) {
        const std::int64_t row = tile.row_begin + c;
        const int expected = i >= in_fours(n)              ? kUntouched
                             : i < n && row < tile.row_end ? at(row, tile.col + i)
                                                           : 0;
        wrong += panel[static_cast<std::size_t>(place(i, c))] != expected;
      }
    }
    return wrong;
  }
  // Counts what is wrong in panels, whose depth is filled up with zeros to a multiple of four.
  std::int64_t wrong_down(const MatrixPiece& tile, std::int64_t first, std::int64_t last) const {
    const std::int64_t rows = tile.row_end - tile.row_begin, depth = in_fours(rows);
    const std::int64_t ld_panels = depth * kPanelColumns + 64;
    const std::int64_t count = (last - first + kPanelColumns - 1) / kPanelColumns;
    std::vector<std::uint8_t> panels(static_cast<std::size_t>(count * ld_panels), kUntouched);
    pack_down(storage_, tile, first, last, panels.data(), ld_panels);
    std::int64_t wrong = 0;
    for (std::int64_t p = 0; p < count; ++p) {
      const std::uint8_t* panel = panels.data() + p * ld_panels;
      const std::int64_t columns = std::min(kPanelColumns, last - first - p * kPanelColumns);
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = 0; r < depth; ++r) {
          const int expected = r < rows ? at(tile.row_begin + r, first + p * kPanelColumns + c) : 0;
          wrong += panel[place(r, c)] != expected;
        }
      }
      for (std::int64_t i = 0; i < 64; ++i) wrong += panel[depth * kPanelColumns + i] != kUntouched;
    }
    return wrong;
  }

 private:
  static constexpr std::uint8_t kUntouched = 99;
  int at(std::int64_t row, std::int64_t col) const {
    return trits_[static_cast<std::size_t>(row * cols_ + col)] + 1;
  }

  const Storage& storage_;
  std::int64_t cols_;
  std::vector<std::int8_t> trits_;
};

}  // namespace

TEST_CASE("trit panels: of every format they are its trits, whatever the shape of the tile") {
  constexpr std::int64_t kRows = 140;
  for (const FormatKind kind : formats_for(kWeight)) {
    if (!spec_of(kind).traits().holds_trits) continue;
    CAPTURE(format_name(kind));
    // Columns that end with a block, with a panel, and anywhere.
    for (const std::int64_t cols : {std::int64_t{640}, std::int64_t{576}, std::int64_t{323}}) {
      CAPTURE(cols);
      Storage storage(spec_of(kind), {kRows, cols}, Category::kWeights);
      encode_all(storage, numbers(kRows * cols, 3));
      const Digits digits(storage);
      for (const Rows& part : {Rows{0, 64}, {3, 67}, {64, 70}, {5, 9}, {0, 140}, {1, 72}}) {
        CAPTURE(part.begin);
        CAPTURE(part.end);
        for (std::int64_t col = 0; col < cols; col += kBlock) {
          CAPTURE(col);
          const MatrixPiece tile{part.begin, part.end, col};
          const std::int64_t end = std::min(cols, col + kBlock);
          if (part.end - part.begin <= kPanelColumns) CHECK(digits.wrong_across(tile) == 0);
          // Panels of the block from one to another, from within one on, and to within one.
          for (std::int64_t first = col; first < end; first += kPanelColumns / 2) {
            CAPTURE(first);
            for (std::int64_t last = first + kPanelColumns; last < end; last += kPanelColumns) {
              CAPTURE(last);
              CHECK(digits.wrong_down(tile, first, last) == 0);
            }
            CHECK(digits.wrong_down(tile, first, end) == 0);
            CHECK(digits.wrong_down(tile, first, first + 1) == 0);
          }
        }
      }
    }
  }
}

}  // namespace tritgrad::test::test_trit_panels
