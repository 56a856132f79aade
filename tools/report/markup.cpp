#include "tools/report/markup.h"

#include <fmt/format.h>

namespace tritgrad {

std::string escape_markup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if ((code < 0x20 && c != '\t' && c != '\n' && c != '\r') || code == 0x7f) {
      out += "\uFFFD";
    } else {
      out += c;
    }
  }
  return out;
}

std::string element(const char* tag, std::string_view text, const char* attributes) {
  return fmt::format("<{0}{1}>{2}</{0}>\n", tag, attributes, escape_markup(text));
}

}  // namespace tritgrad
