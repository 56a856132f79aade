// Latents, codes of one byte that hold a trit and its accumulator: their trits and their update.
#pragma once

#include <array>

#include "ops/kernels/updates/byte_rules-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

void latent_to_trits(std::int8_t* trits, const std::int8_t* codes, int threshold, std::int64_t n) {
  const I8 up(static_cast<std::int8_t>(threshold)), down(static_cast<std::int8_t>(-threshold));
  const auto trits_of = [&](const I8& code) { return one_if(code > up) - one_if(code < down); };
  std::int64_t i = 0;
  for (; i + kLanes<I8> <= n; i += kLanes<I8>) write(trits + i, trits_of(read<I8>(codes + i)));
  if (i == n) return;
  write_first(trits + i, trits_of(read_first(codes + i, n - i, I8(std::int8_t{0}))), n - i);
}

template <typename Rule>
struct DescendLatent {
  explicit DescendLatent(const Rule& rule_) : rule(rule_) {}

  [[gnu::always_inline]] void operator()(const std::array<std::int8_t*, 1>& at, const I8& levels,
                                         ByteCounts& counts, std::int64_t /*i*/) const {
    write(at[0], rule(read<I8>(at[0]), levels, counts));
  }

  Rule rule;
};

FlipCounts descend_latent(std::int8_t* codes, std::int64_t ld, const DirectionRows& rows,
                          int threshold, int hysteresis) {
  return with_byte_rule(threshold, hysteresis, [&](const auto& rule) {
    const DescendLatent next(rule);
    ByteCounts counts;
    for_each_levels(
        rows, [&](std::int64_t r, std::int64_t col, std::int64_t n, const std::int8_t* levels) {
          const std::array<std::int8_t*, 1> row{codes + r * ld + col};
          ByteCounts so_far = counts;
          for_each_byte_vector(row, levels, n, next, so_far);
          counts = so_far;
        });
    return counts.total();
  });
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
