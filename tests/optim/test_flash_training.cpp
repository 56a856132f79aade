// Training in FlashOptim's formats, in one pass where that goes and part by part elsewhere: the
// same bits on every instruction set, for any number of threads, after a resume, and as before.
#include <string>

#include "engine/files/hash.h"
#include "engine/memory/parallel.h"
#include "models/training/trajectory.h"
#include "tests/support/saved_single.h"

namespace tritgrad::test::test_flash_training {
namespace {

// A run so long that of its first steps only the first is watched, part by part.
constexpr std::int64_t kRunSteps = 100000;

// A rule, and the hash of all that the first test trains by it. A change that means to train
// otherwise puts here, and into kTrajectory, what the test prints, and says so in CHANGELOG.md.
struct Golden {
  const char* name;
  RuleKind rule;
  bool nesterov;
  const char* hash;
};
constexpr Golden kGolden[] = {{"adamw", RuleKind::kAdamw, false, "8ccaccdafcf5f3d4"},
                              {"lion", RuleKind::kLion, false, "beae225a31f22f2e"},
                              {"sgd", RuleKind::kSgd, false, "a4eb24c7c302bb99"},
                              {"sgd, nesterov", RuleKind::kSgd, true, "a491334992f1e8b4"}};

GroupSpec group_of(const Golden& golden) {
  GroupSpec group;
  group.rule.kind = golden.rule;
  group.rule.momentum = 0.9;
  group.rule.nesterov = golden.nesterov;
  // Of sgd it is coupled, which no pass does.
  if (golden.rule != RuleKind::kSgd) group.rule.weight_decay = 0.1;
  group.lr = 1e-2;
  group.m = format(FormatKind::kCompanded8, Rounding::kNearest);
  group.v = format(FormatKind::kRoot8, Rounding::kNearest);
  return group;
}

Single make(const Shape& shape, const GroupSpec& group, FormatKind gradient = FormatKind::kFp32) {
  return Single(shape, format(FormatKind::kSplit24, Rounding::kNearest), group, kRunSteps,
                NonFinite::kRefuse, gradient);
}

std::vector<std::byte> bytes_of(Single& single) {
  std::vector<std::byte> bytes = all_bytes(single.w().storage());
  const std::vector<std::byte> state = single.state();
  bytes.insert(bytes.end(), state.begin(), state.end());
  return bytes;
}

void train(Single& single, int steps) {
  const std::int64_t size = single.w().shape().size();
  for (int i = 0; i < steps; ++i) {
    const auto t = static_cast<std::uint32_t>(single.optimizer->steps_done());
    single.step(numbers(size, 80 + t));
  }
}

// Whether the pass takes one more update of the first row, which it then has made.
bool takes_an_update(Single& single, const GroupSpec& group) {
  const std::unique_ptr<Rule> rule = make_rule(group.rule);
  rule->begin({single.optimizer->steps_done() + 1, {}});
  const std::span<const Storage> moments(&single.optimizer->moment(single.w(), 0),
                                         rule->moments().size());
  const std::int64_t n = single.w().shape().cols() / kFlashStep * kFlashStep;
  const auto planes = FusedSplit24::of(*rule, single.w().storage(), moments);
  REQUIRE(planes);
  FlashElements at = *planes->at({0, 1, 0, n, 0});
  const std::vector<float> grad = numbers(n, 79);
  at.grad = grad.data();
  return planes->update(at, 1e-2f, n);
}

}  // namespace

// Rows that end in a part of a group, runs of several rows, rows longer than a run; gradients in
// bf16 and fp32, clipped or not; all that decides which way an element goes.
TEST_CASE("flash training: the recorded bytes, on every instruction set") {
  const std::string before = kernels().name;
  std::string measured;
  for (const Golden& golden : kGolden) {
    CAPTURE(std::string(golden.name));
    std::vector<std::byte> all;
    for (const Shape& shape :
         {Shape{3, 784}, Shape{9, 64}, Shape{5, 100}, Shape{2, 2720}, Shape{33}}) {
      for (const FormatKind gradient : {FormatKind::kBf16, FormatKind::kFp32}) {
        for (const double clip : {0.0, 0.5}) {
          GroupSpec group = group_of(golden);
          group.clip_value = clip;
          std::vector<std::byte> expected;
          for (const KernelTables* table : supported_kernels()) {
            use_kernels(table->name);
            Single single = make(shape, group, gradient);
            train(single, 4);
            if (expected.empty()) expected = bytes_of(single);
            CAPTURE(shape.str());
            CAPTURE(std::string(table->name));
            CHECK(bytes_of(single) == expected);
          }
          all.insert(all.end(), expected.begin(), expected.end());
        }
      }
    }
    CHECK(hex(xxh3(all)) == std::string(golden.hash));
    measured += hex(xxh3(all));
  }
  use_kernels(before.c_str());
  CHECK(hex(xxh3(std::as_bytes(std::span(measured)))) == std::string(kTrajectory.flash));
}

TEST_CASE("flash training: results do not depend on the number of threads") {
  const Shape shape{400, 640};  // 8 units of work
  for (const Golden& golden : kGolden) {
    CAPTURE(std::string(golden.name));
    std::vector<std::byte> expected;
    for (const int threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      set_thread_count(threads);
      Single single = make(shape, group_of(golden));
      train(single, 4);
      if (threads == 1) expected = bytes_of(single);
      CHECK(bytes_of(single) == expected);
    }
    set_thread_count(0);
  }
}

TEST_CASE("flash training: a resumed run goes on with the same bits") {
  for (const Golden& golden : kGolden) {
    // Runs of all rows, and pieces of a row with a rest.
    for (const Shape& shape : {Shape{12, 96}, Shape{5, 1000}}) {
      CAPTURE(std::string(golden.name));
      CAPTURE(shape.str());
      const GroupSpec group = group_of(golden);
      Single single = make(shape, group), resumed = make(shape, group);
      train(single, 4);
      save_and_load(single, resumed);
      train(single, 4);
      train(resumed, 4);
      CHECK(bytes_of(resumed) == bytes_of(single));
      const bool has_passes = std::string(kernels().name) != "reference";
      CHECK(takes_an_update(single, group) == has_passes);
    }
  }
}

TEST_CASE("flash training: golden bytes of a checkpoint") {
  GroupSpec group = group_of(kGolden[0]);
  group.rule.beta1 = 0.0;  // m is the gradient, v a quarter of its square
  group.rule.beta2 = 0.75;
  Single single = make({2, 33}, group);
  std::vector<float> grad(66, 0.0f);
  grad[0] = 2.0f;
  grad[1] = -1.0f;
  grad[65] = 2.0f;  // second row, second group
  single.step(grad);
  const TempDir folder;
  const std::string path = (folder / "flash.safetensors").string();
  save_checkpoint(path, {}, planes_of(single));
  const SafetensorsFile file = open_checkpoint(path);
  const auto holds = [&](const char* name, Dtype dtype, std::size_t size,
                         const std::vector<std::pair<std::size_t, int>>& not_zero) {
    CAPTURE(std::string(name));
    std::vector<std::byte> bytes(size);
    for (const auto& [at, byte] : not_zero) bytes[at] = static_cast<std::byte>(byte);
    const StoredTensor& tensor = file.tensor(name);
    CHECK(tensor.dtype == dtype);
    CHECK(std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end()) == bytes);
  };
  // z = 2 / 3 of 127 is 84.67; the root of a quarter, of 255, is 127.5, a tie. Scales 2 and 1.
  holds("w/m/code", Dtype::kI8, 66, {{0, 127}, {1, 256 - 85}, {65, 127}});
  holds("w/m/scale", Dtype::kU16, 8, {{1, 0x80}, {7, 0x80}});
  holds("w/v/code", Dtype::kU8, 66, {{0, 255}, {1, 128}, {65, 255}});
  holds("w/v/scale", Dtype::kU16, 8, {{1, 0x7F}, {7, 0x7F}});
  CHECK(file.tensor("w/value").dtype == Dtype::kBf16);
  CHECK(file.tensor("w/correction").dtype == Dtype::kI8);
}

