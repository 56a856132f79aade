// Trits as panels of integer products: packed ones without being decoded first, and those of every
// format that holds any.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "engine/storage.h"
#include "tests/kernel_inputs.h"
#include "tests/support.h"
#include "tests/support_formats.h"

namespace tritgrad::test::test_trit_panels {
namespace {

// Where a panel has number `depth` of column `column`.
std::int64_t place(std::int64_t depth, std::int64_t column) {
  return (depth / 4 * kPanelColumns + column) * 4 + depth % 4;
}

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
  reference_kernels().decode_trits(trits.data(), kBlock, packed.data(), ld, rows, kBlock);
  return trits;
}

}  // namespace

TEST_CASE("trit panels: packed rows across hold every trit where the contract says") {
  for (const KernelTable* table : supported_kernels()) {
    CAPTURE(table->name);
    for (const std::int64_t ld : {std::int64_t{64}, std::int64_t{71}, std::int64_t{820}}) {
      CAPTURE(ld);
      Guarded<std::uint8_t> packed = packed_rows(kPanelColumns, ld, ld % 3);
      const std::vector<std::int8_t> trits = trits_of(packed, kPanelColumns, ld);
      Guarded<std::uint8_t> panel(kBlock * kPanelColumns, ld % 2);
      table->pack_trits_across(panel.data(), packed.data(), ld);
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
  for (const KernelTable* table : supported_kernels()) {
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
          table->pack_trits_down(panels.data(), ld_panels, packed.data(), ld, rows, first, last);
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
  for (const KernelTable* table : supported_kernels()) {
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
      table->pack_latents_across(across.data(), codes.data(), ld, kDepth, threshold);
      std::int64_t wrong = 0;
      for (std::int64_t c = 0; c < kPanelColumns; ++c) {
        for (std::int64_t i = 0; i < kDepth; ++i) wrong += across[place(i, c)] != digit(c, i);
      }
      REQUIRE(wrong == 0);
      REQUIRE((across[-1] == 0x5A && across[kDepth * kPanelColumns] == 0x5A));
      constexpr std::int64_t panel_bytes = kDown * kPanelColumns, ld_panels = panel_bytes + 64;
      constexpr std::int64_t size = kColumns / kPanelColumns * ld_panels;
      Guarded<std::uint8_t> down(size, 1);
      table->pack_latents_down(down.data(), ld_panels, codes.data(), ld, kDown, kColumns,
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

TEST_CASE("trit panels: of every format they are its trits, whatever the shape of the tile") {
  constexpr std::int64_t kRows = 70;
  for (const FormatKind kind : formats_for(kWeight)) {
    if (!spec_of(kind).wants_scale()) continue;
    CAPTURE(format_name(kind));
    // Columns that end with a block, after a stripe of whole words (52 bytes), and after any.
    for (const std::int64_t cols : {std::int64_t{640}, std::int64_t{576}, std::int64_t{323}}) {
      CAPTURE(cols);
      Storage storage(spec_of(kind), {kRows, cols}, Category::kWeights);
      encode_all(storage, numbers(kRows * cols, 3));
      std::vector<std::int8_t> trits(static_cast<std::size_t>(kRows * cols));
      for_each_block(storage.shape(), [&](const Block& block) {
        storage.decode_trits(block, trits.data() + block.row * cols + block.col);
      });
      const auto digit = [&](std::int64_t row, std::int64_t col) {
        return trits[static_cast<std::size_t>(row * cols + col)] + 1;
      };
      for (const Rows& part : {Rows{0, 64}, {3, 67}, {64, 70}, {5, 9}}) {
        const std::int64_t begin = part.begin, end = part.end, rows = end - begin;
        CAPTURE(begin);
        CAPTURE(end);
        for (std::int64_t col = 0; col < cols; col += kBlock) {
          CAPTURE(col);
          const Tile tile{begin, end, col};
          const std::int64_t n = std::min(kBlock, cols - col);
          std::vector<std::uint8_t> across(kBlock * kPanelColumns, 99);
          storage.pack_across(tile, across.data());
          std::int64_t wrong = 0;
          for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t i = 0; i < n; ++i) {
              wrong += across[static_cast<std::size_t>(place(i, r))] != digit(begin + r, col + i);
            }
          }
          CHECK(wrong == 0);
          // From the first panel of the block on, from a later one, and from within one.
          for (const std::int64_t skipped : {0, 64, 32}) {
            if (skipped >= n) continue;
            const std::int64_t first = col + skipped, last = col + n - skipped / 64;
            constexpr std::int64_t ld_panels = 64 * kPanelColumns;
            std::vector<std::uint8_t> down(5 * ld_panels, 99);
            storage.pack_down(tile, first, last, down.data(), ld_panels);
            wrong = 0;
            for (std::int64_t c = 0; c < last - first; ++c) {
              const std::uint8_t* panel = down.data() + c / kPanelColumns * ld_panels;
              for (std::int64_t r = 0; r < rows; ++r) {
                wrong += panel[place(r, c % kPanelColumns)] != digit(begin + r, first + c);
              }
            }
            CAPTURE(skipped);
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
}

}  // namespace tritgrad::test::test_trit_panels
