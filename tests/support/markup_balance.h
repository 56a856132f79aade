// A tag-balance checker for the markup that reports consist of: enough to catch an unclosed or
// crossed element, an unquoted attribute and a stray angle bracket or ampersand.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

// Empty when `markup` is well formed, otherwise what is wrong. A document type may come first.
inline std::string markup_error(std::string_view markup) {
  std::vector<std::string> open;
  std::size_t i = markup.rfind("<!DOCTYPE html>", 0) == 0 ? 15 : 0;
  while (i < markup.size()) {
    const bool in_style = !open.empty() && open.back() == "style";
    if (markup[i] == '&' && !in_style) {
      const std::size_t end = markup.find(';', i);
      if (end == std::string_view::npos || end - i > 6) return "bare ampersand";
    }
    if (markup[i] == '>' && !in_style) return "stray >";
    if (markup[i] != '<') {
      ++i;
      continue;
    }
    std::size_t end = i;
    for (bool quoted = false; ++end < markup.size();) {
      if (markup[end] == '"') quoted = !quoted;
      if (markup[end] == '<') return "stray < inside a tag";
      if (markup[end] == '>' && !quoted) break;
    }
    if (end >= markup.size()) return "unfinished tag";
    std::string_view tag = markup.substr(i + 1, end - i - 1);
    i = end + 1;
    const bool closing = !tag.empty() && tag.front() == '/';
    const bool empty = !tag.empty() && tag.back() == '/';
    if (closing) tag.remove_prefix(1);
    std::size_t length = 0;
    while (length < tag.size() && std::isalnum(static_cast<unsigned char>(tag[length]))) ++length;
    const std::string name(tag.substr(0, length));
    if (name.empty()) return "tag without a name";
    for (std::size_t at = tag.find('='); at != std::string_view::npos;) {
      if (at + 1 >= tag.size() || tag[at + 1] != '"') return "unquoted attribute in " + name;
      const std::size_t close = tag.find('"', at + 2);
      if (close == std::string_view::npos) return "open quote in " + name;
      at = tag.find('=', close);
    }
    if (closing) {
      if (open.empty()) return "closing " + name + " without an opening";
      if (open.back() != name) return "closing " + name + " inside " + open.back();
      open.pop_back();
    } else if (!empty) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "unclosed " + open.back();
}

}  // namespace tritgrad
