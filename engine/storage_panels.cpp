// The trits of a storage as operands of integer products.
#include <algorithm>
#include <array>

#include "engine/kernel_table.h"
#include "engine/storage.h"

namespace tritgrad {
namespace {

// Of a tile, kBlock apart.
using DecodedRows = std::array<std::int8_t, kPanelColumns * kBlock>;

}  // namespace

void Storage::pack_across(const Tile& tile, std::uint8_t* panel) const {
  const std::int64_t rows = tile.row_end - tile.row_begin;
  const Block block{tile.row_begin, tile.col, std::min(kBlock, shape_.cols() - tile.col), 0};
  std::visit(
      [&](const auto& format) {
        if constexpr (requires { format.pack_across(block, panel); }) {
          if (block.n == kBlock && rows == kPanelColumns) return format.pack_across(block, panel);
        }
        alignas(kAlignment) DecodedRows trits;
        decode_trits(tile, trits.data());
        kernels().pack_across(panel, trits.data(), kBlock, block.n, rows, 1);
      },
      format_);
}

void Storage::pack_down(const Tile& tile, std::int64_t first, std::int64_t last,
                        std::uint8_t* panels, std::int64_t ld_panels) const {
  const std::int64_t rows = tile.row_end - tile.row_begin;
  const std::int64_t count = (last - first + kPanelColumns - 1) / kPanelColumns;
  const Block block{tile.row_begin, tile.col, std::min(kBlock, shape_.cols() - tile.col), 0};
  std::visit(
      [&](const auto& format) {
        if constexpr (requires { format.pack_down(block, rows, 0, 0, panels, ld_panels); }) {
          const std::int64_t column = first - tile.col;
          if (block.n == kBlock && rows % 4 == 0 && column % kPanelColumns == 0) {
            const std::int64_t panel = column / kPanelColumns;
            return format.pack_down(block, rows, panel, panel + count, panels, ld_panels);
          }
        }
        alignas(kAlignment) DecodedRows trits;
        for (std::int64_t part = 0; part < rows; part += kPanelColumns) {
          const std::int64_t top = tile.row_begin + part;
          const std::int64_t n = std::min(kPanelColumns, rows - part);
          decode_trits(Tile{top, top + n, tile.col}, trits.data());
          for (std::int64_t p = 0; p < count; ++p) {
            const std::int64_t column = first + p * kPanelColumns;
            kernels().pack_down(panels + p * ld_panels + part * kPanelColumns,
                                trits.data() + column - tile.col, kBlock, n,
                                std::min(kPanelColumns, last - column), 1);
          }
        }
      },
      format_);
}

}  // namespace tritgrad
