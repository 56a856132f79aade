#include "engine/utf8.h"

#include <cstddef>

namespace tritgrad {
namespace {

// Bytes of the character that begins the text; 0 where none does.
std::size_t first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  // The second byte tells overlong forms, surrogates and numbers that are too large.
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F)) return 0;
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) return 0;
  return size;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = first_character(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string whole;
  while (!text.empty()) {
    const std::size_t size = first_character(text);
    whole += size == 0 ? "\uFFFD" : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return whole;
}

}  // namespace tritgrad