TEST_CASE("flash training: a bf16 gradient is known to be finite once it was collected so") {
  ParameterStore store;
  Parameter& w = store.add({"w", Role::kWeight, {3, 700}, {}, {}}, 1);
  store.keep_gradients(FormatKind::kBf16);
  CHECK(!w.gradient_is_known_finite());
  std::vector<float> g(static_cast<std::size_t>(w.shape().size()), 1.0f);
  const auto collect = [&] {
    w.grad = {g.data(), w.shape()};
    w.collect_gradient();
    w.grad = {};
  };
  collect();
  CHECK(w.gradient_is_known_finite());
  for (const float bad : {3.4e38f, NAN, -std::numeric_limits<float>::infinity()}) {
    g.back() = bad;  // the first one is infinite in bf16
    collect();
    CHECK(!w.gradient_is_known_finite());
    CHECK(!w.gradient_is_finite(0, w.shape().size()));
    g.back() = 1.0f;
    collect();
    CHECK(!w.gradient_is_known_finite());
    w.zero_gradient();
    CHECK(!w.gradient_is_known_finite());
    collect();
    CHECK(w.gradient_is_known_finite());
  }
  CHECK(w.share_gradient().size() == 2 * static_cast<std::size_t>(w.shape().size()));
  collect();
  CHECK(!w.gradient_is_known_finite());
}

}  // namespace tritgrad::test::test_flash_training
