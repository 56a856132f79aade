// Shapes of tile registers (AMX), as their configuration has them.
#pragma once

#include <array>
#include <cstdint>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int64_t kRowsOfTile = 16;
constexpr std::int64_t kBytesOfRow = 64;

// The operand of ldtilecfg: palette 1; from byte 16 on the bytes of a row of each tile, 16 bits
// each; from byte 48 on their rows, 8 bits each.
class TileShapes {
 public:
  void set(int tile, std::int64_t rows, std::int64_t bytes) {
    rows_ |= static_cast<std::uint64_t>(rows) << (8 * tile);
    row_bytes_[tile / 4] |= static_cast<std::uint64_t>(bytes) << (16 * (tile % 4));
  }
  std::array<long long, 8> operand() const {
    const auto word = [](std::uint64_t bytes) { return static_cast<long long>(bytes); };
    return {1, 0, word(row_bytes_[0]), word(row_bytes_[1]), 0, 0, word(rows_), 0};
  }

 private:
  std::uint64_t rows_ = 0;
  std::uint64_t row_bytes_[2] = {};
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
