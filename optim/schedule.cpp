#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/check.h"
#include "engine/names.h"

namespace tritgrad {
namespace {

constexpr Names<Schedule::Kind, 4> kScheduleNames{"schedule",
                                                  {{{Schedule::Kind::kConstant, "constant"},
                                                    {Schedule::Kind::kLinear, "linear"},
                                                    {Schedule::Kind::kCosine, "cosine"},
                                                    {Schedule::Kind::kWarmupStableDecay, "wsd"}}}};

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

std::string_view schedule_name(Schedule::Kind kind) { return kScheduleNames.name(kind); }
Schedule::Kind parse_schedule(std::string_view name) { return kScheduleNames.parse(name); }

}  // namespace tritgrad
