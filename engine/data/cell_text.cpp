#include "engine/data/cell_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::string_view kMarkers[] = {
    "?",    "NA",     "N/A",     "n/a",      "NaN",    "nan",     "NAN",     "-nan",
    "-NaN", "null",   "NULL",    "Null",     "None",   "<NA>",    "#N/A",    "#NA",
    "NaT",  "#NULL!", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND", "#N/A N/A"};
constexpr std::size_t kLongestMarker = 8;

// A text that people and programs put into numbers, and what is said of it.
struct Ornament {
  std::string_view text, replacement, fault;
};
constexpr Ornament kOrnaments[] = {
    {"\xE2\x88\x92", "-", "its minus sign is U+2212; write - instead"},
    {"\xC2\xA0", "", "it holds a no-break space (U+00A0); remove it"},
    {"\xE2\x80\xAF", "", "it holds a narrow no-break space (U+202F); remove it"},
    {"\xE2\x80\x89", "", "it holds a thin space (U+2009); remove it"},
    {" ", "", "it holds a space; remove it"},
    {"'", "", "it has separators of thousands; remove them"},
    {"%", "", "it ends in a percent sign; remove it"},
};

bool replace_all(std::string& text, std::string_view from, std::string_view to) {
  bool any = false;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
    any = true;
  }
  return any;
}

// Says whether commas stand where thousands have them: "1,234,567.8".
bool has_thousands(const std::string& text) {
  std::size_t commas = 0, since = 0;
  bool whole = true;
  for (char c : text) {
    if (c == '.') whole = false;
    if (c == ',') {
      if (!whole || (commas > 0 && since != 3) || (commas == 0 && (since == 0 || since > 3))) {
        return false;
      }
      ++commas;
      since = 0;
    } else if (whole && c >= '0' && c <= '9') {
      ++since;
    }
  }
  return commas > 0 && since == 3;
}

// Says what is wrong with a number that is written for people; nothing for other texts.
std::optional<std::string> miswriting(std::string_view cell) {
  constexpr std::size_t kLongest = 64;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (cell.size() > kLongest || std::none_of(cell.begin(), cell.end(), is_digit)) {
    return std::nullopt;
  }
  std::string text(cell), fault;
  for (const Ornament& each : kOrnaments) {
    if (replace_all(text, each.text, each.replacement) && fault.empty()) fault = each.fault;
  }
  const bool thousands = has_thousands(text);
  const bool comma = std::count(text.begin(), text.end(), ',') == 1;
  if (thousands && comma && text.find('.') == std::string::npos) {
    fault =
        "its comma may be one of decimals or of thousands; write a decimal point, and no "
        "separators of thousands";
    replace_all(text, ",", ".");
  } else if (thousands) {
    fault = "it has separators of thousands; remove them";
    replace_all(text, ",", "");
  } else if (comma && text.find('.') == std::string::npos) {
    fault = "it has a decimal comma; write a decimal point";
    replace_all(text, ",", ".");
  } else if (comma) {  // 1.234,5
    fault = "it has a decimal comma and separators of thousands; write a decimal point alone";
    replace_all(text, ".", "");
    replace_all(text, ",", ".");
  }
  if (fault.empty() || !parse_number(text)) return std::nullopt;
  return fault;
}

}  // namespace

std::span<const std::string_view> missing_markers() { return kMarkers; }

CellKind classify_cell(std::string_view text, double& number) {
  if (text.empty()) return CellKind::kMissing;
  if (const std::optional<double> value = parse_number(text)) {
    number = *value;
    return std::isnan(number) ? CellKind::kMissing : CellKind::kNumber;
  }
  if (text.size() <= kLongestMarker &&
      std::find(std::begin(kMarkers), std::end(kMarkers), text) != std::end(kMarkers)) {
    return CellKind::kMissing;
  }
  return miswriting(text) ? CellKind::kMiswritten : CellKind::kWord;
}

bool is_missing_marker(std::string_view text) {
  double number = 0.0;
  return !text.empty() && classify_cell(text, number) == CellKind::kMissing;
}

std::string quoted_cell(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::size_t end = std::min(text.size(), kMost);
  // No character of UTF-8 is cut in two.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return "\"" + printable(text.substr(0, end)) + (end < text.size() ? "..." : "") + "\"";
}

std::string cell_fault(std::string_view text) {
  if (parse_number(text)) return quoted_cell(text) + " is not a finite fp32 number";
  if (const auto fault = miswriting(text)) {
    return quoted_cell(text) + " is not a number, " + *fault;
  }
  return quoted_cell(text) + " is not a number";
}

}  // namespace tritgrad
