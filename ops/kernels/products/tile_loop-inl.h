// One loop on tile registers alone: four tiles of sums and four of operands.
#pragma once

#include "ops/kernels/products/tiles-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Returns the products and additions done. What the operands hold makes no difference.
std::int64_t multiply_tiles(std::int64_t rounds) {
  constexpr std::int64_t kTileSums = 4;
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.set(tile, kRowsOfTile, kBytesOfRow);
  Tiles::configure(shapes);
  for (std::int64_t round = 0; round < rounds; ++round) {
    Tiles::add_product<0, 4, 6>();
    Tiles::add_product<1, 4, 7>();
    Tiles::add_product<2, 5, 6>();
    Tiles::add_product<3, 5, 7>();
  }
  return rounds * kTileSums * 2 * kRowsOfTile * kBytesOfRow * (kBytesOfRow / 4);
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
