// Text that JSON can hold: RFC 3629.
#pragma once

#include <string>
#include <string_view>

namespace tritgrad {

// Whether the bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// The text with U+FFFD for every byte that belongs to no character.
std::string as_utf8(std::string_view text);

}  // namespace tritgrad
