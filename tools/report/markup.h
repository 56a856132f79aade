// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace tritgrad {

// Safe as element content and as a quoted attribute value. Control characters, which neither HTML
// nor XML may contain, become U+FFFD.
std::string escape_markup(std::string_view text);

// An element of nothing but text, on a line of its own. `attributes`: "" or markup after a space.
std::string element(const char* tag, std::string_view text, const char* attributes = "");

}  // namespace tritgrad
