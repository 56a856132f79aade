// What a checkpoint says of its run, untrue, its hashes right: told in one sentence that names the
// field, on every way into the program that reads it.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "models/training/evaluate.h"
#include "models/training/saved_run.h"
#include "models/training/train.h"
#include "tests/support/c_handles.h"
#include "tests/support/rewritten_checkpoint.h"
#include "tests/support/support_files.h"
#include "tools/export/model_export.h"
#include "tools/inspect/inspection.h"

namespace tritgrad::test::test_untrue_checkpoints {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostSaid = 500;  // bytes, the path of the file among them

const std::string kLongText(1 << 20, 'a');
const Json kHuge = std::uint64_t{1} << 63;
const std::string kParallel = "parallel.";
const TrainSpec kSpec;

// The commands, and the C interface: what each does with a checkpoint.
enum Way : unsigned { kResume = 1, kEval = 2, kExport = 4, kInspect = 8, kOpenInC = 16 };
constexpr Way kWays[] = {kEval, kExport, kInspect, kOpenInC, kResume};
constexpr unsigned kLoading = kEval | kExport | kOpenInC;
constexpr unsigned kAll = kLoading | kInspect | kResume;

void go(Way way, const std::string& path) {
  Dataset dataset = open_dataset("iris");  // some ways number its labels anew
  switch (way) {
    case kResume: {
      TrainOptions options{SavedRun(path).spec(), {}};
      options.resume = path;
      train(dataset, options);
      return;
    }
    case kEval:
      evaluate_checkpoint(SavedRun(path), dataset);
      return;
    case kExport:
      export_model(SavedRun(path), dataset, "iris", {"iris.h", &export_target_of("iris.h"), {}},
                   true);
      return;
    case kInspect:
      inspect_saved(SavedRun(path));
      return;
    case kOpenInC: {
      const ModelHandle model{tg_model_open(path.c_str())};
      if (model.handle == nullptr || tg_model_describe(model.handle) == nullptr ||
          tg_model_inspect(model.handle, nullptr) == nullptr) {
        fail(tg_error());
      }
    }
  }
}

class StoppedRun {
 public:
  StoppedRun() { save_stopped_run(saved()); }

  // Returns what each way says of the checkpoint once `edit` has changed its run, without the name
  // of the file; nothing of a way that takes it.
  template <typename Edit>
  std::map<Way, std::string> said(const Edit& edit) const {
    const std::string other = folder_ / "other.safetensors";
    const std::string beginning = "checkpoint '" + other + "': ";
    std::map<Way, std::string> sentences;
    rewrite_checkpoint(saved(), other, edit);
    for (const Way way : kWays) {
      std::string& sentence = sentences[way] = refusal([&] { go(way, other); });
      if (sentence.starts_with(beginning)) sentence.erase(0, beginning.size());
    }
    return sentences;
  }

  // These ways refuse the changed checkpoint with a sentence about `key`, the others take it.
  template <typename Edit>
  void check_refused(const std::string& key, unsigned ways, const Edit& edit) const {
    for (const auto& each : said(edit)) {
      const bool reads = (ways & each.first) != 0;
      const std::string& sentence = each.second;
      CAPTURE(each.first);
      CAPTURE(sentence);
      CHECK(sentence.starts_with(reads ? concat("metadata field '", key, "'") : ""));
      CHECK(sentence.empty() == !reads);
      CHECK(sentence.size() < kMostSaid);
    }
  }

 private:
  std::string saved() const { return folder_ / "run.safetensors"; }

  TempDir folder_;
};

// Returns what a field of this type and these bounds cannot hold.
template <typename T>
std::vector<Json> lies_of(const Field& field) {
  std::vector<Json> lies{Json::object(), Json::array({Json::array()})};
  const auto add = [&](const std::vector<Json>& more) {
    lies.insert(lies.end(), more.begin(), more.end());
  };
  const bool bounded = field.low < field.high;
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, WireCode>) {
    add({0, 1.0, "true", nullptr});
  } else if constexpr (std::is_integral_v<T>) {
    add({-1, 1.5, 1e308, true, nullptr, "1"});
    const auto low = static_cast<std::int64_t>(field.low);
    const auto high = static_cast<std::int64_t>(field.high);
    if (bounded) add({low - 1, high + 1, kHuge});
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>) {
    add({true, "0.1", -0.1, bounded ? field.high + 0.1 : 1.5});
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    add({"weight.lr=1", nullptr, Json::array({1}), Json::array({kLongText})});
  } else {
    add({7, false, nullptr, kLongText, std::string("a\0b", 3)});
    if constexpr (!std::is_same_v<T, std::string>) lies.emplace_back("cubes");
  }
  return lies;
}

// Returns where the field is kept in the run of several ranks that `json` becomes, or in its own.
Json& place_of(Json& json, const std::string& key) {
  if (!key.starts_with(kParallel)) return json[key];
  if (!json.contains("parallel")) {
    json["parallel"] = {
        {"method", "votes"}, {"majority", false}, {"warmup", 0.2}, {"rms", false}, {"ranks", 2}};
  }
  return json["parallel"][key.substr(kParallel.size())];
}

// As sentences name it.
std::string name_of(const std::string& key) {
  return key.starts_with(kParallel) ? key.substr(kParallel.size()) : key;
}

void erase(Json& json, const std::string& key) {
  place_of(json, key);
  (key.starts_with(kParallel) ? json["parallel"] : json).erase(name_of(key));
}

