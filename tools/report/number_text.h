// Numbers as people read them, written the same way in tables, reports and progress lines.
//
// A value that does not exist (absent, NaN, infinite) is written as kMissing, never as a word that
// could be mistaken for a measurement. Minus is U+2212.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tritgrad {

inline constexpr const char* kMissing = "–";

// Rounding is that of the printed text: a value whose printed digits are all zero carries no sign.
std::string fixed(double value, int decimals);         // "1.25", "−0.30"
std::string signed_fixed(double value, int decimals);  // "+1.25", "−0.30", "0.00"
// Fixed notation with at least `digits` significant digits: 0.0123, 1.23, 12.3, 123, 1235.
std::string significant(double value, int digits);
std::string percent(double fraction, int decimals = 2);  // 0.9853 -> "98.53 %"
std::string human_bytes(double bytes);                   // "512 B", "1.23 MiB"
// 42, "668.7 k", "7.0 G"; `separator` stands between the number and its suffix.
std::string human_count(double count, std::string_view separator = " ");
std::string duration(double seconds);  // "0:37", "12:05", "1:02:03"

}  // namespace tritgrad
