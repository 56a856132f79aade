// Reads typed values out of one table of a recipe and refuses keys that nobody asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/check.h"
#include "engine/names.h"
#include "engine/text.h"

namespace tritgrad {

// A value as the file has it; monostate stands for what no key accepts (arrays, tables, dates).
using TableValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;
struct TableEntry {
  TableValue value;
  int line = 0;  // of the file that holds it; 0: not known
};
using Table = std::map<std::string, TableEntry>;

class TableReader {
 public:
  // `where` begins all messages.
  TableReader(Table table, std::string where)
      : table_(std::move(table)), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  // Returns `where`, with the line of the key if it is known.
  std::string at(const std::string& key) const {
    const auto found = table_.find(key);
    const bool known = found != table_.end() && found->second.line > 0;
    return known ? concat(where_, ", line ", found->second.line) : where_;
  }

  // Reads a bool, a double (whole numbers will do) or a std::string.
  template <typename T>
  T get(const char* key, T fallback) {
    const TableValue* value = find(key);
    if (value == nullptr) return fallback;
    if (const T* exact = std::get_if<T>(value)) return *exact;
    if constexpr (std::is_same_v<T, double>) {
      if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
    }
    wrong_type(key, type_name<T>());
  }

  // Reads an int. `check_range` throws an Error for numbers that will not do, among them all that
  // no int holds.
  template <typename Check>
  int whole_number(const char* key, int fallback, const Check& check_range) {
    const TableValue* value = find(key);
    if (value == nullptr) return fallback;
    const auto* whole = std::get_if<std::int64_t>(value);
    if (whole == nullptr) wrong_type(key, "a whole number without point and exponent");
    try {
      check_range(key, *whole);
    } catch (const Error& error) {
      fail(at(key), ": ", error.what());
    }
    return static_cast<int>(*whole);
  }

  // Reads a string that one of the parse_* functions understands; group = 32 and group = "32" are
  // the same.
  template <typename Parse, typename T>
  T choice(const char* key, Parse parse, T fallback) {
    const TableValue* value = find(key);
    if (value == nullptr) return fallback;
    const auto* whole = std::get_if<std::int64_t>(value);
    const std::string text = whole != nullptr ? std::to_string(*whole) : get<std::string>(key, "");
    try {
      return parse(text);
    } catch (const Error& error) {
      fail(at(key), ": '", key, "': ", error.what());
    }
  }

  template <typename T, std::size_t kCount>
  T choice(const char* key, const Names<T, kCount>& names, T fallback) {
    return choice(
        key, [&](const std::string& text) { return names.parse(text); }, fallback);
  }

  void allow(const char* key) { known_.insert(key); }

  void refuse_unknown_keys() const {
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const auto& [name, entry] : table_) {
      if (known_.contains(name)) continue;
      std::string hint = did_you_mean(name, known);
      if (hint.empty()) hint = "; known: " + list_of(known);
      fail(at(name), ": unknown key '", name, "'", hint);
    }
  }

 private:
  template <typename T>
  static const char* type_name() {
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, std::string>) return "a string in quotes";
    return "a number";
  }

  const TableValue* find(const char* key) {
    known_.insert(key);
    const auto found = table_.find(key);
    return found == table_.end() ? nullptr : &found->second.value;
  }
  [[noreturn]] void wrong_type(const char* key, const char* expected) const {
    fail(at(key), ": '", key, "' has the wrong type; expected ", expected, ", got ",
         written(table_.at(key).value));
  }

  static std::string written(const TableValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return '"' + *text + '"';
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return concat(*whole);
    if (const auto* number = std::get_if<double>(&value)) {
      // 1e1 is no whole number to TOML.
      const std::string text = concat(*number);
      return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
    }
    return "a list, a table or a date";
  }

  static std::string list_of(const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return list;
  }

  Table table_;
  std::string where_;
  std::set<std::string> known_;
};

}  // namespace tritgrad
