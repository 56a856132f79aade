// fp8_master and int4_master: an fp32 master whose value is what fp8 or int4 would store of it; 4
// bytes. The baselines with master weights of training on such weights alone.
//
// Layers multiply with the value, rounded to nearest with the scales of engine/formats/fp8.h and
// engine/formats/integer_group.h; gradients go to the master as they are (straight through).
#pragma once

#include <algorithm>
#include <array>

#include "engine/formats/format.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/updates.h"

namespace tritgrad {

template <FormatKind kKind>
class RoundedMaster {
 public:
  static_assert(kKind == FormatKind::kFp8Master || kKind == FormatKind::kInt4Master);
  static constexpr FormatTraits kTraits{
      .kind = kKind,
      .name = kKind == FormatKind::kFp8Master ? "fp8_master" : "int4_master",
      .rounds_updates = false};

  static std::vector<PlaneSpec> plane_specs(const FormatSpec&, const Shape& shape,
                                            Category value_category) {
    return {{"master", Dtype::kF32, shape.size(), value_category, true}};
  }

  RoundedMaster(const FormatSpec& spec, const Shape& shape, Category value_category)
      : spec_(plane_specs(spec, shape, value_category)[0]),
        cols_(shape.cols()),
        master_(static_cast<std::size_t>(spec_.bytes()), value_category) {}

  std::vector<Plane> planes() const { return {{spec_, master_.bytes()}}; }

  void decode_value(const Block& block, float* out) const {
    const auto& codecs = kernels().codecs;
    if constexpr (kKind == FormatKind::kFp8Master) {
      std::array<std::uint8_t, kBlock> codes;
      std::uint16_t scale = 0;
      codecs.encode_fp8(codes.data(), &scale, at(block), nullptr, block.n);
      codecs.decode_fp8(out, codes.data(), scale, block.n);
    } else {
      std::array<std::int8_t, kBlock> codes;
      std::array<std::uint16_t, kBlock / kGroup> scales;
      codecs.encode_groups(codes.data(), scales.data(), at(block), kMaxCode, nullptr, block.n);
      codecs.decode_groups(out, codes.data(), scales.data(), kMaxCode, block.n);
    }
  }
  void decode_master(const Block& block, float* out) const { std::copy_n(at(block), block.n, out); }
  void encode(const Block& block, const float* master, const RandomKey&) {
    std::copy_n(master, block.n, at(block));
  }
  FlipCounts descend(const Block& block, const float* direction, const Descent& descent) {
    kernels().updates.descend(at(block), direction, descent.lr, block.n);
    return {};
  }

 private:
  // Those of int4.
  static constexpr int kMaxCode = 7;
  static constexpr std::int64_t kGroup = 32;

  float* at(const Block& block) const {
    return master_.as<float>() + block.row * cols_ + block.col;
  }

  PlaneSpec spec_;
  std::int64_t cols_;
  Buffer master_;
};
using Fp8Master = RoundedMaster<FormatKind::kFp8Master>;
using Int4Master = RoundedMaster<FormatKind::kInt4Master>;
static_assert(Format<Fp8Master> && Format<Int4Master>);

}  // namespace tritgrad
