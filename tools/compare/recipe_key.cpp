#include "tools/compare/recipe_key.h"

#include <span>
#include <vector>

#include "engine/files/hash.h"

namespace tritgrad {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::int64_t kScheduleSteps = 100;

// Members are named one by one: whoever adds one decides here whether it belongs into the key,
// without that this does not compile.
OrderedJson format_key(const FormatSpec& spec) {
  const auto& [kind, rounding, flips, group] = spec;
  const auto& [threshold, on_flip, transition, hysteresis] = flips;
  return OrderedJson::array(
      {format_name(kind), rounding, group, threshold, on_flip, transition, hysteresis});
}

OrderedJson rule_key(const RuleSpec& spec) {
  const auto& [kind, weight_decay, momentum, dampening, nesterov, beta1, beta2, eps, density,
               window, feedback_bits, bucket, feedback_rounding, window_form, counted_votes] = spec;
  return OrderedJson::array({rule_name(kind), weight_decay, momentum, dampening, nesterov, beta1,
                             beta2, eps, density, window, feedback_bits, bucket, feedback_rounding,
                             window_form, counted_votes});
}

// Both settings, which two schedules may share in a run of kScheduleSteps, and arithmetic.
OrderedJson schedule_key(const Schedule& schedule) {
  const auto& [kind, warmup, decay, final_factor] = schedule;
  std::vector<double> factors;
  for (std::int64_t step = 0; step < kScheduleSteps; ++step) {
    factors.push_back(schedule.factor(step, kScheduleSteps));
  }
  return OrderedJson::array({schedule_name(kind), warmup, decay, final_factor,
                             hex(xxh3(std::as_bytes(std::span(factors))))});
}

OrderedJson group_key(const Recipe::Group& group) {
  const auto& [format, update] = group;
  const auto& [rule, lr, lr_relative, schedule, m, v, eco, clip_value] = update;
  return OrderedJson::array({format_key(format), rule_key(rule), lr, lr_relative,
                             schedule_key(schedule), format_key(m), format_key(v), eco,
                             clip_value});
}

}  // namespace

OrderedJson recipe_key(const Recipe& recipe) {
  // Where it stands, what it is for, and the text that the settings were read from train nothing;
  // its name is in the result.
  const auto& [where, name, summary, source, compute, gradients, gradient_format, clip_grad_norm,
               non_finite, groups, head_lr, named_groups, toml] = recipe;
  OrderedJson key = {{"name", name},
                     {"compute", compute_name(compute)},
                     {"gradients", gradients},
                     {"gradient_format", format_name(gradient_format)},
                     {"clip_grad_norm", clip_grad_norm},
                     {"non_finite", non_finite},
                     {"head_lr", head_lr},
                     {"groups", OrderedJson::array()}};
  for (const Recipe::Group& group : groups) key["groups"].push_back(group_key(group));
  for (const Recipe::NamedGroup& named : named_groups) {
    key["groups"].push_back(
        OrderedJson::array({named.match, role_name(named.role), group_key(named.group)}));
  }
  return key;
}

}  // namespace tritgrad
