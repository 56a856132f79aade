#include "models/recipes/recipe_group.h"

#include <algorithm>

namespace tritgrad {
namespace {

const auto kParseRounding =
    one_of<Rounding>({{"nearest", Rounding::kNearest}, {"stochastic", Rounding::kStochastic}});

using Formats = std::vector<FormatKind>;

const Formats kMomentumFormats = {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kCompanded8,
                                  FormatKind::kInt8, FormatKind::kInt4};
const Formats kMeanSquareFormats = {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kRoot8,
                                    FormatKind::kScalar, FormatKind::kFactored};

Formats parameter_formats(Role role) {
  using enum FormatKind;
  if (role == Role::kWeight) {
    return {kFp32,    kBf16,    kSplit24,  kSplit32, kFp8,          kInt8,
            kInt4,    kTernary, kLatent8,  kLatent6, kLatent5,      kLatent4,
            kShared4, kShared8, kShared16, kTrits,   kTernaryMaster};
  }
  if (role == Role::kScale) return {kScale16, kFp32, kBf16, kSplit24, kSplit32};
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

FormatSpec read_format(TableReader& table, Role role) {
  FormatSpec spec;
  if (role == Role::kScale) spec.kind = FormatKind::kScale16;
  const Formats accepted = parameter_formats(role);
  spec.kind = table.choice("format", format_parser(accepted), spec.kind);
  spec.rounding = table.choice("rounding", kParseRounding, spec.rounding);
  spec.flips.threshold = table.whole_number("threshold", spec.flips.threshold, 0, 126);
  spec.flips.on_flip = table.choice(
      "on_flip", one_of<OnFlip>({{"carry", OnFlip::kCarry}, {"reset", OnFlip::kReset}}),
      spec.flips.on_flip);
  spec.flips.transition = table.choice(
      "transition",
      one_of<Transition>({{"step", Transition::kStepOneTrit}, {"set", Transition::kSetSign}}),
      spec.flips.transition);
  spec.flips.hysteresis = table.whole_number("hysteresis", spec.flips.hysteresis, 0, 126);
  spec.group = table.choice(
      "group", one_of<int>({{"row", 0}, {"32", 32}, {"64", 64}, {"128", 128}}), spec.group);
  return spec;
}

RuleSpec read_rule(TableReader& table) {
  RuleSpec rule;
  rule.kind = table.choice("rule", parse_rule, rule.kind);
  rule.weight_decay = table.get("weight_decay", rule.weight_decay);
  rule.momentum = table.get("momentum", rule.momentum);
  rule.dampening = table.get("dampening", rule.dampening);
  rule.nesterov = table.get("nesterov", rule.nesterov);
  rule.beta1 = table.get("beta1", rule.beta1);
  // Lion's paper uses 0.99.
  rule.beta2 = table.get("beta2", rule.kind == RuleKind::kLion ? 0.99 : rule.beta2);
  rule.eps = table.get("eps", rule.eps);
  rule.density = table.get("density", rule.density);
  rule.window = table.whole_number("window", rule.window, check_whole_setting);
  rule.feedback_bits = table.whole_number("feedback_bits", rule.feedback_bits, check_whole_setting);
  rule.bucket = table.whole_number("bucket", rule.bucket, check_whole_setting);
  rule.feedback_rounding =
      table.choice("feedback_rounding", kParseRounding, rule.feedback_rounding);
  rule.window_form = table.choice("window_form",
                                  one_of<WindowForm>({{"corrected", WindowForm::kCorrected},
                                                      {"published", WindowForm::kPublished},
                                                      {"study", WindowForm::kStudy}}),
                                  rule.window_form);
  return rule;
}

GroupSpec read_update(TableReader& table) {
  GroupSpec update;
  update.rule = read_rule(table);
  update.lr = table.get("lr", update.lr);
  update.lr_relative = table.get("lr_relative", update.lr_relative);
  update.schedule.kind = table.choice("schedule", parse_schedule, update.schedule.kind);
  update.schedule.warmup = table.get("warmup", update.schedule.warmup);
  update.schedule.decay = table.get("decay", update.schedule.decay);
  update.schedule.final = table.get("final", update.schedule.final);
  // The normalised gradient is meant to have one scalar of state.
  if (update.rule.kind == RuleKind::kNormalized) update.v.kind = FormatKind::kScalar;
  update.m.kind = table.choice("m", format_parser(kMomentumFormats), update.m.kind);
  update.v.kind = table.choice("v", format_parser(kMeanSquareFormats), update.v.kind);
  update.m.rounding = update.v.rounding =
      table.choice("moment_rounding", kParseRounding, Rounding::kStochastic);
  update.eco = table.choice("eco",
                            one_of<EcoForm>({{"off", EcoForm::kOff},
                                             {"published", EcoForm::kPublished},
                                             {"lr_aware", EcoForm::kLrAware},
                                             {"rescaled", EcoForm::kRescaled}}),
                            update.eco);
  update.clip_value = table.get("clip_value", update.clip_value);
  return update;
}

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

void check_formats(const TableReader& table, Role role, const Recipe::Group& group) {
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

void check_group(const TableReader& table, Role role, const Recipe::Group& group) {
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

// Hysteresis is a push after a flip, where what is left of the step is kept.
bool has_hysteresis(const FormatSpec& format) {
  return format.kind == FormatKind::kTernary ? format.flips.on_flip == OnFlip::kCarry
                                             : format.traits().highest_hysteresis > 0;
}

bool rule_reads(const std::string& key, const RuleSpec& rule) {
  using enum RuleKind;
  const bool sgd = rule.kind == kSgd || rule.kind == kSgdw;
  const bool adam = rule.kind == kAdam || rule.kind == kAdamw;
  const bool micro = rule.kind == kMicroadam;
  const bool lion = rule.kind == kLion;
  if (key == "momentum") return sgd || rule.kind == kNormalized;
  if (key == "nesterov" || key == "dampening") return sgd;
  if (key == "beta1") return adam || micro || lion;
  if (key == "beta2") return adam || micro || lion || rule.kind == kNormalized;
  if (key == "eps") return adam || micro;
  if (key == "bucket" || key == "feedback_rounding") return micro && rule.feedback_bits > 0;
  return micro;  // density, window, feedback_bits, window_form
}

bool has_moment(bool nonnegative, const RuleSpec& rule) {
  const std::vector<MomentSpec> moments = make_rule(rule)->moments();
  return std::any_of(moments.begin(), moments.end(),
                     [&](const MomentSpec& moment) { return moment.nonnegative == nonnegative; });
}

}  // namespace

Recipe::Group read_group(TableReader& table, Role role) {
  Recipe::Group group{read_format(table, role), read_update(table)};
  check_group(table, role, group);
  return group;
}

bool has_effect(const std::string& key, const Recipe::Group& group) {
  const FormatSpec& format = group.format;
  const GroupSpec& update = group.update;
  const bool ternary = format.kind == FormatKind::kTernary;
  for (const char* name :
       {"momentum", "nesterov", "dampening", "beta1", "beta2", "eps", "density", "window",
        "feedback_bits", "bucket", "feedback_rounding", "window_form"}) {
    if (key == name) return rule_reads(key, update.rule);
  }
  if (key == "rounding") return format.traits().rounds_updates;
  if (key == "threshold" || key == "on_flip" || key == "transition") return ternary;
  if (key == "hysteresis") return has_hysteresis(format);
  if (key == "group") return format.traits().holds_trits;
  if (key == "m") return has_moment(false, update.rule);
  if (key == "v") return has_moment(true, update.rule);
  if (key == "moment_rounding") {
    return has_moment(false, update.rule) || has_moment(true, update.rule);
  }
  if (key == "weight_decay") return update.rule.kind != RuleKind::kNormalized;
  if (key == "clip_value") return update.rule.kind != RuleKind::kSign;
  if (key == "decay") return update.schedule.kind == Schedule::Kind::kWarmupStableDecay;
  if (key == "final") return update.schedule.kind != Schedule::Kind::kConstant;
  return true;
}

std::string reason_without_effect(const std::string& key, const Recipe::Group& group) {
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
