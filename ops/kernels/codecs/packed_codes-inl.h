// Codes of 4, 5 or 6 bits, packed as lowbit_loops-inl.h has it: blocks of a matrix's row, in
// vectors that may reach beyond a stripe into the next one, which is written after it. Longer
// arrays, and none at all, go through the loops.
#pragma once

#include <cstring>

#include "engine/formats/format.h"
#include "ops/kernels/codecs/lowbit_loops-inl.h"
#include "ops/kernels/products/byte_sums-inl.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace wide {
namespace {

// Of a block of n codes: `half` bytes with two nibbles each, then the bits above them in stripes.
template <int kBits>
struct CodePlanes {
  static constexpr std::int64_t kStep = kLanes<U8>;
  // Vectors that begin in a block, or in a last stripe that is longer than what is left of it.
  static constexpr std::int64_t kRoom = kBlock + 2 * 64;
  static constexpr int kWidth = kBits - 4;
  static constexpr int kStripes = kWidth == 0 ? 0 : 8 / kWidth;
  static constexpr auto kHighBits = static_cast<std::uint8_t>((1 << kBits) - 16);

  explicit CodePlanes(std::int64_t n)
      : half((n + 1) / 2), stripe(kWidth == 0 ? 0 : (n * kWidth + 7) / 8) {}

  std::int64_t bytes() const { return half + stripe; }

  // Bits of each byte up (down where kBy < 0); those that would pass into the next one are masked
  // off before or after.
  template <int kBy>
  static U8 shifted(const U8& x) {
    const U64 words = bits_as<U64>(x);
    if constexpr (kBy >= 0) {
      return bits_as<U8>(words << kBy);
    } else {
      return bits_as<U8>(words >> -kBy);
    }
  }
  // How far the high bits of stripe k lie above those of a code, in their bytes.
  static constexpr int above(int k) { return k * kWidth - 4; }

  std::int64_t half, stripe;
};

// Inlined, so that blocks of the usual length know their strides.
template <int kBits>
[[gnu::always_inline]] inline void pack_block(std::uint8_t* packed, const std::int8_t* codes,
                                              int max_code, std::int64_t n) {
  using Planes = CodePlanes<kBits>;
  const Planes planes(n);
  constexpr std::int8_t kOffset = 1 << (kBits - 1);
  const I8 most(static_cast<std::int8_t>(max_code));
  alignas(kAlignment) std::int8_t rising[Planes::kRoom];
  std::int64_t whole = 0;
  for (; whole + Planes::kStep <= n; whole += Planes::kStep) {
    write(rising + whole, clamp(read<I8>(codes + whole), -most, most));
  }
  std::memset(rising + whole, -kOffset, static_cast<std::size_t>(Planes::kRoom - whole));
  if (whole < n) {
    write_first(rising + whole, clamp(read_first(codes + whole, n - whole, most), -most, most),
                n - whole);
  }
  const auto numbers = [&](std::int64_t i) {  // from 0 on
    return bits_as<U8>(read<I8>(rising + i) + I8(kOffset));
  };
  alignas(kAlignment) std::uint8_t bytes[Planes::kRoom];
  for (std::int64_t j = 0; j < planes.half; j += Planes::kStep) {
    const U8 nibble(std::uint8_t{15});
    write(bytes + j,
          (numbers(j) & nibble) | Planes::template shifted<4>(numbers(planes.half + j) & nibble));
  }
  for (std::int64_t j = 0; j < planes.stripe; j += Planes::kStep) {
    U8 high(std::uint8_t{0});
    unrolled<Planes::kStripes>([&]<int k>() {
      high = high | Planes::template shifted<Planes::above(k)>(numbers(k * planes.stripe + j) &
                                                               U8(Planes::kHighBits));
    });
    write(bytes + planes.half + j, high);
  }
  std::memcpy(packed, bytes, static_cast<std::size_t>(planes.bytes()));
}

template <int kBits>
[[gnu::always_inline]] inline void unpack_block(std::int8_t* codes, const std::uint8_t* packed,
                                                int max_code, std::int64_t n) {
  using Planes = CodePlanes<kBits>;
  const Planes planes(n);
  alignas(kAlignment) std::uint8_t bytes[Planes::kRoom], nibbles[Planes::kRoom] = {};
  std::memcpy(bytes, packed, static_cast<std::size_t>(planes.bytes()));
  std::memset(bytes + planes.bytes(), 0, static_cast<std::size_t>(Planes::kRoom - planes.bytes()));
  const U8 nibble(std::uint8_t{15});
  for (std::int64_t j = 0; j < planes.half; j += Planes::kStep) {
    write(nibbles + j, read<U8>(bytes + j) & nibble);
  }
  for (std::int64_t j = 0; j < planes.half; j += Planes::kStep) {
    write(nibbles + planes.half + j, Planes::template shifted<-4>(read<U8>(bytes + j)) & nibble);
  }
  alignas(kAlignment) std::int8_t out[Planes::kRoom];
  const I8 offset(std::int8_t{1 << (kBits - 1)}), most(static_cast<std::int8_t>(max_code));
  const auto finish = [&](std::int64_t i, const U8& number) {
    write(out + i, clamp(bits_as<I8>(number) - offset, -most, most));
  };
  if constexpr (Planes::kStripes == 0) {
    for (std::int64_t i = 0; i < n; i += Planes::kStep) finish(i, read<U8>(nibbles + i));
  }
  unrolled<Planes::kStripes>([&]<int k>() {
    for (std::int64_t j = 0; j < planes.stripe; j += Planes::kStep) {
      const U8 high =
          Planes::template shifted<-Planes::above(k)>(read<U8>(bytes + planes.half + j));
      const std::int64_t i = k * planes.stripe + j;
      finish(i, read<U8>(nibbles + i) | (high & U8(Planes::kHighBits)));
    }
  });
  std::memcpy(codes, out, static_cast<std::size_t>(n));
}

template <int kBits>
void pack_bits(std::uint8_t* packed, const std::int8_t* codes, int max_code, std::int64_t n) {
  n == kBlock ? pack_block<kBits>(packed, codes, max_code, kBlock)
              : pack_block<kBits>(packed, codes, max_code, n);
}
template <int kBits>
void unpack_bits(std::int8_t* codes, const std::uint8_t* packed, int max_code, std::int64_t n) {
  n == kBlock ? unpack_block<kBits>(codes, packed, max_code, kBlock)
              : unpack_block<kBits>(codes, packed, max_code, n);
}

void pack_codes(std::uint8_t* packed, const std::int8_t* codes, int bits, int max_code,
                std::int64_t n) {
  if (n == 0 || n > kBlock) return TRITGRAD_TARGET::pack_codes(packed, codes, bits, max_code, n);
  bits == 4   ? pack_bits<4>(packed, codes, max_code, n)
  : bits == 5 ? pack_bits<5>(packed, codes, max_code, n)
              : pack_bits<6>(packed, codes, max_code, n);
}

void unpack_codes(std::int8_t* codes, const std::uint8_t* packed, int bits, int max_code,
                  std::int64_t n) {
  if (n == 0 || n > kBlock) {
    return TRITGRAD_TARGET::unpack_codes(codes, packed, bits, max_code, n);
  }
  bits == 4   ? unpack_bits<4>(codes, packed, max_code, n)
  : bits == 5 ? unpack_bits<5>(codes, packed, max_code, n)
              : unpack_bits<6>(codes, packed, max_code, n);
}

}  // namespace
}  // namespace wide
}  // namespace tritgrad::TRITGRAD_TARGET
