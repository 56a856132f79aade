// Which tables are used, and what only the processor itself tells.
#ifndef TRITGRAD_PORTABLE
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check.h"
#include "ops/kernels/targets.h"

namespace tritgrad {
namespace {

// The sets of tables in rising order; the place of one is its rank.
constexpr std::array<std::string_view, 6> kNames = {"reference",  "avx2",       "avx512",
                                                    "avx512vnni", "avx512vbmi", "avx512amx"};

std::ptrdiff_t rank_of(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) - kNames.begin();
}

#ifndef TRITGRAD_PORTABLE
// Whether the processor multiplies int8 in tiles, and the operating system lets this process have
// the 8 KiB of state that each of its threads then carries: Linux gives it to who asks, but not
// beside stacks for signals that have no room for it; later ones need the room. So nobody asks
// where TRITGRAD_ISA rules tiles out.
bool may_use_tiles() {
#ifdef __linux__
  constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;
  constexpr int kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  const char* requested = std::getenv("TRITGRAD_ISA");
  if (requested != nullptr && *requested != '\0' && rank_of(requested) < rank_of("avx512amx")) {
    return false;
  }
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kTile) == 0 || (edx & kInt8) == 0) return false;
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
#else
  return false;
#endif
}
#endif

// The compiler's own detection also asks whether the operating system saves the vector registers.
std::vector<const KernelTables*> detect() {
  std::vector<const KernelTables*> tables = {&reference::kKernels};
#ifndef TRITGRAD_PORTABLE
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    tables.push_back(&avx2::kKernels);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
      tables.push_back(&avx512::kKernels);
      if (__builtin_cpu_supports("avx512vnni")) {
        tables.push_back(&avx512vnni::kKernels);
        if (__builtin_cpu_supports("avx512ifma") && __builtin_cpu_supports("avx512vbmi")) {
          tables.push_back(&avx512vbmi::kKernels);
          if (may_use_tiles()) tables.push_back(&avx512amx::kKernels);
        }
      }
    }
  }
#endif
  return tables;
}

bool detect_quick_gathers() {
#ifdef TRITGRAD_PORTABLE
  return false;
#else
  // Earlier processors, which have no arithmetic in 16-bit floats, were slowed down by microcode.
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

const KernelTables& choose_kernels(std::span<const KernelTables* const> supported,
                                   const char* requested) {
  if (requested == nullptr || *requested == '\0') return *supported.back();
  const std::ptrdiff_t ceiling = rank_of(requested);
  check(ceiling < std::ssize(kNames), "TRITGRAD_ISA is '", requested,
        "'; set it to reference, avx2, avx512, avx512vnni, avx512vbmi or avx512amx, or unset it");
  const KernelTables* chosen = supported.front();
  for (const KernelTables* table : supported) {
    if (rank_of(table->name) <= ceiling) chosen = table;
  }
  return *chosen;
}

// A table set by use_kernels() meanwhile stays.
const KernelTables& choose_kernels_at_start() {
  const KernelTables* expected = nullptr;
  const KernelTables& chosen = choose_kernels(supported_kernels(), std::getenv("TRITGRAD_ISA"));
  return kernels_in_use.compare_exchange_strong(expected, &chosen) ? chosen : *expected;
}

std::span<const KernelTables* const> supported_kernels() {
  static const std::vector<const KernelTables*> tables = detect();
  return tables;
}

void use_kernels(const char* name) {
  std::string names;
  for (const KernelTables* table : supported_kernels()) {
    if (std::string_view(table->name) == name) {
      kernels_in_use.store(table, std::memory_order_release);
      return;
    }
    names += names.empty() ? "" : ", ";
    names += table->name;
  }
  fail("use_kernels: this machine cannot run kernels named '", name, "'; choose one of ", names);
}

}  // namespace tritgrad
