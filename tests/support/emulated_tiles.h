// Tile registers (AMX) in memory, for processors without: what the instructions of
// ops/kernels/products/tile_product-inl.h do, as Intel's manual describes them, and what they
// refuse.
//
// The namespace of whoever includes it is TRITGRAD_TARGET, as that of kernels.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "ops/kernels/products/tile_product-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

struct EmulatedTile {
  int rows = 0, row_bytes = 0;
  std::array<std::uint8_t, kRowsOfTile * kBytesOfRow> bytes{};

  std::uint8_t* row(int r) { return bytes.data() + r * kBytesOfRow; }
  std::size_t width() const { return static_cast<std::size_t>(row_bytes); }
};

class EmulatedTiles {
 public:
  // The configuration is read from its bytes, as the processor reads it.
  static void configure(const TileShapes& shapes) {
    std::array<std::uint8_t, 64> config;
    const auto operand = shapes.operand();
    std::memcpy(config.data(), operand.data(), config.size());
    require(config[0] == 1 && config[1] == 0, "palette 1 from row 0 on");
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const int bytes = config[16 + 2 * i] + 256 * config[17 + 2 * i];
      const int rows = config[48 + i];
      require(bytes <= kBytesOfRow && rows <= kRowsOfTile && (bytes == 0) == (rows == 0),
              "a tile of up to 16 rows of 64 bytes, or none");
      tiles[i] = {rows, bytes, {}};
    }
  }
  // Leaves the tiles as a thread finds them when it begins: none can be used.
  static void release() { tiles = {}; }

  template <int kTile>
  static void load(const void* rows, std::int64_t stride) {
    EmulatedTile& tile = used(kTile);
    tile.bytes = {};
    for (int r = 0; r < tile.rows; ++r) {
      std::memcpy(tile.row(r), static_cast<const char*>(rows) + r * stride, tile.width());
    }
  }
  template <int kTile>
  static void store(void* rows, std::int64_t stride) {
    EmulatedTile& tile = used(kTile);
    for (int r = 0; r < tile.rows; ++r) {
      std::memcpy(static_cast<char*>(rows) + r * stride, tile.row(r), tile.width());
    }
  }
  template <int kTile>
  static void clear() {
    used(kTile).bytes = {};
  }
  template <int kSum, int kA, int kB>
  static void add_product() {
    EmulatedTile& sum = used(kSum);
    EmulatedTile &a = used(kA), &b = used(kB);
    require(sum.rows == a.rows && sum.row_bytes == b.row_bytes && a.row_bytes == 4 * b.rows &&
                sum.row_bytes % 4 == 0,
            "tiles whose shapes fit each other");
    for (int m = 0; m < sum.rows; ++m) {
      for (int n = 0; n < sum.row_bytes / 4; ++n) {
        std::int32_t total;
        std::memcpy(&total, sum.row(m) + 4 * n, 4);
        for (int k = 0; k < a.row_bytes; ++k) {
          total += static_cast<std::int8_t>(a.row(m)[k]) * b.row(k / 4)[4 * n + k % 4];
        }
        std::memcpy(sum.row(m) + 4 * n, &total, 4);
      }
    }
  }

 private:
  static void require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(std::string("the processor wants ") + what);
  }
  static EmulatedTile& used(int tile) {
    EmulatedTile& found = tiles[static_cast<std::size_t>(tile)];
    require(found.rows > 0, "a tile that is configured");
    return found;
  }

  static inline thread_local std::array<EmulatedTile, 8> tiles;
};

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
