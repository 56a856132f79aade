// One loop on registers alone, compiled once per target: TRITGRAD_TARGET names the namespace.
#pragma once

#include <cstdint>

#include "ops/kernels/unrolled-inl.h"

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Sums that do not wait for each other: at least the longest latency (5 cycles) times the two units
// that may work side by side. With two operands and a product in between 12 fit 16 registers. With
// VNNI one instruction does it all, and twice as many fit, which make up for what the units lose to
// the counting of rounds: on an Emerald Rapids 12 reach 704 of 767 GOP/s, 24 reach 758.
#ifdef __AVX512VNNI__
constexpr int kSums = 24;
#else
constexpr int kSums = 12;
#endif

// An empty instruction: the compiler must assume that `x` is another number now, so that nothing
// is computed once and reused, nothing is left out, and no memory is touched.
template <typename Vector>
inline void change(Vector& x) {
  asm volatile("" : "+x"(x));
}

// Each sum becomes step(sum, a, b), `rounds` times. Returns the number of steps.
// Not inlined: next to other code the compiler would keep sums in memory.
template <typename Sum, typename Operand, typename Step>
[[gnu::noinline]] std::int64_t run_in_registers(std::int64_t rounds, Sum first, Operand a,
                                                Operand b, const Step& step) {
  Sum sums[kSums];
  for (Sum& sum : sums) sum = first;
  for (std::int64_t round = 0; round < rounds; ++round) {
    unrolled<kSums>([&]<int i>() {
      change(a);
      sums[i] = step(sums[i], a, b);
    });
  }
  for (Sum& sum : sums) change(sum);
  return rounds * kSums;
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
