// One loop on registers alone, compiled once per target: TRITGRAD_TARGET names the namespace.
#pragma once

#include <cstdint>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Sums that do not wait for each other: the longest latency (5 cycles) times the two units that may
// work side by side. With two operands and a product in between they fit 16 registers.
constexpr int kSums = 12;

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
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      change(a);
      sums[i] = step(sums[i], a, b);
    }
  }
  for (Sum& sum : sums) change(sum);
  return rounds * kSums;
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
