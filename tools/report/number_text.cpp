#include "tools/report/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace tritgrad {
namespace {

// Beyond this fixed notation stops being readable.
constexpr double kLargestFixed = 1e15;

bool all_zero(std::string_view digits) {
  return digits.find_first_not_of("0.") == std::string_view::npos;
}

std::string magnitude(double value, int decimals) {
  const double size = std::abs(value);
  return size < kLargestFixed ? fmt::format("{:.{}f}", size, decimals)
                              : fmt::format("{:.2e}", size);
}

std::string with_sign(double value, int decimals, const char* plus) {
  if (!std::isfinite(value)) return kMissing;
  const std::string digits = magnitude(value, decimals);
  if (all_zero(digits)) return digits;
  return (value < 0 ? "−" : plus) + digits;
}

// The largest suffix for which the number still prints as at least 1; deciding on the printed text
// keeps 999.96 k from becoming "1000.0 k".
template <std::size_t kCount>
std::string scaled(double value, double base, int decimals, std::string_view separator,
                   const std::array<const char*, kCount>& suffixes) {
  std::size_t power = 0;
  const double half_digit = 0.5 * std::pow(10.0, -decimals);
  while (power + 1 < kCount && std::abs(value) + half_digit >= base) {
    value /= base;
    ++power;
  }
  return fmt::format("{}{}{}", fixed(value, decimals), separator, suffixes[power]);
}

}  // namespace

std::string fixed(double value, int decimals) { return with_sign(value, decimals, ""); }

std::string signed_fixed(double value, int decimals) { return with_sign(value, decimals, "+"); }

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return kMissing;
  if (value == 0.0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (exponent < -6) return fmt::format("{:.{}e}", value, digits - 1);
  return fixed(value, std::max(0, digits - 1 - exponent));
}

std::string percent(double fraction, int decimals) {
  if (!std::isfinite(fraction)) return kMissing;
  return fixed(100.0 * fraction, decimals) + " %";
}

std::string human_bytes(double bytes) {
  static constexpr std::array<const char*, 7> kSuffixes = {"B",   "KiB", "MiB", "GiB",
                                                           "TiB", "PiB", "EiB"};
  if (!std::isfinite(bytes)) return kMissing;
  if (std::abs(bytes) < 1024.0) return fixed(bytes, 0) + " B";
  return scaled(bytes, 1024.0, 2, " ", kSuffixes);
}

std::string human_count(double count, std::string_view separator) {
  static constexpr std::array<const char*, 6> kSuffixes = {"", "k", "M", "G", "T", "P"};
  if (!std::isfinite(count)) return kMissing;
  if (std::abs(count) < 999.95) return fixed(count, count == std::floor(count) ? 0 : 1);
  return scaled(count, 1000.0, 1, separator, kSuffixes);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0.0 || seconds > kLargestFixed) return kMissing;
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t hours = total / 3600, minutes = total / 60 % 60;
  if (hours == 0) return fmt::format("{}:{:02}", minutes, total % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
}

}  // namespace tritgrad
