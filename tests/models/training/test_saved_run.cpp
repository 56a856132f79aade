// What a checkpoint says of its run: refused where it contradicts itself.
#include <doctest/doctest.h>

#include "engine/data/open_dataset.h"
#include "models/training/evaluate.h"
#include "models/training/saved_run.h"
#include "models/training/train.h"
#include "tests/support/rewritten_checkpoint.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_saved_run {
namespace {

using Json = nlohmann::json;

class StoppedRun {
 public:
  StoppedRun() : iris_(open_dataset("iris")) { save_stopped_run(saved()); }

  // Returns what is said of the checkpoint once `edit` has changed its run.
  template <typename Edit>
  std::string refused(const Edit& edit) const {
    const std::string other = folder_ / "other.safetensors";
    rewrite_checkpoint(saved(), other, edit);
    std::string message = refusal([&] {
      TrainOptions options{SavedRun(other).spec(), {}};
      options.resume = other;
      train(iris_, options);
    });
    const std::string beginning = "checkpoint '" + other + "': ";
    if (message.starts_with(beginning)) message.erase(0, beginning.size());
    return message;
  }

  // Returns what is said when the checkpoint is opened, once `edit` has changed its run.
  template <typename Edit>
  std::string refused_opening(const Edit& edit) const {
    const std::string other = folder_ / "other.safetensors";
    rewrite_checkpoint(saved(), other, edit);
    return refusal([&] { const SavedRun run(other); });
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
  CHECK(contains(run.refused([](Json& json) { json["cursor"] = {1}; }),
                 "metadata field 'cursor' has 1 numbers, 2 expected"));
}

TEST_CASE("saved run: what only opens a checkpoint is told no lies either") {
  const StoppedRun run;
  for (const char* key : {"step", "epochs", "micro_batches", "seed"}) {
    CAPTURE(key);
    CHECK(contains(run.refused_opening([&](Json& json) { json[key] = -1; }), "expected"));
    CHECK(contains(run.refused_opening([&](Json& json) { json.erase(key); }), "is missing"));
  }
  CHECK(run.refused_opening([&](Json& json) { json = Json::array(); }).size() > 0);
  CHECK(run.refused_opening([](Json&) {}).empty());
}

TEST_CASE("saved run: only a user's table is described, and options of tables are kept if given") {
  const TempDir folder;
  const std::string file = folder / "run.safetensors";
  const std::string csv = folder.write("t.csv", "a,b,y\n1,x,p\n2,z,q\n3,x,p\n4,z,q\n5,x,p\n");
  const auto saved = [&](TrainOptions options) {
    options.model = "mlp:4";
    options.epochs = 1;
    options.batch = 4;
    options.save = file;
    train(open_dataset(options.data), options);
    return Json::parse(SavedRun(file).text());
  };
  TrainOptions options;
  options.data = "iris";
  const Json iris = saved(options);
  for (const char* key : {"table", "missing", "max_categories", "columns", "drop", "words"}) {
    CAPTURE(key);
    CHECK_FALSE(iris.contains(key));
  }
  // Its columns are known all the same.
  const TableSchema known = SavedRun(file).table();
  CHECK(known.columns[2].name == "petal_length_cm");
  CHECK(known.class_names == std::vector<std::string>{"setosa", "versicolor", "virginica"});
  options.data = csv;
  options.missing = "mean";
  const Json table = saved(options);
  CHECK(table["missing"] == "mean");
  CHECK_FALSE(table.contains("drop"));
  CHECK(SavedRun(file).spec().missing == "mean");
  CHECK(SavedRun(file).table() == *open_dataset(csv).schema);
  const std::string other = folder / "other.safetensors";
  rewrite_checkpoint(file, other, [](Json& json) { json["table"]["columns"][1]["words"] = 3; });
  CHECK(contains(refusal([&] { SavedRun(other).table(); }),
                 "metadata field 'table' is no description of a table"));
  for (const Json& place : {Json(1e95), Json(0.5), Json(true)}) {
    rewrite_checkpoint(file, other,
                       [&](Json& json) { json["table"]["columns"][1]["place"] = place; });
    CHECK(contains(refusal([&] { SavedRun(other).table(); }), "type must be a whole number"));
  }
  rewrite_checkpoint(file, other, [](Json& json) { json["table"]["columns"].erase(0); });
  CHECK(contains(refusal([&] { SavedRun(other).table(); }),
                 "its model has 3 inputs, but its columns become 2 features"));
}

TEST_CASE("saved run: columns in another order are refused, and scored once they are put back") {
  const TempDir folder;
  std::string in_order = "a,b,y\n", turned = "b,a,y\n";
  for (int i = 0; i < 60; ++i) {
    const std::string a = std::to_string(i % 2 * 5 + i % 3), b = std::to_string(i % 7);
    const std::string y = std::to_string(i % 2);
    in_order += a + "," + b + "," + y + "\n";
    turned += b + "," + a + "," + y + "\n";
  }
  TrainOptions options;
  options.model = "mlp:8";
  options.epochs = 40;
  options.save = folder / "m.safetensors";
  Dataset data = open_dataset(folder.write("in_order.csv", in_order));
  train(data, options);
  const SavedRun saved(options.save);
  Dataset other = open_dataset(folder.write("turned.csv", turned));
  const std::string message = refusal([&] { load_model(saved, other); });
  CHECK(message.find("feature 1 was 'a' in the training data and is 'b' in 'turned'; put the "
                     "columns into the order of the training data") != std::string::npos);
  CHECK(evaluate_checkpoint(saved, data).scores.score == 1.0);
}

}  // namespace tritgrad::test::test_saved_run
