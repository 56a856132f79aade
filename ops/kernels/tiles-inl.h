// Tile registers (AMX), their shapes and their instructions.
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
    asm volatile("ldtilecfg %0" : : "m"(wanted));
  }

 private:
  std::uint64_t rows_ = 0;
  std::uint64_t row_bytes_[2] = {};
};

// The intrinsics of g++ 12 want tiles as literals, and do not say which memory they read.
template <int kTile>
inline void load_tile(const void* rows, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void store_tile(void* rows, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
// Adds the products of signed bytes (rows of kA) with bytes from 0 to 255 (columns of kB).
template <int kSum, int kA, int kB>
inline void add_tile_product() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
