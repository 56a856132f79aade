// Tile registers (AMX) and their instructions.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/kernels/products/tile_shapes-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// The intrinsics of g++ 12 want tiles as literals, and do not say which memory they read.
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

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
