// Reads typed values out of one TOML table and refuses keys that nobody asked for.
#pragma once

#include <toml++/toml.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/nearest.h"

namespace tritgrad {

// The parser of a closed set of names, for TableReader::choice.
template <typename T>
auto one_of(std::vector<std::pair<std::string, T>> choices) {
  return [choices = std::move(choices)](const std::string& text) {
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (name == text) return value;
      names.push_back(name);
    }
    fail("unknown value '", text, "'", did_you_mean(text, names));
  };
}

class TableReader {
 public:
  // `where` begins all messages; the table must outlive the reader.
  TableReader(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  const std::string& where() const { return where_; }

  template <typename T>
  T get(const char* key, T fallback) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return fallback;
    const auto value = node->value<T>();
    check(value.has_value(), where_, ": '", key, "' has the wrong type; expected ", type_name<T>());
    return *value;
  }

  int whole_number(const char* key, int fallback, int highest) {
    known_.insert(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr) return fallback;
    const auto value = node->value_exact<std::int64_t>();
    check(value.has_value(), where_, ": '", key, "' has the wrong type; expected a whole number");
    check(*value >= 0 && *value <= highest, where_, ": ", key, " = ", *value, " is outside 0..",
          highest);
    return static_cast<int>(*value);
  }

  // A string that one of the parse_* functions understands.
  template <typename Parse, typename T>
  T choice(const char* key, Parse parse, T fallback) {
    // group = 32 and group = "32" are the same.
    const toml::node* node = table_.get(key);
    const bool number = node != nullptr && node->is_integer();
    const std::string text =
        number ? std::to_string(get<std::int64_t>(key, 0)) : get<std::string>(key, "");
    if (text.empty()) return fallback;
    try {
      return parse(text);
    } catch (const Error& error) {
      fail(where_, ": '", key, "': ", error.what());
    }
  }

  void allow(const char* key) { known_.insert(key); }

  void refuse_unknown_keys() const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      check(known_.contains(name), where_, ": unknown key '", name, "'",
            did_you_mean(name, std::vector<std::string>(known_.begin(), known_.end())));
    }
  }

 private:
  template <typename T>
  static const char* type_name() {
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, std::string>) return "a string in quotes";
    return "a number";
  }

  const toml::table& table_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace tritgrad
