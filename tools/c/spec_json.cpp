#include "tools/c/spec_json.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/check.h"
#include "engine/data/augmentation.h"
#include "engine/text.h"
#include "models/networks/llama.h"
#include "tools/compare/request.h"
#include "tools/export/model_export.h"

namespace tritgrad {
namespace {

using SpecJson = nlohmann::json;

std::string key_of(const Field& field) {
  std::string key = std::string(field.option).substr(2);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

// Reads the values of an object by their keys; what no reader asked for is refused.
class SpecReader {
 public:
  // `what` begins messages, one of which gives the example.
  SpecReader(const std::string& text, const char* what, const char* example) : what_(what) {
    json_ = SpecJson::parse(text, nullptr, false);
    check(json_.is_object(), what, ": '", printable(text.substr(0, 60)),
          "' is no JSON object; write one such as ", example);
  }

  void operator()(const Field& field, auto& value) {
    const SpecJson* json = find(key_of(field));
    if (json == nullptr) return;
    given_.emplace_back(field.option);
    read(field, *json, value);
  }
  // The options that it has found, as the command line spells them.
  const std::vector<std::string>& given() const { return given_; }

  // Reads a value that is no field of a spec.
  template <typename T>
  void read_other(const char* key, T& value) {
    const SpecJson* json = find(key);
    if (json != nullptr) read(Field{key, key, key, ""}, *json, value);
  }

  void check_nothing_left() const {
    for (const auto& [key, value] : json_.items()) {
      const bool known = std::find(known_.begin(), known_.end(), key) != known_.end();
      check(known, what_, ": unknown key '", printable(key), "'", did_you_mean(key, known_));
    }
  }

 private:
  const SpecJson* find(const std::string& key) {
    known_.push_back(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  [[noreturn]] void refuse(const Field& field, const SpecJson& json,
                           const std::string& expected) const {
    constexpr std::size_t kMost = 200;  // of a value that may be a whole array
    std::string value = json.dump(-1, ' ', true);
    if (value.size() > kMost) value.replace(kMost, value.npos, "...");
    fail(what_, ": '", key_or_option(field), "' is ", printable(value), ", ", expected,
         " expected");
  }
  static std::string key_or_option(const Field& field) {
    return std::string_view(field.option).starts_with("--") ? key_of(field) : field.option;
  }

  // A text, which no file name and no sentence would hold behind a zero character.
  std::string text_value(const Field& field, const SpecJson& json) const {
    if (!json.is_string()) refuse(field, json, "a text");
    std::string text = json.get<std::string>();
    if (text.find('\0') != text.npos) refuse(field, json, "a text without zero characters");
    return text;
  }

  void read(const Field& field, const SpecJson& json, std::string& value) {
    value = text_value(field, json);
  }
  void read(const Field& field, const SpecJson& json, std::vector<std::string>& value) {
    if (!json.is_array()) refuse(field, json, "a list of texts");
    value.clear();
    for (const SpecJson& each : json) read(field, each, value.emplace_back());
  }
  void read(const Field& field, const SpecJson& json, std::vector<std::int64_t>& value) {
    if (!json.is_array()) refuse(field, json, "a list of whole numbers");
    value.clear();
    for (const SpecJson& each : json) read(field, each, value.emplace_back());
  }
  void read(const Field& field, const SpecJson& json, bool& value) {
    if (!json.is_boolean()) refuse(field, json, "true or false");
    value = json.get<bool>();
  }
  template <std::integral Whole>
  requires(!std::same_as<Whole, bool>) void read(const Field& field, const SpecJson& json,
                                                 Whole& value) {
    const bool bounded = field.low < field.high;  // a seed is any number that its type holds
    const double low = bounded ? field.low : 0.0;
    const double high =
        bounded ? field.high : static_cast<double>(std::numeric_limits<Whole>::max());
    const bool fits =
        json.is_number_unsigned() && json.get<double>() >= low && json.get<double>() <= high;
    if (!fits) refuse(field, json, concat("a whole number from ", low, " to ", high));
    value = json.get<Whole>();
  }
  void read(const Field& field, const SpecJson& json, double& value) {
    const bool fits = json.is_number() && json.get<double>() >= field.low &&
                      (field.low >= field.high || json.get<double>() <= field.high);
    const std::string to = field.low < field.high ? concat(" to ", field.high) : " on";
    if (!fits) refuse(field, json, concat("a number from ", field.low, to));
    value = json.get<double>();
  }
  // Numbers that may be absent, and names of choices, as the command line reads them.
  template <typename T>
  void read(const Field& field, const SpecJson& json, T& value) {
    if constexpr (requires(T number) { number = 1.0; }) {
      double number = 0.0;
      read(field, json, number);
      value = number;
    } else {
      parse_field(field, text_value(field, json), value);
    }
  }

  SpecJson json_;
  const char* what_;
  std::vector<std::string> known_, given_;
};

// Reads "lr" and "compute" as overrides of the recipe.
void read_overrides(SpecReader& reader, TrainSpec& spec) {
  std::optional<double> lr;
  std::string compute;
  reader.read_other("lr", lr);
  reader.read_other("compute", compute);
  if (lr) spec.overrides.push_back(concat("weight.lr=", SpecJson(*lr).dump()));
  if (!compute.empty()) spec.overrides.push_back("compute=" + compute);
}

void read_settings(SpecReader& reader, ExportSpec& spec) {
  reader(Field{"trits", "--trits", "packing", ""}, spec.trits);
  reader(Field{"onnx_ops", "--onnx-ops", "operators", ""}, spec.onnx_ops);
  reader(Field{"raw_inputs", "--raw-inputs", "inputs", ""}, spec.raw_inputs);
  reader(Field{"type", "--type", "type of tensors", ""}, spec.type);
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

ArrayOptions array_options_from_json(const std::string& text) {
  SpecReader reader(text, "options", R"({"name": "digits"})");
  ArrayOptions options;
  reader.read_other("name", options.name);
  reader.read_other("class_names", options.class_names);
  reader.read_other("image", options.image);
  reader.read_other("borrow", options.borrow);
  reader.check_nothing_left();
  return options;
}

TrainSpec data_spec_from_json(const std::string& text) {
  SpecReader reader(text, "spec", R"({"data": "iris"})");
  TrainSpec spec;
  visit_data(spec, [&](const Field& field, auto& value) { reader(field, value); });
  reader.read_other("model", spec.model);  // by which a text is cut into windows
  reader.check_nothing_left();
  return spec;
}

TrainOptions run_spec_from_json(const std::string& text) {
  SpecReader reader(text, "spec", R"({"model": "mlp:64,64"})");
  TrainOptions options;
  visit_training(static_cast<TrainSpec&>(options),
                 [&](const Field& field, auto& value) { reader(field, value); });
  check(options.folds == 0, "spec: 'folds' is of several runs; make a run for each fold");
  options.augment = to_text(parse_augmentation(options.augment));
  read_overrides(reader, options);
  reader.read_other("save", options.save);
  reader.read_other("save_every", options.save_every);
  reader.read_other("resume", options.resume);
  reader.read_other("stop_after", options.stop_after);
  reader.check_nothing_left();
  return options;
}

void adopt_data_spec(const TrainSpec& data, TrainSpec& spec) {
  visit_data(spec, [&](const Field& field, auto& value) {
    visit_data(data, [&](const Field& other, const auto& given) {
      if constexpr (std::is_same_v<std::decay_t<decltype(given)>, std::decay_t<decltype(value)>>) {
        if (std::string_view(field.key) == other.key) value = given;
      }
    });
  });
}

ComparisonSpec comparison_spec_from_json(const std::string& text) {
  SpecReader reader(text, "spec", R"({"model": "mlp:64,64"})");
  ComparisonSpec spec;
  ComparisonOptions& options = spec.options;
  visit_training(static_cast<TrainSpec&>(options.train), [&](const Field& field, auto& value) {
    if ((field.traits & kSingleRun) == 0) reader(field, value);
  });
  options.train.augment = to_text(parse_augmentation(options.train.augment));
  read_overrides(reader, options.train);
  reader.read_other("recipes", options.recipes);
  expand_all_recipes(options.recipes, context_of(options.train.model) > 0);
  check(!options.recipes.empty(), "spec: 'recipes' is empty; name one, or leave the key out");
  reader.read_other("baseline", options.baseline);
  reader.read_other("cache", spec.cache);
  reader(Field{"seeds", "--seeds", "seeds", "", 0, "", 1, 1000}, options.seeds);
  reader(Field{"tune", "--tune", "trials", "", 0, "", 1, 15}, options.tune);
  reader(Field{"tune_epochs", "--tune-epochs", "length", "", 0, "", 1, 1e6}, options.tune_epochs);
  reader.check_nothing_left();
  return spec;
}

ExportSettings ExportSpec::settings() const {
  return parse_export_settings(trits, onnx_ops, raw_inputs, type);
}

ExportSpec export_spec_from_json(const std::string& text) {
  SpecReader reader(text, "options", R"({"trits": "2bit"})");
  ExportSpec spec;
  read_settings(reader, spec);
  visit_data(spec.data, [&](const Field& field, auto& value) { reader(field, value); });
  reader.read_other("cache", spec.cache);
  reader.check_nothing_left();
  spec.given = reader.given();
  return spec;
}

InspectSpec inspect_spec_from_json(const std::string& text) {
  SpecReader reader(text, "options", R"({"export": "h"})");
  InspectSpec spec;
  reader.read_other("export", spec.ending);
  read_settings(reader, spec.options);
  reader.check_nothing_left();
  spec.options.given = reader.given();
  check(!spec.ending.empty() || spec.options.given.empty(),
        "options: settings of an export need \"export\" with an ending, such as \"h\"");
  return spec;
}

GenerateSpec generate_spec_from_json(const std::string& text) {
  SpecReader reader(text, "options", R"({"temperature": 0})");
  GenerateSpec spec;
  reader(Field{"length", "--length", "tokens", "", 0, "", 1, 1e9}, spec.length);
  reader.read_other("temperature", spec.sampler.temperature);
  reader.read_other("top_k", spec.sampler.top_k);
  reader.read_other("top_p", spec.sampler.top_p);
  reader.read_other("seed", spec.sampler.seed);
  reader.check_nothing_left();
  return spec;
}

}  // namespace tritgrad
