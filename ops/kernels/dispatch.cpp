// Which table is in use: the best that this machine can run, lowered by TRITGRAD_ISA.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/check.h"
#include "ops/kernels/choose.h"
#include "ops/kernels/tables.h"

namespace tritgrad {
namespace {

// From the reference to the best; the order is that of ability.
struct Tables {
  std::array<const KernelTable*, 3> list{};
  std::size_t count = 0;

  Tables() {
    list[count++] = &reference_kernels();
#ifndef TRITGRAD_PORTABLE
    __builtin_cpu_init();
    // Both also ask whether the operating system saves the wide registers.
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (avx2) list[count++] = &avx2_kernels();
    if (avx512) list[count++] = &avx512_kernels();
#endif
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

std::atomic<const KernelTable*> g_in_use{nullptr};

const KernelTable& choose_at_start() {
  const KernelTable* chosen = choose_kernels(supported_kernels(), std::getenv("TRITGRAD_ISA"));
  g_in_use.store(chosen, std::memory_order_release);
  return *chosen;
}

}  // namespace

const KernelTable* choose_kernels(std::span<const KernelTable* const> supported, const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') return supported.back();
  constexpr std::array<std::string_view, 3> kNames = {"reference", "avx2", "avx512"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == wanted) return supported[std::min(i, supported.size() - 1)];
  }
  fail("TRITGRAD_ISA is '", wanted, "', expected reference, avx2 or avx512; unset it for the best");
}

std::span<const KernelTable* const> supported_kernels() {
  return {tables().list.data(), tables().count};
}

const KernelTable& kernels() {
  const KernelTable* in_use = g_in_use.load(std::memory_order_acquire);
  return in_use != nullptr ? *in_use : choose_at_start();
}

void use_kernels(const char* name) {
  for (const KernelTable* table : supported_kernels()) {
    if (std::string_view(table->name) == name) {
      g_in_use.store(table, std::memory_order_release);
      return;
    }
  }
  fail("use_kernels: this machine has no kernels named '", name, "'");
}

}  // namespace tritgrad
