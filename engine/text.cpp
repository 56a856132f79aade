#include "engine/text.h"

#include <utf8cpp/utf8.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <system_error>
#include <vector>

#include "engine/check.h"

namespace tritgrad {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<int> two_above(columns), above(columns), row(columns);
  for (std::size_t j = 0; j < columns; ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_above, above);
    std::swap(above, row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < columns; ++j) {
      const char x = lower(a[i - 1]);
      const char y = lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (x == y ? 0 : 1)});
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2])) {
        row[j] = std::min(row[j], two_above[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  const int length = static_cast<int>(word.size());
  // A word of which nothing is left is no other word mistyped.
  const int allowed = std::min(std::max(1, length / 3), length - 1);
  int best = allowed + 1;
  std::string result;
  for (const std::string& candidate : candidates) {
    const auto gap =
        static_cast<std::int64_t>(candidate.size()) - static_cast<std::int64_t>(word.size());
    if (std::abs(gap) >= best) continue;
    const int distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      result = candidate;
    }
  }
  return result;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kListed = 20;
  const std::string suggestion = nearest(word, candidates);
  std::string text = suggestion.empty() ? "" : "; did you mean '" + suggestion + "'?";
  if (candidates.empty() || candidates.size() > kListed) return text;
  text += suggestion.empty() ? "; known: " : " Known: ";
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i > 0) text += ", ";
    text += candidates[i];
  }
  return text;
}

std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  text = without_plus(text);
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  return value;
}

std::string number_text(double value) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

std::string counted(std::int64_t count, std::string_view noun) {
  const char* plural = noun.ends_with('s') ? "es" : "s";
  return concat(count, " ", noun, count == 1 ? "" : plural);
}

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() &&
                       (static_cast<unsigned char>(text[i + 1]) & 0xE0) == 0x80;
    i += is_c1 ? 1 : 0;
    shown += is_c1 || byte < 0x20 || byte == 0x7F ? '?' : text[i];
  }
  return shown;
}

std::string enumerated(std::span<const std::string> names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  }
  return text + (names.size() > kMost ? concat(" and ", names.size() - kMost, " more") : "");
}

bool is_utf8(std::string_view text) { return utf8::is_valid(text.begin(), text.end()); }

std::string as_utf8(std::string_view text) {
  std::string whole;
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(whole));
  return whole;
}

}  // namespace tritgrad
