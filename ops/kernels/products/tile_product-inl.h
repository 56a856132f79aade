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
// `Tiles` are the registers themselves, where TRITGRAD_TILES is defined, or what tests have in
// their place.
#pragma once

#ifdef TRITGRAD_TILES
#include <immintrin.h>
#endif

#include <array>
#include <cstdint>
#include <utility>

#include "engine/kernels/products.h"
#include "ops/kernels/products/gradual_prefetch-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

constexpr std::int64_t kRowsOfTile = 16;
constexpr std::int64_t kBytesOfRow = 64;

// Shapes of tiles as the operand of ldtilecfg: palette 1; from byte 16 on the bytes of a row of
// each tile, 16 bits each; from byte 48 on their rows, 8 bits each.
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

constexpr std::int64_t kTileGroups = kBytesOfRow / 4;  // of the inner dimension
constexpr std::int64_t kTileColumns = kBytesOfRow / 4;
constexpr std::int64_t kPanelGroupBytes = 4 * kPanelColumns;
constexpr std::int64_t kTilesAcross = kPanelColumns / kTileColumns;

// Sets the shapes: tiles 0 to 3 hold sums, 4 and 5 the operands, 6 and 7 those of the last
// `groups_left` groups, which may be none.
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

// Multiplies one tile of rows by as many tiles of columns as there are numbers of tiles.
template <typename Tiles, int... kTile>
inline void multiply_rows(std::integer_sequence<int, kTile...>, std::int32_t* c, std::int64_t ldc,
                          const std::int8_t* a, std::int64_t lda, const std::uint8_t* panel,
                          const PanelDepth& depth, bool add) {
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
  for (std::int64_t piece = 0; piece < depth.pieces; ++piece) {
    std::int64_t g = 0;
    for (; g + kTileGroups <= depth.groups; g += kTileGroups) {
      add_groups.template operator()<4, 5>(g);
    }
    if (g < depth.groups) add_groups.template operator()<6, 7>(g);
    a += depth.a_stride;
    panel += depth.panel_stride;
  }
  (Tiles::template store<kTile>(c + kTile * kTileColumns, stride), ...);
}

template <typename Tiles, int kTiles>
void multiply_columns(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                      std::int64_t rows, const std::uint8_t* panel, const PanelDepth& depth,
                      bool add, GradualPrefetch& ahead) {
  const std::int64_t groups_left = depth.groups % kTileGroups;
  const std::int64_t rows_left = rows % kRowsOfTile;
  if (rows >= kRowsOfTile) configure<Tiles>(kRowsOfTile, groups_left);
  for (std::int64_t r = 0; r < rows; r += kRowsOfTile) {
    ahead.prefetch_some();
    if (rows - r < kRowsOfTile) configure<Tiles>(rows_left, groups_left);
    multiply_rows<Tiles>(std::make_integer_sequence<int, kTiles>{}, c + r * ldc, ldc, a + r * lda,
                         lda, panel, depth, add);
  }
}

// This is ProductKernels::multiply_panel.
template <typename Tiles>
void multiply_in_tiles(std::int32_t* c, std::int64_t ldc, const std::int8_t* a, std::int64_t lda,
                       std::int64_t rows, std::int64_t columns, const std::uint8_t* panel,
                       const PanelDepth& depth, PanelRange, bool add, const PrefetchList& memory) {
  GradualPrefetch ahead(memory, rows / kRowsOfTile);
  if (columns > 3 * kTileColumns) {
    multiply_columns<Tiles, 4>(c, ldc, a, lda, rows, panel, depth, add, ahead);
  } else if (columns > 2 * kTileColumns) {
    multiply_columns<Tiles, 3>(c, ldc, a, lda, rows, panel, depth, add, ahead);
  } else if (columns > kTileColumns) {
    multiply_columns<Tiles, 2>(c, ldc, a, lda, rows, panel, depth, add, ahead);
  } else if (columns > 0) {
    multiply_columns<Tiles, 1>(c, ldc, a, lda, rows, panel, depth, add, ahead);
  }
}

#ifdef TRITGRAD_TILES

// Tile registers and their instructions. The intrinsics of g++ 12 want tiles as literals, and do
// not say which memory they read.
struct Tiles {
  // Shapes belong to a thread, and whoever else uses tiles (oneDNN) changes them. To load them
  // takes 50 ns, to look what they are 5.
  static void configure(const TileShapes& shapes) {
    const auto [w0, w1, w2, w3, w4, w5, w6, w7] = shapes.operand();
    const __m512i wanted = _mm512_set_epi64(w7, w6, w5, w4, w3, w2, w1, w0);
    __m512i loaded;
    asm volatile("sttilecfg %0" : "=m"(loaded));
    if (_mm512_cmpneq_epi64_mask(loaded, wanted) == 0) return;
    asm volatile("ldtilecfg %0" : : "m"(wanted));
  }

  template <int kTile>
  static void load(const void* rows, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(rows), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* rows, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(rows), "r"(stride), "i"(kTile)
                 : "memory");
  }
  template <int kTile>
  static void clear() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  // Adds the products of signed bytes (rows of kA) with bytes from 0 to 255 (columns of kB).
  template <int kSum, int kA, int kB>
  static void add_product() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }
};

constexpr auto multiply_panel = multiply_in_tiles<Tiles>;

#endif

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
