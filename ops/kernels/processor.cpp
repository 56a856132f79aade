#include "ops/kernels/processor.h"

#ifndef TRITGRAD_PORTABLE
#include <cpuid.h>
#endif

namespace tritgrad {
namespace {

bool detect_quick_gathers() {
#ifdef TRITGRAD_PORTABLE
  return false;
#else
  // Those before, which have no arithmetic in 16-bit floats, were slowed down by microcode.
  constexpr unsigned kFloat16 = 1u << 23;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return __builtin_cpu_is("intel") && (edx & kFloat16) != 0;
#endif
}

}  // namespace

std::atomic<bool>& gathers_quickly() {
  static std::atomic<bool> quickly{detect_quick_gathers()};
  return quickly;
}

}  // namespace tritgrad
