// int8 and int4: signed integers with a bf16 scale for every 32; 1.0625 or 0.5625 bytes.
//
// Code c in +-127 or +-7, value = master = c * scale. A group is 32 neighbours of a row (fewer at
// its end); 320 = 10 x 32, so none crosses a block. The scale follows the largest magnitude of the
// group at every writing (CodecKernels::encode_groups):
//
// - nearest: the scale is rounded to nearest, which is within 2^-8, less than half a step of the
//   top code (127 / 256). So the largest element always has the top code, the error is within half
//   a step, and encoding what was decoded gives the same bytes.
// - stochastic: the scale is rounded up. Nothing is clipped, so the expectation of what is stored
//   is what was to be stored; but the largest element may be rounded to less than the top code,
//   and then the scale of the next writing is another one.
//
// An update writes only groups in which a master changes. For int4, codes lie in stripes as in
// latent4; those of int8 are bytes, of which -128 never occurs and reads as -127.
#pragma once

#include <algorithm>
#include <array>

#include "engine/formats/descend.h"
#include "engine/formats/format.h"
#include "engine/formats/half_precision.h"
#include "engine/formats/packed_codes.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/updates.h"
#include "engine/memory/prefetch.h"

namespace tritgrad {

template <int kBits>
class IntegerGroup {
 public:
  static_assert(kBits == 4 || kBits == 8);
  static constexpr int kMaxCode = (1 << (kBits - 1)) - 1;
  static constexpr std::int64_t kGroup = 32;
  static_assert(kBlock % kGroup == 0);
  static constexpr FormatTraits kTraits{.kind = kBits == 8 ? FormatKind::kInt8 : FormatKind::kInt4,
                                        .name = kBits == 8 ? "int8" : "int4",
                                        .has_residual = false,
                                        .tells_memory = kBits == 8};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    const std::int64_t row_bytes =
        kBits == 8 ? shape.cols() : packed_row_bytes(kBits, shape.cols());
    return {{"code", kBits == 8 ? Dtype::kI8 : Dtype::kU8, shape.rows() * row_bytes, value_category,
             true},
            {"scale", Dtype::kBf16, shape.rows() * groups(shape.cols()), value_category, true}};
  }

  IntegerGroup(const FormatSpec& spec, const Shape& shape, Category value_category)
      : specs_(plane_specs(spec, shape, value_category)),
        cols_(shape.cols()),
        rounding_(spec.rounding),
        codes_(static_cast<std::size_t>(specs_[0].bytes()), value_category),
        scales_(static_cast<std::size_t>(specs_[1].bytes()), value_category) {
    constexpr Codes zeros{};
    for_each_block(shape, [&](const Block& block) { write(block, zeros); });
  }

  std::vector<Plane> planes() const {
    return {{specs_[0], codes_.bytes()}, {specs_[1], scales_.bytes()}};
  }

  // Scales and packed codes are not in the list: they are few.
  PrefetchList memory_of(const Block& first, std::int64_t rows, Reading) const {
    if (kBits != 8) return {};
    return {{{bytes(first), rows, first.n, cols_}}};
  }

  void decode_value(const Block& block, float* out) const {
    Codes unpacked;
    kernels().codecs.decode_groups(out, unpacked_codes(block, unpacked), scales(block), kMaxCode,
                                   block.n);
  }
  void decode_master(const Block& block, float* out) const { decode_value(block, out); }

  // Rounds as the spec says.
  void encode(const Block& block, const float* master, const RandomKey& key) {
    if constexpr (kBits == 8) {
      quantize(block, bytes(block), scales(block), master, key);
    } else {
      Codes codes;
      quantize(block, codes.data(), scales(block), master, key);
      write(block, codes);
    }
  }

  // Updates a block whose masters are known.
  void descend_from(const Block& block, const float* before, const float* direction,
                    const Descent& descent) {
    std::array<float, kBlock> after;
    std::copy_n(before, block.n, after.data());
    kernels().updates.descend(after.data(), direction, descent.lr, block.n);
    Codes quantized;
    std::array<std::uint16_t, kBlock / kGroup> new_scales;
    quantize(block, quantized.data(), new_scales.data(), after.data(), descent.key);
    keep_unchanged(block, before, after.data(), quantized, new_scales.data());
    std::copy_n(new_scales.data(), groups(block.n), scales(block));
    write(block, quantized);
  }

 private:
  using Codes = std::array<std::int8_t, kBlock>;

  static std::int64_t groups(std::int64_t cols) { return (cols + kGroup - 1) / kGroup; }

  void quantize(const Block& block, std::int8_t* codes, std::uint16_t* scales, const float* x,
                const RandomKey& key) const {
    std::array<std::uint16_t, kBlock> noise;
    const bool stochastic = rounding_ == Rounding::kStochastic;
    if (stochastic) {
      kernels().codecs.random_u16(noise.data(), block.n, key, noise_index(block, cols_));
    }
    kernels().codecs.encode_groups(codes, scales, x, kMaxCode, stochastic ? noise.data() : nullptr,
                                   block.n);
  }
  // Puts back codes and scales of groups in which no master has changed.
  void keep_unchanged(const Block& block, const float* before, const float* after, Codes& codes,
                      std::uint16_t* new_scales) const {
    Codes unpacked;
    const std::int8_t* old = nullptr;
    for (std::int64_t i = 0; i < block.n; i += kGroup) {
      const std::int64_t count = std::min(kGroup, block.n - i);
      if (!std::equal(before + i, before + i + count, after + i)) continue;
      if (old == nullptr) old = unpacked_codes(block, unpacked);
      std::copy_n(old + i, count, codes.data() + i);
      new_scales[i / kGroup] = scales(block)[i / kGroup];
    }
  }
  // Returns the codes of a block, unpacked where they are not bytes.
  const std::int8_t* unpacked_codes(const Block& block, Codes& unpacked) const {
    if constexpr (kBits == 8) return bytes(block);
    kernels().codecs.unpack_codes(unpacked.data(), packed(block), kBits, kMaxCode, block.n);
    return unpacked.data();
  }
  void write(const Block& block, const Codes& codes) {
    if constexpr (kBits == 8) {
      std::copy_n(codes.data(), block.n, bytes(block));
    } else {
      kernels().codecs.pack_codes(packed(block), codes.data(), kBits, kMaxCode, block.n);
    }
  }
  std::int8_t* bytes(const Block& block) const {
    return codes_.as<std::int8_t>() + block.row * cols_ + block.col;
  }
  std::uint8_t* packed(const Block& block) const {
    return codes_.as<std::uint8_t>() + packed_offset(kBits, cols_, block);
  }
  std::uint16_t* scales(const Block& block) const {
    return scales_.as<std::uint16_t>() + block.row * groups(cols_) + block.col / kGroup;
  }

  std::vector<PlaneSpec> specs_;
  std::int64_t cols_;
  Rounding rounding_;
  Buffer codes_;
  Buffer scales_;
};
static_assert(Format<IntegerGroup<8>> && Format<IntegerGroup<4>>);

}  // namespace tritgrad
