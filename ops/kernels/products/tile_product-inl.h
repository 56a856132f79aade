// The product of int8 rows with a panel of bytes in tile registers (AMX).
//
// A tile holds 16 rows of 64 bytes; one instruction multiplies 16 rows of numbers with 16 groups of
// four bytes of 16 columns. A panel is laid out as these instructions read it, and numbers are
// signed and bytes are not, so that all ranges are the same here. Tiles take any number of rows and
// of bytes up to their size, which is how ends are met: nothing past them is read.
//
// Tiles are not released after a product: the next one would have to load their shapes again, which
// takes as long as a small product.
//
// `Tiles` are the registers of tiles-inl.h, or what tests have in their place.
#pragma once

#include <cstdint>
#include <utility>

#include "engine/kernels/kernel_table.h"
#include "ops/kernels/products/ask_ahead-inl.h"
#include "ops/kernels/products/tile_shapes-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int64_t kTileGroups = kBytesOfRow / 4;  // of the inner dimension
constexpr std::int64_t kTileColumns = kBytesOfRow / 4;
constexpr std::int64_t kPanelGroupBytes = 4 * kPanelColumns;
constexpr std::int64_t kTilesAcross = kPanelColumns / kTileColumns;

// Tiles 0 to 3 hold sums, 4 and 5 the operands, 6 and 7 those of the last `groups_left` groups,
// which may be none.
template <typename Tiles>
inline void configure(std::int64_t rows, std::int64_t groups_left) {
  TileShapes shapes;
  for (int tile = 0; tile < kTilesAcross; ++tile) shapes.set(tile, rows, kBytesOfRow);
  shapes.set(4, rows, kBytesOfRow);
  shapes.set(5, kTileGroups, kBytesOfRow);
  if (groups_left > 0) {
    shapes.set(6, rows, 4 * groups_left);
    shapes.set(7, groups_left, kBytesOfRow);
  }
  Tiles::configure(shapes);
}

// One tile of rows by as many tiles of columns as there are numbers of tiles.
template <typename Tiles, int... kTile>
inline void multiply_rows(std::integer_sequence<int, kTile...>, std::int32_t* c, std::int64_t ldc,
                          const std::int8_t* a, std::int64_t lda, const std::uint8_t* panel,
                          std::int64_t groups, bool add) {
  const std::int64_t stride = ldc * static_cast<std::int64_t>(sizeof(std::int32_t));
  if (add) {
    (Tiles::template load<kTile>(c + kTile * kTileColumns, stride), ...);
  } else {
    (Tiles::template clear<kTile>(), ...);
  }
  const auto add_groups = [&]<int kA, int kB>(std::int64_t g) {
    const std::uint8_t* b = panel + g * kPanelGroupBytes;
    Tiles::template load<kA>(a + 4 * g, lda);
    ((Tiles::template load<kB>(b + kTile * kBytesOfRow, kPanelGroupBytes),
      Tiles::template add_product<kTile, kA, kB>()),
     ...);
  };
  std::int64_t g = 0;
  for (; g + kTileGroups <= groups; g += kTileGroups) add_groups.template operator()<4, 5>(g);
  if (g < groups) add_groups.template operator()<6, 7>(g);
  (Tiles::template store<kTile>(c + kTile * kTileColumns, stride), ...);
}

template <typename Tiles, int kTiles>
void multiply_columns(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                      std::int64_t rows, const std::uint8_t* panel, std::int64_t groups, bool add,
                      AskAhead& ahead) {
  const std::int64_t groups_left = groups % kTileGroups;
  const std::int64_t rows_left = rows % kRowsOfTile;
  if (rows >= kRowsOfTile) configure<Tiles>(kRowsOfTile, groups_left);
  for (std::int64_t r = 0; r < rows; r += kRowsOfTile) {
    ahead.ask();
    if (rows - r < kRowsOfTile) configure<Tiles>(rows_left, groups_left);
    multiply_rows<Tiles>(std::make_integer_sequence<int, kTiles>{}, c + r * ldc, ldc, a + r * lda,
                         lda, panel, groups, add);
  }
}

// KernelTable::multiply_panel.
template <typename Tiles>
void multiply_in_tiles(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                       std::int64_t rows, std::int64_t columns, const std::uint8_t* panel,
                       std::int64_t groups, PanelRange, bool add, const MemoryAhead& memory) {
  AskAhead ahead(memory, rows / kRowsOfTile);
  if (columns > 3 * kTileColumns) {
    multiply_columns<Tiles, 4>(c, ldc, a, lda, rows, panel, groups, add, ahead);
  } else if (columns > 2 * kTileColumns) {
    multiply_columns<Tiles, 3>(c, ldc, a, lda, rows, panel, groups, add, ahead);
  } else if (columns > kTileColumns) {
    multiply_columns<Tiles, 2>(c, ldc, a, lda, rows, panel, groups, add, ahead);
  } else if (columns > 0) {
    multiply_columns<Tiles, 1>(c, ldc, a, lda, rows, panel, groups, add, ahead);
  }
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
