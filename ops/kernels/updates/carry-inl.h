// Updates of bare trits whose rounding errors are carried on (optim/eco.h), a vector at a time.
#pragma once

#include "engine/kernels/kernel_table.h"
#include "ops/kernels/reference.h"
#include "ops/kernels/simd-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

std::int64_t carry_trits(std::int8_t* trits, float* momentum, const float* direction,
                         const float* gain, const CarryConstants& constants,
                         const std::uint16_t* noise, std::int64_t n) {
  constexpr std::int64_t kStep = kLanes<F32>, kBytes = kLanes<I8>;
  const F32 lr(constants.lr), alpha(constants.alpha), rescale(constants.rescale), most(1.5f);
  I32 changed(0);
  // Moves a vector of elements from i on; returns its trits.
  const auto carry = [&](std::int64_t i) __attribute__((always_inline)) {
    const I32 trit = read_i32(trits + i);
    const F32 exact = to_float(trit) - lr * read<F32>(direction + i);
    const F32 wanted = clamp(select(exact == exact, exact, F32(0.0f)), -most, most);
    const I32 stored =
        clamp(round_small(wanted, noise == nullptr ? nullptr : noise + i), I32(-1), I32(1));
    changed += one_if(stored != trit);
    F32 error = alpha * (wanted - to_float(stored));
    if (gain != nullptr) error = error / read<F32>(gain + i);
    write(momentum + i, rescale * (read<F32>(momentum + i) + error));
    return stored;
  };
  std::int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    const I32 a = carry(i), b = carry(i + kStep);
    write(trits + i, narrow(a, b, carry(i + 2 * kStep), carry(i + 3 * kStep)));
  }
  std::int32_t numbers[kStep];
  for (; i + kStep <= n; i += kStep) {
    write(numbers, carry(i));
    for (std::int64_t lane = 0; lane < kStep; ++lane) {
      trits[i + lane] = static_cast<std::int8_t>(numbers[lane]);
    }
  }
  std::int64_t count = reference::carry_trits(trits + i, momentum + i, direction + i,
                                              gain == nullptr ? nullptr : gain + i, constants,
                                              noise == nullptr ? nullptr : noise + i, n - i);
  write(numbers, changed);
  for (const std::int32_t number : numbers) count += number;
  return count;
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
