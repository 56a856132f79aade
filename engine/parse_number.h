// Numbers in text files, read the same in every locale.
#pragma once

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace tritgrad {

// Without the + that std::from_chars does not know.
inline std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

// The value of a whole cell: decimal or scientific notation, with or without a sign; "nan" and
// "inf" are numbers too, and a number beyond the range of double counts as infinite. Nothing for
// other text.
inline std::optional<double> parse_number(std::string_view text) {
  text = without_plus(text);
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  return value;
}

}  // namespace tritgrad
