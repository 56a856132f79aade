// The fields of a checkpoint's JSON, each of which has the type and the range that it must have, or
// is refused: hashes say that a file is whole, not that what wrote it told the truth. Included by
// saved_run.cpp alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/files/json_whole-inl.h"
#include "engine/text.h"
#include "models/training/train_spec.h"

namespace tritgrad::saved {

using Json = nlohmann::json;

// Whole numbers up to here are exact as double, too.
inline constexpr double kMostCount = 0x1p53;
// Of names and paths; sentences hold less.
inline constexpr std::size_t kLongestText = 4096;
inline constexpr std::size_t kLongestShown = 80;

// Returns the beginning of a text that a file may have made very long.
inline std::string shown(std::string_view text) {
  if (text.size() <= kLongestShown) return printable(text);
  return printable(as_utf8(text.substr(0, kLongestShown))) + "...";
}

// Bounds, both included; none where they are equal.
struct Range {
  double low = 0.0, high = 0.0;
};

// Is thrown by read_value(): what was expected.
struct Unfit {
  std::string expected;
};

inline std::string bounds_text(const Range& range) {
  return concat(" from ", number_text(range.low), " to ", number_text(range.high));
}

template <std::integral Whole>
requires(!std::same_as<Whole, bool>) void read_value(const Json& json, const Range& range,
                                                     Whole& value) {
  const bool bounded = range.low < range.high;
  const bool whole = holds_whole<Whole>(json);
  const double number = whole ? json.get<double>() : 0.0;
  if (!whole || (bounded && (number < range.low || number > range.high))) {
    throw Unfit{concat("a whole number", bounded ? bounds_text(range) : "")};
  }
  value = json.get<Whole>();
}

inline void read_value(const Json& json, const Range& range, double& value) {
  const bool bounded = range.low < range.high;
  const double number = json.is_number() ? json.get<double>() : 0.0;
  const bool fits = json.is_number() && std::isfinite(number) &&
                    (!bounded || (number >= range.low && number <= range.high));
  if (!fits) throw Unfit{concat("a number", bounded ? bounds_text(range) : "")};
  value = number;
}

inline void read_value(const Json& json, const Range&, bool& value) {
  if (!json.is_boolean()) throw Unfit{"true or false"};
  value = json.get<bool>();
}

inline void read_value(const Json& json, const Range&, std::string& value) {
  const auto* text = json.get_ptr<const std::string*>();
  if (text == nullptr || text->size() > kLongestText || text->find('\0') != text->npos) {
    throw Unfit{concat("a text of at most ", kLongestText, " bytes, none of them 0")};
  }
  value = *text;
}

inline void read_value(const Json& json, const Range&, Json& value) { value = json; }

template <typename T>
void read_value(const Json& json, const Range& range, std::vector<T>& values) {
  if (!json.is_array()) throw Unfit{"a list"};
  values.clear();
  for (const Json& each : json) read_value(each, range, values.emplace_back());
}

class Fields {
 public:
  Fields(std::string path, Json json) : path_(std::move(path)), json_(std::move(json)) {}

  const Json& json() const { return json_; }
  bool has(const char* key) const { return json_.contains(key); }

  template <typename T>
  T get(const char* key, const Range& range = {}) const {
    T value{};
    read_with(key, [&](const Json& json) { read_value(json, range, value); });
    return value;
  }
  std::int64_t count(const char* key, double low = 0.0, double high = kMostCount) const {
    return get<std::int64_t>(key, {low, high});
  }
  Fields inner(const char* key) const { return {path_, get<Json>(key)}; }

  // Calls `reader` with what the key holds, and throws Error for what it finds unfit.
  template <typename Reader>
  void read_with(const char* key, const Reader& reader) const {
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    check(found != json_.end(), "checkpoint '", path_, "': metadata field '", key,
          "' is missing; the file is damaged");
    try {
      reader(*found);
    } catch (const Unfit& unfit) {
      fail("checkpoint '", path_, "': metadata field '", key, "' is ", found_text(*found), ", ",
           unfit.expected, " expected; the file is damaged");
    } catch (const Error& error) {
      fail("checkpoint '", path_, "': metadata field '", key, "': ", error.what());
    }
  }

 private:
  // Returns what a field holds, in few words.
  static std::string found_text(const Json& json) {
    if (json.is_object()) return "an object";
    if (json.is_array()) return concat("a list of ", json.size());
    if (json.is_string()) return "'" + shown(json.get_ref<const std::string&>()) + "'";
    return json.dump();
  }

  std::string path_;
  Json json_;
};

}  // namespace tritgrad::saved
