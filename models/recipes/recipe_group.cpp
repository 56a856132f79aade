#include "models/recipes/recipe_group.h"

#include <algorithm>

namespace tritgrad {
namespace {

using Group = Recipe::Group;
using Formats = std::vector<FormatKind>;

constexpr Names<Rounding, 2> kRoundings{
    "value", {{{Rounding::kNearest, "nearest"}, {Rounding::kStochastic, "stochastic"}}}};
constexpr Names<OnFlip, 2> kOnFlip{"value",
                                   {{{OnFlip::kCarry, "carry"}, {OnFlip::kReset, "reset"}}}};
constexpr Names<Transition, 2> kTransitions{
    "value", {{{Transition::kStepOneTrit, "step"}, {Transition::kSetSign, "set"}}}};
constexpr Names<int, 4> kScaleGroups{"value", {{{0, "row"}, {32, "32"}, {64, "64"}, {128, "128"}}}};
constexpr Names<WindowForm, 3> kWindowForms{"value",
                                            {{{WindowForm::kCorrected, "corrected"},
                                              {WindowForm::kPublished, "published"},
                                              {WindowForm::kStudy, "study"}}}};
constexpr Names<EcoForm, 4> kEcoForms{"value",
                                      {{{EcoForm::kOff, "off"},
                                        {EcoForm::kPublished, "published"},
                                        {EcoForm::kLrAware, "lr_aware"},
                                        {EcoForm::kRescaled, "rescaled"}}}};

const Formats kMomentumFormats = {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kCompanded8,
                                  FormatKind::kInt8, FormatKind::kInt4};
const Formats kMeanSquareFormats = {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kRoot8,
                                    FormatKind::kScalar, FormatKind::kFactored};

Formats parameter_formats(Role role) {
  using enum FormatKind;
  if (role == Role::kWeight) {
    return {kFp32,     kBf16,    kSplit24,       kSplit32,   kFp8,       kInt8,    kInt4,
            kTernary,  kLatent8, kLatent6,       kLatent5,   kLatent4,   kShared4, kShared8,
            kShared16, kTrits,   kTernaryMaster, kFp8Master, kInt4Master};
  }
  if (role == Role::kScale) return {kScale16, kFp32, kBf16, kSplit24, kSplit32};
  // Bare trits want scales beside them, which only weights have.
  if (role == Role::kEmbedding) return {kFp32, kBf16, kSplit24, kSplit32, kFp8, kInt8, kInt4};
  return {kFp32, kBf16, kSplit24, kSplit32};
}

// The parser understands all formats, as wrong ones are refused with the reason, and suggests only
// `accepted`.
auto format_parser(const Formats& accepted) {
  return [&accepted](const std::string& text) {
    std::vector<std::string> names;
    for (FormatKind kind : accepted) names.emplace_back(format_name(kind));
    try {
      return parse_format(text);
    } catch (const Error&) {
      fail("unknown format '", text, "'", did_you_mean(text, names));
    }
  };
}

// Whether format and rule of a group read a key.
using Effect = bool (*)(const Group& group);

bool always(const Group&) { return true; }
template <RuleKind... kKinds>
bool trained_by(const Group& group) {
  return ((group.update.rule.kind == kKinds) || ...);
}
template <RuleKind... kKinds>
bool not_trained_by(const Group& group) {
  return !trained_by<kKinds...>(group);
}
bool has_feedback(const Group& group) {
  return trained_by<RuleKind::kMicroadam>(group) && group.update.rule.feedback_bits > 0;
}
bool is_ternary(const Group& group) { return group.format.kind == FormatKind::kTernary; }
bool holds_trits(const Group& group) { return group.format.traits().holds_trits; }
bool rounds_updates(const Group& group) { return group.format.traits().rounds_updates; }
// Hysteresis is a push after a flip, where what is left of the step is kept.
bool has_hysteresis(const Group& group) {
  return is_ternary(group) ? group.format.flips.on_flip == OnFlip::kCarry
                           : group.format.traits().highest_hysteresis > 0;
}
template <bool... kNonnegative>
bool has_moment(const Group& group) {
  const std::vector<MomentSpec> moments = make_rule(group.update.rule)->moments();
  return std::any_of(moments.begin(), moments.end(), [&](const MomentSpec& moment) {
    return ((moment.nonnegative == kNonnegative) || ...);
  });
}
bool decays(const Group& group) { return group.update.schedule.kind != Schedule::Kind::kConstant; }
bool decays_at_end(const Group& group) {
  return group.update.schedule.kind == Schedule::Kind::kWarmupStableDecay;
}

// The bounds of a whole number, both included.
struct Range {
  int low, high;

