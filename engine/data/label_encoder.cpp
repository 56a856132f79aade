#include "engine/data/label_encoder.h"

#include <algorithm>
#include <charconv>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

// Class number of each id, and the names of the classes.
struct Classes {
  std::vector<std::int32_t> of_id;
  std::vector<std::string> names;
};

using Ids = std::map<std::string, std::int32_t, std::less<>>;

bool all_numbers(const Ids& ids) {
  return std::all_of(ids.begin(), ids.end(),
                     [](const auto& entry) { return parse_number(entry.first).has_value(); });
}

std::string shortest_text(double value) {
  char digits[32];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  return {digits, result.ptr};
}

Classes sort_by_value(const Ids& ids) {
  std::vector<std::pair<double, std::int32_t>> values;
  values.reserve(ids.size());
  // Adding +0 makes -0 the same class as 0.
  for (const auto& [text, id] : ids) values.emplace_back(*parse_number(text) + 0.0, id);
  std::sort(values.begin(), values.end());
  Classes classes{std::vector<std::int32_t>(ids.size()), {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || values[i].first != values[i - 1].first) {
      classes.names.push_back(shortest_text(values[i].first));
    }
    classes.of_id[static_cast<std::size_t>(values[i].second)] =
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

Classes take_order(const Ids& ids, const std::vector<std::string>& order,
                   const std::string& where) {
  Classes classes{std::vector<std::int32_t>(ids.size()), order};
  for (const auto& [text, id] : ids) {
    const auto found = std::find(order.begin(), order.end(), text);
    if (found == order.end()) {
      fail(where, ": label \"", text, "\" is none of the ", order.size(), " declared classes",
           did_you_mean(text, order));
    }
    classes.of_id[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(found - order.begin());
  }
  return classes;
}

}  // namespace

void LabelEncoder::add(std::string_view label) {
  auto found = ids_.find(label);
  if (found == ids_.end()) {
    check(ids_.size() < kMaxClasses, where_, ": the label column has more than ", kMaxClasses,
          " distinct values; choose a column that holds classes");
    found = ids_.emplace(label, static_cast<std::int32_t>(ids_.size())).first;
  }
  labels_.push_back(found->second);
}

void LabelEncoder::finish(Dataset& dataset, const std::vector<std::string>& order,
                          bool to_score) const {
  Classes classes = !order.empty()      ? take_order(ids_, order, where_)
                    : all_numbers(ids_) ? sort_by_value(ids_)
                                        : sort_by_text(ids_);
  check(to_score || classes.names.size() > 1, where_, ": all ", labels_.size(),
        " rows have the label \"", classes.names.empty() ? "" : classes.names[0],
        "\", at least two classes are needed; check the label column");
  // Many rows of few classes is what a label column looks like; a measured quantity has as many
  // values as rows.
  constexpr std::size_t kSuspicious = 20;
  check(
      to_score || classes.names.size() <= kSuspicious || 2 * classes.names.size() <= labels_.size(),
      where_, ": the label column has ", classes.names.size(), " distinct values in ",
      labels_.size(), " rows; choose a column that holds classes");
  dataset.labels.resize(labels_.size());
  std::transform(labels_.begin(), labels_.end(), dataset.labels.begin(),
                 [&](std::int32_t id) { return classes.of_id[static_cast<std::size_t>(id)]; });
  dataset.class_names = std::move(classes.names);
}

}  // namespace tritgrad
