// Tile registers (AMX) and their shapes.
#pragma once

#include <immintrin.h>

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

  // Shapes belong to a thread, and whoever else uses tiles (oneDNN) changes them. To load them
  // takes 50 ns, to look what they are 5.
  void load() const {
    const __m512i wanted = _mm512_set_epi64(0, static_cast<long long>(rows_), 0, 0,
                                            static_cast<long long>(row_bytes_[1]),
                                            static_cast<long long>(row_bytes_[0]), 0, 1);
    __m512i loaded;
    asm volatile("sttilecfg %0" : "=m"(loaded));
    if (_mm512_cmpneq_epi64_mask(loaded, wanted) == 0) return;
    // The intrinsic of g++ 12 does not say that it reads all of its operand.
    asm volatile("ldtilecfg %0" : : "m"(wanted));
  }

 private:
  std::uint64_t rows_ = 0;
  std::uint64_t row_bytes_[2] = {};
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
