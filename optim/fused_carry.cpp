#include "optim/fused_carry.h"

namespace tritgrad {
namespace {

template <typename T>
T* numbers_of(const Storage& storage, std::size_t plane) {
  return reinterpret_cast<T*>(storage.planes()[plane].bytes.data());
}

bool rounds_by_chance(const Storage& storage) {
  return storage.spec().rounding == Rounding::kStochastic;
}

}  // namespace

std::optional<FusedCarry> FusedCarry::of(const Rule& rule, const Storage& weight,
                                         std::span<Storage> moments) {
  const auto* carries = dynamic_cast<const CarriesTrits*>(&rule);
  if (carries == nullptr || weight.spec().kind != FormatKind::kTrits) return std::nullopt;
  const std::optional<FormatKind> v_kind = carries->carried_v();
  if (!v_kind || (moments.size() > 1 && moments[1].spec().kind != *v_kind)) return std::nullopt;
  FusedCarry fused;
  fused.rule_ = carries;
  fused.rounds_trits_ = rounds_by_chance(weight);
  fused.rounds_m_ = rounds_by_chance(moments[0]);
  fused.cols_ = weight.shape().cols();
  fused.row_bytes_ = weight.trit_layout().row_bytes;
  fused.first_.trits = numbers_of<std::uint8_t>(weight, 0);
  if (moments[0].spec().kind == FormatKind::kFp32) {
    fused.first_.m = moments[0].fp32_data();
  } else if (moments[0].spec().kind == FormatKind::kInt8) {
    fused.first_.m_codes = numbers_of<std::int8_t>(moments[0], 0);
    fused.first_.m_scales = numbers_of<std::uint16_t>(moments[0], 1);
  } else {
    return std::nullopt;
  }
  if (moments.size() == 1) return fused;
  fused.first_.v = moments[1].fp32_data();
  fused.v_ = moments[1].scalar();
  return fused;
}

FlipCounts FusedCarry::update(const Block& block, const float* grad, const EcoStep& eco,
                              const Descent& descent) const {
  constexpr std::int64_t kGroup = IntegerGroup<8>::kGroup;
  const auto from = []<typename T>(T* first, std::int64_t i) {
    return first == nullptr ? nullptr : first + i;
  };
  const std::int64_t element = block.row * cols_ + block.col;
  const std::int64_t group = block.row * ((cols_ + kGroup - 1) / kGroup) + block.col / kGroup;
  const RandomKey m_key = moment_key(descent.key, 0);
  double v_sum = 0.0;
  const CarriedTrits here{.grad = grad,
                          .trits = first_.trits + block.row * row_bytes_ + block.col / 5,
                          .m = from(first_.m, element),
                          .m_codes = from(first_.m_codes, element),
                          .m_scales = from(first_.m_scales, group),
                          .v = from(first_.v, element),
                          .v_sum = &v_sum,
                          .trit_key = rounds_trits_ ? &descent.key : nullptr,
                          .m_key = rounds_m_ ? &m_key : nullptr,
                          .first_noise = noise_index(block, cols_)};
  float v = 0.0f;
  if (v_ != nullptr) v_->decode_master({block.row, block.col, 1, block.slot}, &v);
  FlipCounts flips;
  flips.flips = rule_->carry_trits(here, v, {descent.lr, eco.alpha, eco.rescale}, block.n);
  if (v_ != nullptr) v_->add_sum(block.slot, v_sum, block.n);
  return flips;
}

}  // namespace tritgrad
