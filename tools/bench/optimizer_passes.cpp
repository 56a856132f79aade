#include "tools/bench/optimizer_passes.h"

#include <algorithm>
#include <array>

#include "models/recipes/recipe.h"
#include "tools/bench/timing.h"
#include "tools/report/statistics.h"

namespace tritgrad {
namespace {

constexpr PassSpec kPasses[] = {
    {"sgd/fp32", RuleKind::kSgd, FormatKind::kFp32},
    {"sgdw/fp32", RuleKind::kSgdw, FormatKind::kFp32},
    {"adamw/fp32", RuleKind::kAdamw, FormatKind::kFp32},
    {"adam/fp32", RuleKind::kAdam, FormatKind::kFp32},
    {"lion/fp32", RuleKind::kLion, FormatKind::kFp32},
    {"sign/fp32", RuleKind::kSign, FormatKind::kFp32},
    {"microadam/bf16", RuleKind::kMicroadam, FormatKind::kBf16},
    {"flash-adamw (split24, companded8, root8)", RuleKind::kAdamw, FormatKind::kSplit24,
     FormatKind::kCompanded8, FormatKind::kRoot8, EcoForm::kOff, Rounding::kNearest,
     FormatKind::kBf16},
    {"flash-lion (split24, companded8)", RuleKind::kLion, FormatKind::kSplit24,
     FormatKind::kCompanded8, FormatKind::kFp32, EcoForm::kOff, Rounding::kNearest,
     FormatKind::kBf16},
    {"flash-sgd (split24, companded8)", RuleKind::kSgdw, FormatKind::kSplit24,
     FormatKind::kCompanded8, FormatKind::kFp32, EcoForm::kOff, Rounding::kNearest,
     FormatKind::kBf16},
    {"adamw/split32", RuleKind::kAdamw, FormatKind::kSplit32},
    {"adamw/ternary_master", RuleKind::kAdamw, FormatKind::kTernaryMaster},
    {"votes (sign/ternary)", RuleKind::kSign, FormatKind::kTernary},
    {"latent8 (normalized)", RuleKind::kNormalized, FormatKind::kLatent8, FormatKind::kFp32,
     FormatKind::kScalar},
    {"latent6 (normalized)", RuleKind::kNormalized, FormatKind::kLatent6, FormatKind::kFp32,
     FormatKind::kScalar},
    {"latent5 (normalized)", RuleKind::kNormalized, FormatKind::kLatent5, FormatKind::kFp32,
     FormatKind::kScalar},
    {"latent4 (normalized)", RuleKind::kNormalized, FormatKind::kLatent4, FormatKind::kFp32,
     FormatKind::kScalar},
    {"shared4 (normalized)", RuleKind::kNormalized, FormatKind::kShared4, FormatKind::kFp32,
     FormatKind::kScalar},
    {"shared8 (normalized)", RuleKind::kNormalized, FormatKind::kShared8, FormatKind::kFp32,
     FormatKind::kScalar},
    {"shared16 (normalized)", RuleKind::kNormalized, FormatKind::kShared16, FormatKind::kFp32,
     FormatKind::kScalar},
    {"trits (normalized)", RuleKind::kNormalized, FormatKind::kTrits, FormatKind::kFp32,
     FormatKind::kScalar},
    {"eco (normalized/trits, int8, scalar)", RuleKind::kNormalized, FormatKind::kTrits,
     FormatKind::kInt8, FormatKind::kScalar, EcoForm::kRescaled, Rounding::kStochastic},
    {"microadam/trits", RuleKind::kMicroadam, FormatKind::kTrits},
    {"adamw/fp8", RuleKind::kAdamw, FormatKind::kFp8},
    {"adamw/int4", RuleKind::kAdamw, FormatKind::kInt4},
};

FlipPolicy votes_flips() { return load_recipe("votes").group(Role::kWeight).format.flips; }

ParameterSpec matrix_of(const PassSpec& spec) {
  FormatSpec format;
  format.kind = spec.weight;
  // As the recipe has it: which kernel runs depends on the levels of a trit.
  if (spec.weight == FormatKind::kTernary) format.flips = votes_flips();
  if (spec.weight == FormatKind::kSplit24) format.rounding = Rounding::kNearest;
  return {"w",
          Role::kWeight,
          {OptimizerPass::kSide, OptimizerPass::kSide},
          format,
          {Initial::Kind::kUniform, 1.0f}};
}

// As backward leaves it.
void keep(Parameter& w, std::vector<float>& gradient) {
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
  // The same row of normal numbers again and again: drawing a fresh one for every element would
  // take longer than all that is measured.
  std::vector<float> numbers(static_cast<std::size_t>(w.shape().size()));
  const auto row = numbers.begin() + OptimizerPass::kSide;
  for (auto i = numbers.begin(); i != row; ++i) {
    *i = 1e-3f * random_normal({2, 0, 0}, static_cast<std::uint64_t>(i - numbers.begin()));
  }
  for (auto to = row; to != numbers.end(); to += OptimizerPass::kSide) {
    std::copy(numbers.begin(), row, to);
  }
  keep(w, numbers);
  return store;
}

}  // namespace

std::span<const PassSpec> pass_specs() { return kPasses; }

GroupSpec pass_group(const PassSpec& spec) {
  const bool sgd = spec.rule == RuleKind::kSgd || spec.rule == RuleKind::kSgdw;
  const bool decays = spec.rule != RuleKind::kNormalized && spec.rule != RuleKind::kSign;
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

OptimizerPass::OptimizerPass(const PassSpec& spec)
    : group_(pass_group(spec)),
      store_(make_store(spec)),
      optimizer_(
          store_, [&](const ParameterSpec&) { return group_; }, 1000000, 1) {
  const Parameter& w = *store_.begin();
  const std::int64_t persistent = bytes_of(w.storage()) + Optimizer::state_bytes(w.spec(), group_);
  const double gradient = spec.gradient == FormatKind::kBf16 ? 2.0 : 4.0;
  const double state = static_cast<double>(persistent) / parameters();
  bytes_read_ = gradient + state;
  bytes_moved_ = bytes_read_ + state;
  run();
  // On to a step like nearly all others: the first one also looks whether its updates are lost
  // (optim/stalled_updates.h). advance() would clear the gradient.
  optimizer_.resume_at(1);
}

void PassCase::measure() {
  OptimizerPass pass(*spec_);
  bytes_read_ = pass.bytes_read_per_parameter();
  bytes_moved_ = pass.bytes_per_parameter();
  seconds_.push_back(seconds_per_call([&] { pass.run(); }));
}

double PassCase::parameters_per_second() const {
  return OptimizerPass::parameters() / median(seconds_);
}

}  // namespace tritgrad
