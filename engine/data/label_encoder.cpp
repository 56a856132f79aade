#include "engine/data/label_encoder.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

// From here on neighbouring whole numbers may be the same double.
constexpr double kExactIntegers = 0x1p53;

// Class number of each id, and the names of the classes.
struct Classes {
  std::vector<std::int32_t> of_id;
  std::vector<std::string> names;
};

using Ids = std::map<std::string, std::int32_t, std::less<>>;

bool all_numbers(const Ids& ids) {
  return std::all_of(ids.begin(), ids.end(), [](const auto& entry) {
    const std::optional<double> number = parse_number(entry.first);
    return number && std::isfinite(*number);
  });
}

// A label that is a number.
struct NumberLabel {
  double value;
  std::string_view text;
  std::int32_t id;

  bool same_class(const NumberLabel& other) const {
    return value == other.value && (std::abs(value) < kExactIntegers || text == other.text);
  }
  // Among equal values the text that came first is the first; those that only texts tell apart are
  // ordered as whole numbers are ordered.
  bool operator<(const NumberLabel& other) const {
    if (value != other.value) return value < other.value;
    if (std::abs(value) < kExactIntegers) return id < other.id;
    const bool shorter = std::tuple(text.size(), text) < std::tuple(other.text.size(), other.text);
    return value > 0.0 ? shorter : !shorter && text != other.text;
  }
};

Classes sort_by_value(const Ids& ids) {
  std::vector<NumberLabel> labels;
  labels.reserve(ids.size());
  // Adding +0 makes -0 the same class as 0.
  for (const auto& [text, id] : ids) labels.push_back({*parse_number(text) + 0.0, text, id});
  std::sort(labels.begin(), labels.end());
  Classes classes{std::vector<std::int32_t>(ids.size()), {}};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (i == 0 || !labels[i].same_class(labels[i - 1])) classes.names.emplace_back(labels[i].text);
    classes.of_id[static_cast<std::size_t>(labels[i].id)] =
        static_cast<std::int32_t>(classes.names.size()) - 1;
  }
  return classes;
}

Classes sort_by_text(const Ids& ids) {
  Classes classes{std::vector<std::int32_t>(ids.size()), {}};
  for (const auto& [text, id] : ids) {
    classes.of_id[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(classes.names.size());
    classes.names.push_back(text);
  }
  return classes;
}

// The ids of labels that are none of the classes stay -1.
Classes take_order(const Ids& ids, const std::vector<std::string>& order) {
  Classes classes{std::vector<std::int32_t>(ids.size(), -1), order};
  const ClassFinder known(order);
  for (const auto& [text, id] : ids) {
    classes.of_id[static_cast<std::size_t>(id)] = known.find(text).value_or(-1);
  }
  return classes;
}

bool are_mostly_numbers(const std::vector<std::string>& names) {
  const auto numbers = std::count_if(names.begin(), names.end(), [](const std::string& name) {
    return parse_number(name).has_value();
  });
  return 2 * numbers > std::ssize(names);
}

}  // namespace

ClassFinder::ClassFinder(const std::vector<std::string>& classes) {
  bool numbers = true;
  for (std::int32_t number = 0; number < std::ssize(classes); ++number) {
    const std::string& name = classes[static_cast<std::size_t>(number)];
    by_text_.emplace(name, number);
    const std::optional<double> value = parse_number(name);
    numbers = numbers && value && std::isfinite(*value);
    if (numbers && std::abs(*value) < kExactIntegers) by_value_.emplace(*value + 0.0, number);
  }
  if (!numbers) by_value_.clear();
}

std::optional<std::int32_t> ClassFinder::find(std::string_view label) const {
  if (const auto found = by_text_.find(label); found != by_text_.end()) return found->second;
  const std::optional<double> value = parse_number(label);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  const auto found = by_value_.find(*value + 0.0);
  if (found == by_value_.end()) return std::nullopt;
  return found->second;
}

void LabelEncoder::add(std::string_view label) {
  auto found = ids_.find(label);
  if (found == ids_.end()) {
    check(ids_.size() < kMaxClasses, where_, ": the label column has more than ", kMaxClasses,
          " distinct values; ", advice_);
    found = ids_.emplace(label, static_cast<std::int32_t>(ids_.size())).first;
  }
  labels_.push_back(found->second);
}

void LabelEncoder::finish(Dataset& dataset, const std::vector<std::string>& order,
                          const PlaceOfRow& place, bool to_score) const {
  Classes classes = !order.empty()      ? take_order(ids_, order)
                    : all_numbers(ids_) ? sort_by_value(ids_)
                                        : sort_by_text(ids_);
  for (std::size_t row = 0; row < labels_.size(); ++row) {
    if (classes.of_id[static_cast<std::size_t>(labels_[row])] >= 0) continue;
    const auto unknown = std::find_if(
        ids_.begin(), ids_.end(), [&](const auto& each) { return each.second == labels_[row]; });
    fail(place(static_cast<std::int64_t>(row)), ": label \"", printable(unknown->first),
         "\" is none of the ", order.size(), to_score ? " classes of the model" : " known classes",
         did_you_mean(unknown->first, order), "; mend or remove the row, or ", advice_);
  }
  check(to_score || classes.names.size() > 1, where_, ": ",
        labels_.size() == 1 ? "the one row has" : concat("all ", labels_.size(), " rows have"),
        " the label \"", classes.names.empty() ? "" : printable(classes.names[0]),
        "\", at least two classes are needed; ", advice_);
  // Many rows of few classes is what a label column looks like; a measured quantity has as many
  // values as rows.
  constexpr std::size_t kSuspicious = 20;
  check(
      to_score || classes.names.size() <= kSuspicious || 2 * classes.names.size() <= labels_.size(),
      where_, ": the label column has ", classes.names.size(), " distinct values in ",
      labels_.size(), " rows; ", advice_,
      are_mostly_numbers(classes.names) ? ", or predict numbers (--task regress)" : "");
  dataset.labels.resize(labels_.size());
  std::transform(labels_.begin(), labels_.end(), dataset.labels.begin(),
                 [&](std::int32_t id) { return classes.of_id[static_cast<std::size_t>(id)]; });
  dataset.class_names = std::move(classes.names);
}

}  // namespace tritgrad
