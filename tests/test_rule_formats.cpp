// The matrix: every rule on every format, with every format of moments.
//
// The toy is a quadratic with a target on the ternary grid, so that all formats can hold the
// minimum: loss = mean (w - target)^2, gradient w - target (of the value).
#include "engine/checkpoint.h"
#include "tests/single.h"
#include "tests/support_files.h"

namespace tritgrad::test {
namespace {

constexpr RuleKind kRules[] = {RuleKind::kSgd,        RuleKind::kSgdw,     RuleKind::kAdam,
                               RuleKind::kAdamw,      RuleKind::kLion,     RuleKind::kSign,
                               RuleKind::kNormalized, RuleKind::kMicroadam};
constexpr FormatKind kFormats[] = {
    FormatKind::kFp32,    FormatKind::kBf16,         FormatKind::kSplit24, FormatKind::kSplit32,
    FormatKind::kFp8,     FormatKind::kInt8,         FormatKind::kInt4,    FormatKind::kTernary,
    FormatKind::kLatent8, FormatKind::kLatent6,      FormatKind::kLatent5, FormatKind::kLatent4,
    FormatKind::kTrits,   FormatKind::kTernaryMaster};
constexpr FormatKind kSigned[] = {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kCompanded8,
                                  FormatKind::kInt8, FormatKind::kInt4};
constexpr FormatKind kSquares[] = {FormatKind::kFp32, FormatKind::kBf16, FormatKind::kRoot8,
                                   FormatKind::kScalar, FormatKind::kFactored};

const Shape kShape{13, 29};
constexpr int kSteps = 300;

GroupSpec group_of(RuleKind rule) {
  GroupSpec group;
  group.rule.kind = rule;
  group.lr = 0.05;
  group.rule.density = 0.25;  // of few elements a hundredth would be one
  group.schedule.kind = Schedule::Kind::kCosine;
  return group;
}

std::vector<float> target() {
  std::vector<float> trits = numbers(kShape.size(), 77);
  for (float& t : trits) t = std::rint(1.4f * t);
  return trits;
}

std::vector<float> gradient(Single& single) {
  std::vector<float> grad;
  const std::vector<float> goal = target();
  const std::vector<double> w = decoded(single.w().storage());
  for (std::size_t i = 0; i < w.size(); ++i) grad.push_back(static_cast<float>(w[i]) - goal[i]);
  return grad;
}

double loss(Single& single) {
  double sum = 0.0;
  for (float g : gradient(single)) sum += static_cast<double>(g) * static_cast<double>(g);
  return sum / static_cast<double>(kShape.size());
}

std::vector<NamedPlane> planes_of(Single& single) {
  std::vector<NamedPlane> planes = parameter_planes(single.store);
  for (const StatePlane& plane : single.optimizer->state()) {
    const auto count = static_cast<std::int64_t>(plane.bytes.size() / dtype_bytes(plane.dtype));
    planes.push_back({plane.name, plane.dtype, {count}, plane.bytes});
  }
  return planes;
}

// Trains; half-way, everything is saved and loaded into fresh objects, and both go on with the same
// bits.
void train_and_resume(const FormatSpec& spec, const GroupSpec& group, double share) {
  const std::int64_t before = ledger::live(Category::kMoments);
  Single single(kShape, spec, group, kSteps);
  CHECK(ledger::live(Category::kMoments) - before ==
        Optimizer::state_bytes(single.w().spec(), group));
  const double start = loss(single);
  for (int t = 0; t < kSteps / 2; ++t) single.step(gradient(single));

  const TempDir folder;
  const std::string path = (folder / "half.safetensors").string();
  save_checkpoint(path, {}, planes_of(single));
  Single resumed(kShape, spec, group, kSteps);
  load_checkpoint(path, planes_of(resumed));
  resumed.optimizer->resume_at(kSteps / 2);

  for (int t = kSteps / 2; t < kSteps; ++t) {
    single.step(gradient(single));
    resumed.step(gradient(resumed));
  }
  CHECK(all_bytes(resumed.w().storage()) == all_bytes(single.w().storage()));
  CHECK(resumed.state() == single.state());
  CHECK(loss(single) < share * start);
}

}  // namespace

TEST_CASE("rules x formats: every pair learns the toy, and goes on with the same bits") {
  for (RuleKind rule : kRules) {
    for (FormatKind kind : kFormats) {
      CAPTURE(std::string(rule_name(rule)));
      CAPTURE(std::string(format_name(kind)));
      train_and_resume(format(kind), group_of(rule), 0.25);
    }
  }
}

TEST_CASE(
    "rules x moments: every format of moments learns the toy, and goes on with the same bits") {
  for (RuleKind rule : {RuleKind::kSgd, RuleKind::kAdamw, RuleKind::kLion, RuleKind::kNormalized}) {
    for (FormatKind m : kSigned) {
      for (FormatKind v : kSquares) {
        CAPTURE(std::string(rule_name(rule)));
        CAPTURE(std::string(format_name(m)));
        CAPTURE(std::string(format_name(v)));
        GroupSpec group = group_of(rule);
        group.rule.momentum = 0.9;
        group.m = format(m);
        group.v = format(v);
        train_and_resume(format(FormatKind::kLatent8), group, 0.25);
      }
    }
  }
}

TEST_CASE("rules x formats: eco on every format without a residual") {
  for (FormatKind kind : {FormatKind::kBf16, FormatKind::kFp8, FormatKind::kInt8, FormatKind::kInt4,
                          FormatKind::kTrits}) {
    for (RuleKind rule : {RuleKind::kSgd, RuleKind::kSgdw, RuleKind::kAdam, RuleKind::kAdamw}) {
      for (EcoForm form : {EcoForm::kPublished, EcoForm::kLrAware, EcoForm::kRescaled}) {
        for (FormatKind m : kSigned) {
          for (Rounding rounding : {Rounding::kNearest, Rounding::kStochastic}) {
            CAPTURE(std::string(rule_name(rule)));
            CAPTURE(std::string(format_name(kind)));
            CAPTURE(std::string(format_name(m)));
            CAPTURE(static_cast<int>(form));
            CAPTURE(static_cast<int>(rounding));
            GroupSpec group = group_of(rule);
            group.rule.momentum = group.rule.beta1 = 0.3;
            group.rule.dampening = 0.3;
            group.schedule.final = 0.1;
            group.eco = form;
            group.m = format(m);
            train_and_resume(format(kind, rounding), group, 0.25);
          }
        }
      }
    }
  }
}

}  // namespace tritgrad::test