  void operator()(const char* key, std::int64_t value) const {
    check(value >= low && value <= high, key, " = ", value, " is outside ", low, "..", high);
  }
};

// The keys of a group: visitor(key, effect, member, accepted...), where `accepted` is the parser or
// the names of a choice, or the check of a whole number. Defaults that follow from a member are set
// when that has been visited.
template <typename Visitor>
void visit_format(FormatSpec& format, const Formats& accepted, const Visitor& visitor) {
  visitor("format", always, format.kind, format_parser(accepted));
  visitor("rounding", rounds_updates, format.rounding, kRoundings);
  visitor("threshold", is_ternary, format.flips.threshold, Range{0, 126});
  visitor("on_flip", is_ternary, format.flips.on_flip, kOnFlip);
  visitor("transition", is_ternary, format.flips.transition, kTransitions);
  visitor("hysteresis", has_hysteresis, format.flips.hysteresis, Range{0, 126});
  visitor("group", holds_trits, format.group, kScaleGroups);
}

template <typename Visitor>
void visit_rule(RuleSpec& rule, const Visitor& visitor) {
  using enum RuleKind;
  constexpr Effect kByMicroadam = trained_by<kMicroadam>;
  visitor("rule", always, rule.kind, parse_rule);
  visitor("weight_decay", not_trained_by<kNormalized, kShifted>, rule.weight_decay);
  visitor("momentum", trained_by<kSgd, kSgdw, kNormalized>, rule.momentum);
  visitor("dampening", trained_by<kSgd, kSgdw>, rule.dampening);
  visitor("nesterov", trained_by<kSgd, kSgdw>, rule.nesterov);
  visitor("beta1", trained_by<kAdam, kAdamw, kMicroadam, kLion>, rule.beta1);
  if (rule.kind == kLion) rule.beta2 = 0.99;  // as in Lion's paper
  visitor("beta2", trained_by<kAdam, kAdamw, kMicroadam, kLion, kNormalized>, rule.beta2);
  visitor("eps", trained_by<kAdam, kAdamw, kMicroadam>, rule.eps);
  visitor("clip_direction", trained_by<kNormalized>, rule.clip_direction);
  visitor("density", kByMicroadam, rule.density);
  visitor("window", kByMicroadam, rule.window, check_whole_setting);
  visitor("feedback_bits", kByMicroadam, rule.feedback_bits, check_whole_setting);
  visitor("bucket", has_feedback, rule.bucket, check_whole_setting);
  visitor("feedback_rounding", has_feedback, rule.feedback_rounding, kRoundings);
  visitor("window_form", kByMicroadam, rule.window_form, kWindowForms);
}

template <typename Visitor>
void visit_update(GroupSpec& update, const Visitor& visitor) {
  visit_rule(update.rule, visitor);
  visitor("lr", always, update.lr);
  visitor("lr_relative", always, update.lr_relative);
  visitor("schedule", always, update.schedule.kind, parse_schedule);
  visitor("warmup", always, update.schedule.warmup);
  visitor("decay", decays_at_end, update.schedule.decay);
  visitor("final", decays, update.schedule.final);
  visitor("m", has_moment<false>, update.m.kind, format_parser(kMomentumFormats));
  // The normalised gradient is meant to have one scalar of state.
  if (update.rule.kind == RuleKind::kNormalized) update.v.kind = FormatKind::kScalar;
  visitor("v", has_moment<true>, update.v.kind, format_parser(kMeanSquareFormats));
  update.m.rounding = Rounding::kStochastic;
  visitor("moment_rounding", has_moment<false, true>, update.m.rounding, kRoundings);
  update.v.rounding = update.m.rounding;
  visitor("eco", always, update.eco, kEcoForms);
  visitor("clip_value", not_trained_by<RuleKind::kSign>, update.clip_value);
}

// Reads the member of a key.
struct KeyReader {
  TableReader& table;

