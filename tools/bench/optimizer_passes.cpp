#include "tools/bench/optimizer_passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/recipes/recipe.h"
#include "tools/report/number_text.h"
#include "tools/report/statistics.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kPassSide = 4096;
constexpr double kPassParameters = static_cast<double>(kPassSide * kPassSide);

ParameterSpec matrix_of(const PassSpec& spec) {
  FormatSpec format;
  format.kind = spec.weight;
  // Which kernel runs depends on the levels of a trit, so they are those of the recipe.
  if (spec.weight == FormatKind::kTernary) {
    format.flips = load_recipe("votes").group(Role::kWeight).format.flips;
  }
  if (spec.weight == FormatKind::kSplit24) format.rounding = Rounding::kNearest;
  return {"w", Role::kWeight, {kPassSide, kPassSide}, format, {Initial::Kind::kUniform, 1.0f}};
}

// Leaves the gradient as backward leaves it.
void keep_gradient(Parameter& w, std::vector<float>& gradient) {
  if (w.grad) {
    std::copy(gradient.begin(), gradient.end(), w.grad.data);
    w.add_to_gradient_bound(1.0);
    return;
  }
  w.grad = {gradient.data(), w.shape()};
  w.collect_gradient();
  w.grad = {};
}

ParameterStore make_store(const PassSpec& spec) {
  ParameterStore store;
  Parameter& w = store.add(matrix_of(spec), 1);
  store.keep_gradients(spec.gradient);
  // All rows repeat one row of normal numbers: drawing a fresh number for every element would take
  // longer than all that is measured.
  std::vector<float> numbers(static_cast<std::size_t>(w.shape().size()));
  const auto row = numbers.begin() + kPassSide;
  for (auto i = numbers.begin(); i != row; ++i) {
    *i = 1e-3f * random_normal({2, 0, 0}, static_cast<std::uint64_t>(i - numbers.begin()));
  }
  for (auto to = row; to != numbers.end(); to += kPassSide) std::copy(numbers.begin(), row, to);
  keep_gradient(w, numbers);
  return store;
}

class PassMeasurement : public Measurement {
 public:
  explicit PassMeasurement(const PassSpec& spec) : spec_(spec) {}

  std::string name() const override { return spec_.name; }
  std::set<Ceiling> ceilings() const override { return {Ceiling::kDramRead, Ceiling::kDramUpdate}; }

  void measure() override {
    const GroupSpec group = pass_group(spec_);
    ParameterStore store = make_store(spec_);
    const auto group_of = [&](const ParameterSpec&) { return group; };
    Optimizer optimizer(store, group_of, 1000000, 1);
    const Parameter& w = *store.begin();
    const double gradient = spec_.gradient == FormatKind::kBf16 ? 2.0 : 4.0;
    const double state =
        static_cast<double>(bytes_of(w.storage()) + Optimizer::state_bytes(w.spec(), group)) /
        kPassParameters;
    bytes_read_ = gradient + state;
    bytes_moved_ = bytes_read_ + state;
    optimizer.step();
    // The first step also looks whether its updates are lost (optim/stalled_updates.h), so it is
    // not timed. advance() would clear the gradient.
    optimizer.resume_at(1);
    seconds_.push_back(seconds_per_call([&] { optimizer.step(); }));
  }

  BenchEntry entry(const CeilingValues& ceilings) const override {
    return entry_of({spec_.name, kPassParameters / median(seconds_), bytes_read_, bytes_moved_},
                    ceilings);
  }

 private:
  PassSpec spec_;
  std::vector<double> seconds_;
  double bytes_read_ = 0.0, bytes_moved_ = 0.0;
};

}  // namespace

