// Bounds of numeric options.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <concepts>
#include <optional>
#include <string>

#include "engine/parse_number.h"

namespace tritgrad {

// Refuses what is no number from `low` to `high`, both included: "'0' found, a whole number from 1
// to 1000 expected".
template <typename Number>
CLI::Validator within(Number low, Number high) {
  const std::string range = fmt::format("{} to {}", low, high);
  const auto refuse = [=](const std::string& text) -> std::string {
    std::optional<Number> number;
    if constexpr (std::integral<Number>) {
      const char* end = text.data() + text.size();
      Number whole = 0;
      const auto [stop, error] = std::from_chars(text.data(), end, whole);
      if (stop == end && error == std::errc()) number = whole;
    } else {
      number = parse_number(text);
    }
    if (number && *number >= low && *number <= high) return "";
    return fmt::format("'{}' found, a {}number from {} expected", text,
                       std::integral<Number> ? "whole " : "", range);
  };
  return {refuse, range};
}

}  // namespace tritgrad
