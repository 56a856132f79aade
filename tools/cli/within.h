// Bounds of numeric options.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <concepts>
#include <optional>
#include <string>

#include "engine/text.h"

namespace tritgrad {

// Refuses what is no number from `low` to `high`, both included: "'0' found, a whole number from 1
// to 1000 expected".
template <typename Number>
CLI::Validator within(Number low, Number high) {
  const std::string range = fmt::format("{} to {}", low, high);
  const auto refuse = [=](const std::string& text) -> std::string {
    std::optional<Number> number;
    if constexpr (std::integral<Number>) {
      const std::string_view digits = without_plus(text);
      const char* end = digits.data() + digits.size();
      Number whole = 0;
      const auto [stop, error] = std::from_chars(digits.data(), end, whole);
      // To CLI11 010 is eight.
      const bool octal = digits.size() > 1 && digits[0] == '0';
      if (stop == end && error == std::errc() && !octal) number = whole;
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
