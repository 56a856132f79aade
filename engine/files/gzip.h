// Gzip members inflated into memory of known size, so that a small file cannot fill the machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tritgrad {

bool is_gzip(std::string_view bytes);

// Inflates the beginning of a member until `out` is full; returns how many bytes there were.
std::size_t inflate_prefix(std::string_view bytes, std::span<std::uint8_t> out,
                           const std::string& where);

// Inflates a whole member: its first head.size() bytes, then body.size() bytes. Throws when the
// contents are shorter or longer, when the checksum is wrong, or when bytes follow.
void inflate_exactly(std::string_view bytes, std::span<std::uint8_t> head,
                     std::span<std::uint8_t> body, const std::string& where);

}  // namespace tritgrad
