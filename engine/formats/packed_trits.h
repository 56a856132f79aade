// The plane of packed base-3 trits (five to a byte, 1.6 bits) that ternary, trits and the shared
// formats keep.
//
// Each row starts on a byte; inside a block of 320 (or the shorter rest of a row) trits lie in
// stripes: with b = ceil(n / 5) bytes, element i is digit i / b of byte i % b,
//
//     byte j = (t_j + 1) + 3 (t_{j+b} + 1) + 9 (t_{j+2b} + 1) + 27 (...) + 81 (...)   in 0..242
//
// so that decoding writes contiguous runs. Stripes instead of neighbours: no shuffles on any
// instruction set. Values 243..255 never occur.
#pragma once

#include <algorithm>
#include <array>

#include "engine/formats/format.h"
#include "engine/formats/trit_layout.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/updates.h"

namespace tritgrad {

// The trits of the formats that keep five to a byte: the value is the bare trit T in {-1, 0, 1};
// its scale is a parameter of its own, because it is trained by another rule.
class PackedTrits {
 public:
  static PlaneSpec trit_plane(const Shape& shape, Category category) {
    return {"trits", Dtype::kU8, shape.rows() * row_bytes(shape.cols()), category, true};
  }

  void decode_trits(const Block& block, std::int8_t* out) const {
    kernels().codecs.decode_trits(out, 0, packed(block), 0, 1, block.n);
  }
  TritLayout trit_layout() const {
    return {.kind = TritLayout::Kind::kFiveToAByte,
            .bytes = bytes_.bytes().data(),
            .cols = cols_,
            .row_bytes = row_bytes(cols_)};
  }
  void decode_value(const Block& block, float* out) const {
    std::array<std::int8_t, kBlock> trits;
    decode_trits(block, trits.data());
    kernels().codecs.trits_to_float(out, trits.data(), block.n);
  }

 protected:
  // All trits are zero.
  PackedTrits(const Shape& shape, Category category)
      : cols_(shape.cols()),
        bytes_(static_cast<std::size_t>(trit_plane(shape, category).bytes()), category) {
    constexpr std::array<std::int8_t, kBlock> zeros{};
    for_each_block(shape, [&](const Block& block) { encode_trits(block, zeros.data()); });
  }

  std::int64_t cols() const { return cols_; }
  std::span<std::byte> trit_bytes() const { return bytes_.bytes(); }
  // Returns the memory of the trits of a block and of those below it.
  PrefetchRows trit_memory(const Block& first, std::int64_t rows) const {
    return {packed(first), rows, (first.n + 4) / 5, row_bytes(cols_)};
  }
  void encode_trits(const Block& block, const std::int8_t* trits) {
    kernels().codecs.encode_trits(packed(block), trits, block.n);
  }
  // move(counts, trits) updates the trits of `count` blocks, kBlock apart, and counts for each.
  template <typename Move>
  FlipCounts move_trits(const BlockSeries& series, std::size_t count, const Move& move) {
    std::array<std::int8_t, kMostBlocksAtOnce * kBlock> trits;
    std::array<FlipCounts, kMostBlocksAtOnce> counts;
    kernels().codecs.decode_trits(trits.data(), kBlock, packed(series.first),
                                  offset(series[1]) - offset(series.first),
                                  static_cast<std::int64_t>(count), series.first.n);
    move(counts.data(), trits.data());
    FlipCounts total;
    for (std::size_t i = 0; i < count; ++i) {
      if (counts[i].flips > 0) encode_trits(series[i], trits.data() + i * kBlock);
      total += counts[i];
    }
    return total;
  }
  // Rounds to nearest, or by noise [n] where it is not null; NaN gives 0.
  void encode_rounded(const Block& block, const float* master, const std::uint16_t* noise) {
    std::array<std::int16_t, kBlock> levels;
    std::array<std::uint32_t, kBlock> fractions;
    if (noise != nullptr) std::transform(noise, noise + block.n, fractions.data(), as_fraction);
    kernels().updates.quantize_levels(
        levels.data(), master, {-1.0f, 1, noise == nullptr ? nullptr : fractions.data()}, block.n);
    std::array<std::int8_t, kBlock> trits;
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.n); ++i) {
      trits[i] = static_cast<std::int8_t>(levels[i]);
    }
    encode_trits(block, trits.data());
  }

 private:
  static std::int64_t row_bytes(std::int64_t cols) {
    return cols / kBlock * (kBlock / 5) + (cols % kBlock + 4) / 5;
  }
  std::int64_t offset(const Block& block) const {
    return block.row * row_bytes(cols_) + block.col / 5;
  }
  std::uint8_t* packed(const Block& block) const {
    return bytes_.as<std::uint8_t>() + offset(block);
  }

  std::int64_t cols_;
  Buffer bytes_;
};

}  // namespace tritgrad
