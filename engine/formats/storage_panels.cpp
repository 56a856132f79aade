// The trits of a storage as operands of integer products.
#include <algorithm>
#include <array>

#include "engine/formats/storage.h"
#include "engine/kernels/products.h"

namespace tritgrad {
namespace {

// Of a tile, kBlock apart.
using DecodedRows = std::array<std::int8_t, kPanelColumns * kBlock>;

}  // namespace

void Storage::pack_across(const Tile& tile, std::uint8_t* panel) const {
  const std::int64_t rows = tile.row_end - tile.row_begin;
  const Block block = first_block(tile);
  std::visit(
      [&](const auto& format) {
        if constexpr (requires { format.pack_across(block, rows, panel); }) {
          if (format.pack_across(block, rows, panel)) return;
        }
        alignas(kAlignment) DecodedRows trits;
        decode_trits(tile, trits.data());
        kernels().products.pack_across(panel, trits.data(), kBlock, block.n, rows, 1);
      },
      format_);
}

void Storage::pack_down(const Tile& tile, std::int64_t first, std::int64_t last,
                        std::uint8_t* panels, std::int64_t ld_panels) const {
  const std::int64_t rows = tile.row_end - tile.row_begin;
  const Block block = first_block(tile);
  std::visit(
      [&](const auto& format) {
        const std::int64_t begin = first - tile.col, end = last - tile.col;
        if constexpr (requires { format.pack_down(block, rows, begin, end, panels, ld_panels); }) {
          if (format.pack_down(block, rows, begin, end, panels, ld_panels)) return;
        }
        alignas(kAlignment) DecodedRows trits;
        for (std::int64_t part = 0; part < rows; part += kPanelColumns) {
          const std::int64_t top = tile.row_begin + part;
          const std::int64_t n = std::min(kPanelColumns, rows - part);
          decode_trits(Tile{top, top + n, tile.col}, trits.data());
          std::uint8_t* panel = panels + part * kPanelColumns;
          for (std::int64_t column = begin; column < end; column += kPanelColumns) {
            kernels().products.pack_down(panel, trits.data() + column, kBlock, n,
                                         std::min(kPanelColumns, end - column), 1);
            panel += ld_panels;
          }
        }
      },
      format_);
}

}  // namespace tritgrad
