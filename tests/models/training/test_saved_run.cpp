// What a checkpoint says of its run: refused where it contradicts itself.
#include <doctest/doctest.h>

#include "engine/data/open_dataset.h"
#include "models/training/saved_run.h"
#include "models/training/train.h"
#include "tests/support/rewritten_checkpoint.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_saved_run {
namespace {

using Json = nlohmann::json;

// A run of iris that was stopped after six steps, in its second epoch of four batches.
class StoppedRun {
 public:
  StoppedRun() : iris_(open_dataset("iris")) {
    TrainOptions options;
    options.data = "iris";
    options.model = "mlp:8";
    options.epochs = 3;
    options.batch = 32;
    options.save = saved();
    options.stop_after = 6;
    train(iris_, options);
  }

  // Returns what is said of the checkpoint once `edit` has changed its run.
  template <typename Edit>
  std::string refused(const Edit& edit) const {
    const std::string other = folder_ / "other.safetensors";
    rewrite_checkpoint(saved(), other, edit);
    TrainOptions options{SavedRun(other).spec(), {}};
    options.resume = other;
    std::string message = refusal([&] { train(iris_, options); });
    const std::string beginning = "checkpoint '" + other + "': ";
    if (message.starts_with(beginning)) message.erase(0, beginning.size());
    return message;
  }

 private:
  std::string saved() const { return folder_ / "run.safetensors"; }

  TempDir folder_;
  Dataset iris_;
};

}  // namespace

TEST_CASE("saved run: step, place in the data, sums and curve must fit each other") {
  const StoppedRun run;
  CHECK(run.refused([](Json&) {}).empty());
  CHECK(run.refused([](Json& json) {
    json["cursor"] = {1, 3};
  }) == "step 6 is not batch 3 of epoch 1, where its data stand, as an epoch has 4; the file is "
        "damaged");
  CHECK(contains(run.refused([](Json& json) { json["cursor"] = {2, 2}; }), "step 6 is not batch"));
  CHECK(contains(run.refused([](Json& json) { json["step"] = -2; }), "step -2 is not batch"));
  CHECK(contains(run.refused([](Json& json) { json["cursor"] = {1}; }), "the wrong length"));
  CHECK(run.refused([](Json& json) { json["sums"][1] = -1; }) ==
        "metadata field 'sums' has a count below 0");
  for (const Json& curve : {Json::array({1}), Json::array({Json::array({1, 2})}), Json(7)}) {
    CHECK(run.refused([&](Json& json) { json["curve"] = curve; }) ==
          "metadata field 'curve' has an epoch without numbers");
  }
}

}  // namespace tritgrad::test::test_saved_run