std::span<const PassSpec> pass_specs() {
  using enum RuleKind;
  using enum FormatKind;
  static constexpr PassSpec kPasses[] = {
      {"sgd/fp32", kSgd, kFp32},
      {"sgdw/fp32", kSgdw, kFp32},
      {"adamw/fp32", kAdamw, kFp32},
      {"adam/fp32", kAdam, kFp32},
      {"lion/fp32", kLion, kFp32},
      {"sign/fp32", kSign, kFp32},
      {"microadam/bf16", kMicroadam, kBf16},
      {"flash-adamw (split24, companded8, root8)", kAdamw, kSplit24, kCompanded8, kRoot8, kBf16},
      {"flash-lion (split24, companded8)", kLion, kSplit24, kCompanded8, kFp32, kBf16},
      {"flash-sgd (split24, companded8)", kSgdw, kSplit24, kCompanded8, kFp32, kBf16},
      {"adamw/split32", kAdamw, kSplit32},
      {"adamw/ternary_master", kAdamw, kTernaryMaster},
      {"votes (sign/ternary)", kSign, kTernary},
      {"latent8 (normalized)", kNormalized, kLatent8, kFp32, kScalar},
      {"latent6 (normalized)", kNormalized, kLatent6, kFp32, kScalar},
      {"latent5 (normalized)", kNormalized, kLatent5, kFp32, kScalar},
      {"latent4 (normalized)", kNormalized, kLatent4, kFp32, kScalar},
      {"shared4 (normalized)", kNormalized, kShared4, kFp32, kScalar},
      {"shared8 (normalized)", kNormalized, kShared8, kFp32, kScalar},
      {"shared16 (normalized)", kNormalized, kShared16, kFp32, kScalar},
      {"trits (normalized)", kNormalized, kTrits, kFp32, kScalar},
      {"wage (shifted/latent8)", kShifted, kLatent8},
      {"eco (normalized/trits, int8, scalar)", kNormalized, kTrits, kInt8, kScalar, kFp32,
       EcoForm::kRescaled, Rounding::kStochastic},
      {"microadam/trits", kMicroadam, kTrits},
      {"adamw/fp8", kAdamw, kFp8},
      {"adamw/int4", kAdamw, kInt4},
  };
  return kPasses;
}

GroupSpec pass_group(const PassSpec& spec) {
  const bool sgd = spec.rule == RuleKind::kSgd || spec.rule == RuleKind::kSgdw;
  const bool decays = spec.rule != RuleKind::kNormalized && spec.rule != RuleKind::kSign &&
                      spec.rule != RuleKind::kShifted;
  GroupSpec group;
  group.rule.kind = spec.rule;
  group.rule.momentum = sgd ? 0.9 : spec.eco == EcoForm::kOff ? 0.0 : 0.1;
  group.rule.weight_decay = decays ? 0.01 : 0.0;
  group.m.kind = spec.m;
  group.v.kind = spec.v;
  group.m.rounding = group.v.rounding = spec.moments;
  group.eco = spec.eco;
  group.lr = 1e-3;
  return group;
}

PassLimit limit_of(const PassSpeed& pass, const CeilingValues& ceilings) {
  const auto limit = [&](Ceiling ceiling, double bytes) {
    return PassLimit{ceiling, bytes,
                     share_of(ceilings, ceiling, 1e-9 * pass.parameters_per_second * bytes)};
  };
  const PassLimit reading = limit(Ceiling::kDramRead, pass.bytes_read_per_parameter);
  const PassLimit moving = limit(Ceiling::kDramUpdate, pass.bytes_moved_per_parameter);
  return reading.share > moving.share ? reading : moving;
}

BenchEntry entry_of(const PassSpeed& pass, const CeilingValues& ceilings) {
  const PassLimit limit = limit_of(pass, ceilings);
  const double speed = 1e-6 * pass.parameters_per_second;
  return {
      "optimizer, 4096 x 4096",
      {pass.name, significant(speed, 3), "Mparam/s", percent(limit.share, 0),
       fmt::format("{} at {:.2f} B/param", ceiling_name(limit.ceiling), limit.bytes_per_parameter)},
      {{"name", pass.name},
       {"unit", "Mparam/s"},
       {"value", speed},
       {"bytes_read_per_parameter", pass.bytes_read_per_parameter},
       {"bytes_per_parameter", pass.bytes_moved_per_parameter},
       {"ceiling", ceiling_name(limit.ceiling)},
       {"share", limit.share}}};
}

std::unique_ptr<Measurement> measurement_of(const PassSpec& pass) {
  return std::make_unique<PassMeasurement>(pass);
}

}  // namespace tritgrad
