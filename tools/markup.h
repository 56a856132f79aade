// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace tritgrad {

// Safe as element content and as a quoted attribute value. Control characters, which neither HTML
// nor XML may contain, become U+FFFD.
std::string escape_markup(std::string_view text);

}  // namespace tritgrad
