#include "engine/data/token_text.h"

#include "engine/check.h"

namespace tritgrad {

void TokenText::check_range(std::int64_t begin, std::int64_t n) const {
  check(begin >= 0 && n >= 0 && begin <= size() && n <= size() - begin, "text: ", n,
        " tokens from token ", begin, " asked for, the text has ", size(),
        "; ask for tokens within it");
}

std::int64_t TokenText::byte_count(std::int64_t begin, std::int64_t n) const {
  check_range(begin, n);
  return n;
}

void TokenText::read(std::int64_t begin, std::int64_t n, std::int32_t* out) const {
  check_range(begin, n);
  files_.for_each_part(begin, n, [&](std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) *out++ = std::to_integer<std::int32_t>(byte);
  });
}

TokenText open_bytes(const std::string& path) {
  TokenText text;
  text.files_ = TextFiles(path);
  return text;
}

}  // namespace tritgrad