  template <typename T, typename... Accepted>
  void operator()(const char* key, Effect, T& member, const Accepted&... accepted) const {
    if constexpr (sizeof...(accepted) == 0) {
      member = table.get(key, member);
    } else if constexpr ((std::is_invocable_v<Accepted, const char*, std::int64_t> && ...)) {
      member = table.whole_number(key, member, accepted...);
    } else {
      member = table.choice(key, accepted..., member);
    }
  }
};

void check_one_of(const TableReader& table, const char* key, FormatKind kind,
                  const Formats& accepted, const char* why) {
  if (std::find(accepted.begin(), accepted.end(), kind) != accepted.end()) return;
  std::string names;
  for (FormatKind each : accepted) {
    names += names.empty() ? "" : ", ";
    names += format_name(each);
  }
  fail(table.at(key), ": ", key, " = '", format_name(kind), "' ", why, "; use one of ", names);
}

void check_formats(const TableReader& table, Role role, const Group& group) {
  const FormatKind kind = group.format.kind;
  check(role != Role::kWeight || kind != FormatKind::kScale16, table.at("format"),
        ": format 'scale16' holds positive numbers only and is for scales");
  check_one_of(table, "format", kind, parameter_formats(role),
               role == Role::kWeight ? "is for moments" : "is for weights only");
  check_one_of(table, "m", group.update.m.kind, kMomentumFormats,
               "cannot hold a momentum, which has a sign");
  check_one_of(table, "v", group.update.v.kind, kMeanSquareFormats,
               "cannot hold a mean of squares, whose small values must not become 0");
}

void check_schedule(const TableReader& table, const Schedule& schedule) {
  const std::pair<const char*, double> shares[] = {
      {"warmup", schedule.warmup}, {"decay", schedule.decay}, {"final", schedule.final}};
  for (const auto& [key, share] : shares) {
    check(share >= 0.0 && share <= 1.0, table.at(key), ": ", key, " = ", share,
          " is outside [0, 1]; it is a share of ",
          std::string_view(key) == "final" ? "lr" : "all steps");
  }
  constexpr double kRounding = 1e-9;
  check(schedule.kind != Schedule::Kind::kWarmupStableDecay ||
            schedule.warmup + schedule.decay <= 1.0 + kRounding,
        table.at("decay"), ": warmup = ", schedule.warmup, " and decay = ", schedule.decay,
        " are more than all steps together; with schedule = 'wsd' lower one of them until their "
        "sum is at most 1");
}

void check_group(const TableReader& table, Role role, const Group& group) {
  const GroupSpec& update = group.update;
  check(update.lr >= 0.0 && update.lr < 1e6, table.at("lr"), ": lr = ", update.lr,
        " is outside [0, 1e6)");
  check(update.clip_value >= 0.0 && update.clip_value < 1e30, table.at("clip_value"),
        ": clip_value = ", update.clip_value, " is outside [0, 1e30)");
  check_schedule(table, update.schedule);
  check_formats(table, role, group);
  const FlipPolicy& flips = group.format.flips;
  const int of_format = group.format.traits().highest_hysteresis;
  const int highest = of_format > 0 ? of_format : flips.threshold;
  check(flips.hysteresis >= 0 && flips.hysteresis <= highest, table.at("hysteresis"),
        ": hysteresis = ", flips.hysteresis, " is outside 0..", highest, " of format '",
        format_name(group.format.kind), "'");
  try {
    make_rule(update.rule);
    if (update.eco != EcoForm::kOff) check_eco(update.rule, group.format);
  } catch (const Error& error) {
    fail(table.where(), ": ", error.what());
  }
}

}  // namespace

Recipe::Group read_group(TableReader& table, Role role) {
  Group group;
  if (role == Role::kScale) group.format.kind = FormatKind::kScale16;
  const KeyReader reader{table};
  visit_format(group.format, parameter_formats(role), reader);
  visit_update(group.update, reader);
  check_group(table, role, group);
  return group;
}

bool has_effect(const std::string& key, const Group& group) {
  bool found = true;
  const auto look = [&](const char* each, Effect effect, auto&&...) {
    if (key == each) found = effect(group);
  };
  Group visited = group;  // a visit sets defaults
  visit_format(visited.format, {}, look);
  visit_update(visited.update, look);
  return found;
}

std::string reason_without_effect(const std::string& key, const Group& group) {
  const Schedule::Kind schedule = group.update.schedule.kind;
  const auto of_schedule = [&](const char* remedy) {
    return concat(" has no effect with schedule = '", schedule_name(schedule), "'; ", remedy,
                  " or leave it out");
  };
  if (key == "decay") return of_schedule("set schedule = 'wsd'");
  if (key == "final") return of_schedule("set schedule = 'linear', 'cosine' or 'wsd'");
  return " has no effect with this format and rule; leave it out";
}

}  // namespace tritgrad
