#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::string_view kScheduleNames[] = {"constant", "linear", "cosine", "wsd"};

}  // namespace

double Schedule::factor(std::int64_t step, std::int64_t total) const {
  const double t = static_cast<double>(std::clamp<std::int64_t>(step, 0, total));
  const double n = static_cast<double>(std::max<std::int64_t>(total, 1));
  const double warmup_steps = std::floor(warmup * n);
  if (t < warmup_steps) return (t + 1.0) / warmup_steps;

  const double progress = (t - warmup_steps) / std::max(n - warmup_steps, 1.0);
  switch (kind) {
    case Kind::kConstant:
      return 1.0;
    case Kind::kLinear:
      return final + (1.0 - final) * (1.0 - progress);
    case Kind::kCosine:
      return final + (1.0 - final) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    case Kind::kWarmupStableDecay: {
      const double left = (n - t) / std::max(decay * n, 1.0);
      return final + (1.0 - final) * std::min(1.0, left);
    }
  }
  return 1.0;
}

std::string_view schedule_name(Schedule::Kind kind) {
  return kScheduleNames[static_cast<std::size_t>(kind)];
}

Schedule::Kind parse_schedule(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kScheduleNames); ++i) {
    if (name == kScheduleNames[i]) return static_cast<Schedule::Kind>(i);
  }
  fail("unknown schedule '", name, "'",
       did_you_mean(
           name, std::vector<std::string>(std::begin(kScheduleNames), std::end(kScheduleNames))));
}

}  // namespace tritgrad
