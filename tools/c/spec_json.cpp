#include "tools/c/spec_json.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/check.h"
#include "engine/data/augmentation.h"
#include "engine/text.h"

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
  explicit SpecReader(const std::string& text) {
    json_ = SpecJson::parse(text, nullptr, false);
    check(json_.is_object(), "spec: '", printable(text.substr(0, 60)),
          "' is no JSON object; write one such as {\"model\": \"mlp:64,64\"}");
  }

  void operator()(const Field& field, auto& value) {
    const SpecJson* json = find(key_of(field));
    if (json != nullptr) read(field, *json, value);
  }

  // Reads a value that is no field of a spec.
  template <typename T>
  void read_other(const char* key, T& value) {
    const SpecJson* json = find(key);
    if (json != nullptr) read(Field{key, key, key, ""}, *json, value);
  }

  void check_nothing_left() const {
    for (const auto& [key, value] : json_.items()) {
      const bool known = std::find(known_.begin(), known_.end(), key) != known_.end();
      check(known, "spec: unknown key '", printable(key), "'", did_you_mean(key, known_));
    }
  }

 private:
  const SpecJson* find(const std::string& key) {
    known_.push_back(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  [[noreturn]] static void refuse(const Field& field, const SpecJson& json,
                                  const std::string& expected) {
    fail("spec: '", key_or_option(field), "' is ", printable(json.dump(-1, ' ', true)), ", ",
         expected, " expected");
  }
  static std::string key_or_option(const Field& field) {
    return std::string_view(field.option).starts_with("--") ? key_of(field) : field.option;
  }

  static void read(const Field& field, const SpecJson& json, std::string& value) {
    if (!json.is_string()) refuse(field, json, "a text");
    value = json.get<std::string>();
  }
  static void read(const Field& field, const SpecJson& json, std::vector<std::string>& value) {
    if (!json.is_array()) refuse(field, json, "a list of texts");
    for (const SpecJson& each : json) read(field, each, value.emplace_back());
  }
  static void read(const Field& field, const SpecJson& json, bool& value) {
    if (!json.is_boolean()) refuse(field, json, "true or false");
    value = json.get<bool>();
  }
  template <std::integral Whole>
  requires(!std::same_as<Whole, bool>) static void read(const Field& field, const SpecJson& json,
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
  static void read(const Field& field, const SpecJson& json, double& value) {
    const bool fits = json.is_number() && json.get<double>() >= field.low &&
                      (field.low >= field.high || json.get<double>() <= field.high);
    if (!fits) refuse(field, json, concat("a number from ", field.low, " to ", field.high));
    value = json.get<double>();
  }
  // Numbers that may be absent, and names of choices, as the command line reads them.
  template <typename T>
  static void read(const Field& field, const SpecJson& json, T& value) {
    if constexpr (requires(T number) { number = 1.0; }) {
      double number = 0.0;
      read(field, json, number);
      value = number;
    } else {
      if (!json.is_string()) refuse(field, json, "a text");
      parse_field(field, json.get<std::string>(), value);
    }
  }

  SpecJson json_;
  std::vector<std::string> known_;
};

}  // namespace

TrainSpec data_spec_from_json(const std::string& text) {
  SpecReader reader(text);
  TrainSpec spec;
  visit_data(spec, [&](const Field& field, auto& value) { reader(field, value); });
  reader.check_nothing_left();
  return spec;
}

TrainOptions run_spec_from_json(const std::string& text) {
  SpecReader reader(text);
  TrainOptions options;
  TrainSpec& spec = options;
  visit_training(spec, [&](const Field& field, auto& value) { reader(field, value); });
  check(options.folds == 0, "spec: 'folds' is of several runs; make a run for each fold");
  options.augment = to_text(parse_augmentation(options.augment));
  std::optional<double> lr;
  std::string compute;
  reader.read_other("lr", lr);
  reader.read_other("compute", compute);
  if (lr) options.overrides.push_back(concat("weight.lr=", SpecJson(*lr).dump()));
  if (!compute.empty()) options.overrides.push_back("compute=" + compute);
  reader.read_other("save", options.save);
  reader.read_other("save_every", options.save_every);
  reader.read_other("resume", options.resume);
  reader.read_other("stop_after", options.stop_after);
  reader.check_nothing_left();
  return options;
}

}  // namespace tritgrad
