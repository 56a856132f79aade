// The names of an enumeration's values, for reading and for printing.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {

template <typename Enum, std::size_t kCount>
struct Names {
  std::string_view kind;  // what the values are, for messages: "rule"
  std::array<std::pair<Enum, std::string_view>, kCount> names;

  // Returns "" for a number that is no value.
  constexpr std::string_view name(Enum value) const {
    for (const auto& [known, text] : names) {
      if (known == value) return text;
    }
    return {};
  }
  // Throws Error for an unknown name, with the nearest known one.
  Enum parse(std::string_view name) const {
    std::vector<std::string> all;
    for (const auto& [value, text] : names) {
      if (text == name) return value;
      all.emplace_back(text);
    }
    fail("unknown ", kind, " '", name, "'", did_you_mean(name, all));
  }
};

}  // namespace tritgrad
