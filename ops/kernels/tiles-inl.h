// Tile registers (AMX) and their shapes.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kTileBytes = 64;  // of a row

// The operand of ldtilecfg, palette 1.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, std::int64_t tile_rows, std::int64_t bytes) {
    rows[tile] = static_cast<std::uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

// The intrinsic of g++ 12 does not say that it reads all of the shapes.
inline void load(const TileShapes& shapes) { asm volatile("ldtilecfg %0" : : "m"(shapes)); }

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
