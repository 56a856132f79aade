#include "models/export/c_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>

#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::size_t kLineWidth = 100;
// C99 tells names apart by 63 characters at least; those in front of an ending are the user's.
constexpr std::size_t kLongestEnding = 60;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string with_underscores(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !is_letter_or_digit(c); }, '_');
  return text;
}

template <typename Number>
std::string number_literal(Number x, const char* suffix) {
  if (std::isnan(x)) return "NAN";
  std::array<char, 64> digits;
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr;
  std::string text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + suffix;
}

}  // namespace

std::string c_identifier(const std::string& text) {
  check(std::any_of(text.begin(), text.end(), is_letter_or_digit), "export: '", printable(text),
        "' has no letter or digit from which a name in C could be made; give the file another "
        "name, such as digits.h");
  std::string name = with_underscores(text);
  const bool starts_well = name[0] != '_' && !(name[0] >= '0' && name[0] <= '9');
  return starts_well ? name : "model_" + name;
}

std::vector<std::string> c_name_endings(const std::vector<std::string>& texts) {
  std::vector<std::string> endings;
  std::set<std::string> taken;
  for (const std::string& text : texts) {
    const std::string plain = with_underscores(text.substr(0, kLongestEnding));
    std::string ending = plain;
    for (int number = 2; !taken.insert(ending).second; ++number) {
      ending = concat(plain, "_", number);
    }
    endings.push_back(ending);
  }
  return endings;
}

std::string upper_case(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string c_comment_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '*' && c != '?' && c != '\\';
    safe += plain ? c : '_';
  }
  return safe;
}

std::string c_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '?') {
      quoted += '\\';
      quoted += c;
    } else if (c >= ' ' && c <= '~') {
      quoted += c;
    } else {
      std::array<char, 8> octal{};
      std::snprintf(octal.data(), octal.size(), "\\%03o", static_cast<unsigned char>(c));
      quoted += octal.data();
    }
  }
  return quoted + '"';
}

std::string c_literal(float x) { return number_literal(x, "f"); }
std::string c_literal(double x) { return number_literal(x, ""); }

std::string c_list(const std::vector<std::string>& items) {
  std::string text, line = " ";
  for (const std::string& item : items) {
    if (line.size() > 1 && line.size() + item.size() + 2 > kLineWidth) {
      text += line + "\n";
      line = " ";
    }
    line += " " + item + ",";
  }
  return text + line + "\n";
}

}  // namespace tritgrad
