// Learning-rate schedules: pure functions of the step.
#pragma once

#include <cstdint>
#include <string_view>

namespace tritgrad {

struct Schedule {
  enum class Kind {
    kConstant,
    kLinear,            // from 1 down to `final`
    kCosine,            // from 1 down to `final` along half a cosine
    kWarmupStableDecay  // 1, then linearly down to `final` during the last `decay` of all steps
  };
  Kind kind = Kind::kConstant;
  double warmup = 0.0;  // share of all steps during which the factor rises linearly from 1/n to 1
  double decay = 0.2;   // share of all steps, warm-up-stable-decay only
  double final = 0.0;   // factor at the end

  // Returns the factor on the base learning rate at `step` of `total` (counted from 0), in [0, 1].
  double factor(std::int64_t step, std::int64_t total) const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

std::string_view schedule_name(Schedule::Kind kind);
// Throws Error for an unknown name, with the nearest known one.
Schedule::Kind parse_schedule(std::string_view name);

}  // namespace tritgrad
