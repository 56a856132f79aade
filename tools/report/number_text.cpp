#include "tools/report/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace tritgrad {
namespace {

// Beyond this fixed notation stops being readable.
constexpr double kLargestFixed = 1e15;

std::string with_sign(double value, int decimals, const char* plus) {
  if (!std::isfinite(value)) return kMissing;
  const double size = std::abs(value);
  const std::string digits =
      size < kLargestFixed ? fmt::format("{:.{}f}", size, decimals) : fmt::format("{:.2e}", size);
  if (digits.find_first_not_of("0.") == std::string::npos) return digits;
  return (value < 0 ? "−" : plus) + digits;
}

// Divides by the base as often as the number still prints as at least 1; deciding on the printed
// text keeps 999.96 k from becoming "1000.0 k".
std::string scaled(double value, double base, int decimals, std::string_view separator,
                   std::span<const char* const> suffixes) {
  std::size_t power = 0;
  const double half_digit = 0.5 * std::pow(10.0, -decimals);
  while (power + 1 < suffixes.size() && std::abs(value) + half_digit >= base) {
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
  static constexpr const char* kSuffixes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (!std::isfinite(bytes)) return kMissing;
  if (std::abs(bytes) < 1024.0) return fixed(bytes, 0) + " B";
  return scaled(bytes, 1024.0, 2, " ", kSuffixes);
}

std::string human_count(double count, std::string_view separator) {
  static constexpr const char* kSuffixes[] = {"", "k", "M", "G", "T", "P"};
  if (!std::isfinite(count)) return kMissing;
  if (std::abs(count) < 999.95) return fixed(count, count == std::floor(count) ? 0 : 1);
  return scaled(count, 1000.0, 1, separator, kSuffixes);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0.0 || seconds > kLargestFixed) return kMissing;
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t hours = total / 3600, minutes = total / 60 % 60;
  if (hours == 0) return fmt::format("{}:{:02}", minutes, total % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
}

}  // namespace tritgrad
