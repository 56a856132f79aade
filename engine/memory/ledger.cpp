#include "engine/memory/ledger.h"

#include <atomic>

namespace tritgrad {

const char* category_name(Category category) {
  static constexpr std::array<const char*, kCategoryCount> kNames = {
      "weights", "scales", "residual", "moments", "gradients", "activations", "workspace", "data"};
  return kNames[static_cast<std::size_t>(category)];
}

namespace ledger {
namespace {

std::array<std::atomic<std::int64_t>, kCategoryCount> g_live{};
std::atomic<std::int64_t> g_total{0};
std::atomic<std::int64_t> g_peak{0};

std::atomic<std::int64_t>& counter(Category category) {
  return g_live[static_cast<std::size_t>(category)];
}

}  // namespace

void acquire(Category category, std::size_t bytes) {
  const auto n = static_cast<std::int64_t>(bytes);
  counter(category) += n;
  if (category == Category::kData) return;
  const std::int64_t total = g_total += n;
  std::int64_t peak = g_peak.load();
  while (total > peak && !g_peak.compare_exchange_weak(peak, total)) {
  }
}

void release(Category category, std::size_t bytes) {
  const auto n = static_cast<std::int64_t>(bytes);
  counter(category) -= n;
  if (category != Category::kData) g_total -= n;
}

std::int64_t live(Category category) { return counter(category).load(); }
std::int64_t live_total() { return g_total.load(); }
std::int64_t peak_total() { return g_peak.load(); }
void reset_peak() { g_peak = g_total.load(); }

}  // namespace ledger
}  // namespace tritgrad
