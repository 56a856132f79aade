// The most that one core of this machine can compute with the instruction set of the kernels in
// use: loops that touch registers alone.
//
// They are yardsticks, not kernels. The speed of this library's products is told as a share of
// what the same instruction set can do at best, and of what memory can deliver.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/kernels/kernels.h"

namespace tritgrad {

struct PeakLoop {
  const char* instructions;  // "vpdpbusd"; where there is no loop, the reason
  // Goes `rounds` times through the loop and returns the operations done; a product and its
  // addition count as two. Null where there is no loop.
  std::int64_t (*run)(std::int64_t rounds);
};

struct PeakLoops {
  PeakLoop fp32;
  PeakLoop int8_trits;  // products of bytes with trits: pairs of them fit 16 bits
  // Reads n bytes, a multiple of 512, from an address that is a multiple of 64, and does as little
  // as possible with them. The result depends on every byte.
  std::int64_t (*read)(const std::byte* bytes, std::int64_t n);
};

}  // namespace tritgrad