// A field that is none of the spec, and what reads it.
struct OtherField {
  const char* key;
  unsigned read_by;
  unsigned missed_by;  // the ways on which older files must have it
  std::vector<Json> lies;
};

const std::vector<OtherField>& other_fields() {
  static const std::vector<OtherField> fields{
      {"step", kAll, kAll, {-2, 6.0, 1e308, true, kHuge, nullptr, "6"}},
      {"inputs", kAll, kAll, {0, -4, 4.0, true, 1e308, kHuge, nullptr}},
      {"outputs", kLoading | kInspect | kResume, kAll, {0, -3, 3.0, true, 1e308, kHuge, nullptr}},
      // Files that are older than convolutional networks have none.
      {"image",
       kAll,
       0,
       {7, Json::array({1, 2, 0}), Json::array({1, 1}), Json::array({true, 2, 2})}},
      {"class_names",
       kLoading | kInspect,
       kLoading | kInspect,
       {7, nullptr, Json::array({1, 2, 3}), Json::array({kLongText, "b", "c"})}},
      {"feature_names", kLoading | kInspect, 0, {7, nullptr, Json::array({1, 2, 3, 4})}},
      {"table", kExport | kInspect | kOpenInC, 0, {7, nullptr, "a", Json::object(), Json::array()}},
      {"data_xxh3", kEval | kExport | kResume, kEval | kExport | kResume, {7, nullptr, kLongText}},
      {"cursor",
       kResume,
       kResume,
       {7, Json::array({1, -2}), Json::array({1.0, 2}), Json::array({true, 2}), Json::array({1})}},
      {"sums",
       kResume,
       kResume,
       {7, Json::array({1, 2, 3}), Json::array({1, -1, 1, 1, 1}),
        Json::array({1, 1.5e300, 1, 1, 1}), Json::array({1, 1, 1.5, 1, 1}),
        Json::array({nullptr, 1, 1, 1, 1}), Json::array({1, 1, 1, true, 1})}},
      {"skipped_updates", kResume, 0, {-1, 7, 1.0, true, kHuge, nullptr}},
      {"curve",
       kResume | kExport,
       kResume | kExport,
       {7, Json::array({1}), Json::array({Json::array({1, 2})}),
        Json::array({Json::array({1, 2, 3, 4})}),
        Json::array({Json::array({2, 0.5, 0.5, nullptr})}),
        Json::array({Json::array({true, 0.5, 0.5, nullptr})}),
        Json::array({Json::array({1, 0.5, 0.5, -0.5})})}}};
  return fields;
}

}  // namespace

TEST_CASE("untrue checkpoints: a true one is taken on every way in") {
  const StoppedRun run;
  run.check_refused("", 0, [](Json&) {});
}

// They are read when a file is opened, whatever for.
TEST_CASE("untrue checkpoints: every field of the spec has its type and range") {
  const StoppedRun run;
  visit(kSpec, [&]<typename T>(const Field& field, const T&) {
    if ((field.traits & kUnsaved) != 0) return;
    const std::string key = field.key;
    CAPTURE(key);
    for (const Json& lie : lies_of<T>(field)) {
      CAPTURE(lie.dump().substr(0, 100));
      run.check_refused(name_of(key), kAll, [&](Json& json) { place_of(json, key) = lie; });
    }
  });
}

TEST_CASE("untrue checkpoints: a field of the spec is missing in older files, or in damaged ones") {
  const StoppedRun run;
  const std::set<std::string> younger{
      "task",      "missing",  "max_categories",  "columns", "drop",
      "words",     "tokens",   "resize",          "augment", "epoch_tokens",
      "recompute", "all_rows", "label_smoothing", "pixels",  "imbalance"};
  std::set<std::string> missing;
  visit(kSpec, [&](const Field& field, const auto&) {
    if ((field.traits & kUnsaved) != 0) return;
    const std::string key = field.key;
    CAPTURE(key);
    if (younger.contains(key)) missing.insert(key);
    run.check_refused(name_of(key), younger.contains(key) ? 0 : kAll,
                      [&](Json& json) { erase(json, key); });
  });
  CHECK(missing == younger);
}

TEST_CASE("untrue checkpoints: every other field has its type and range, where it is read") {
  const StoppedRun run;
  for (const OtherField& field : other_fields()) {
    const std::string key = field.key;
    CAPTURE(key);
    for (const Json& lie : field.lies) {
      CAPTURE(lie.dump().substr(0, 100));
      run.check_refused(key, field.read_by, [&](Json& json) { json[key] = lie; });
    }
    run.check_refused(key, field.missed_by, [&](Json& json) { json.erase(key); });
  }
}

TEST_CASE("untrue checkpoints: there is no field that these tests do not know") {
  std::set<std::string> known;
  visit(kSpec, [&](const Field& field, const auto&) { known.insert(field.key); });
  for (const OtherField& field : other_fields()) known.insert(field.key);
  const StoppedRun run;
  run.said([&](const Json& json) {
    for (const auto& item : json.items()) {
      const std::string& key = item.key();
      CAPTURE(key);
      CHECK(known.contains(key));
    }
  });
}

TEST_CASE("untrue checkpoints: the sentence says what was found and what was expected") {
  const StoppedRun run;
  const auto sentences = run.said([](Json& json) { json["epochs"] = 0; });
  for (const auto& [way, sentence] : sentences) {
    CHECK(sentence ==
          "metadata field 'epochs' is 0, a whole number from 1 to 1e+06 expected; the file is "
          "damaged");
  }
}

}  // namespace tritgrad::test::test_untrue_checkpoints
