#include "engine/data/token_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/check.h"
#include "engine/data/byte_pairs.h"
#include "engine/files/hash.h"
#include "engine/memory/parallel.h"

namespace tritgrad {
namespace {

// A part of a file that a thread encodes: whole lines, as far as lines go.
struct TextShare {
  std::string_view text;
  bool begins_text;
};

std::vector<TextShare> shares_of(const TextFiles& files) {
  constexpr std::size_t kShareBytes = std::size_t{1} << 18;
  std::vector<TextShare> shares;
  files.for_each_part(0, files.size(), [&](std::span<const std::byte> file) {
    std::string_view rest(reinterpret_cast<const char*>(file.data()), file.size());
    while (!rest.empty()) {
      std::size_t size = 0;
      while (size < rest.size() && size < kShareBytes) size += encoded_together(rest.substr(size));
      shares.push_back({rest.substr(0, size), shares.empty()});
      rest.remove_prefix(size);
    }
  });
  return shares;
}

template <typename T>
void copy_tokens(const Buffer& tokens, std::int64_t begin, std::int64_t n, std::int32_t* out) {
  std::copy_n(tokens.as<T>() + begin, n, out);
}

}  // namespace

void TokenText::tokenize(const TextFiles& files) {
  const std::vector<TextShare> shares = shares_of(files);
  std::vector<std::vector<std::int32_t>> tokens(shares.size());
  parallel_for(static_cast<std::int64_t>(shares.size()), [&](std::int64_t i) {
    const TextShare& share = shares[static_cast<std::size_t>(i)];
    tokens[static_cast<std::size_t>(i)] =
        share.begins_text ? tokenizer_.encode(share.text) : tokenizer_.encode_more(share.text);
  });
  for (const auto& each : tokens) size_ += static_cast<std::int64_t>(each.size());
  const std::size_t bytes = is_wide() ? sizeof(std::int32_t) : sizeof(std::uint16_t);
  tokens_ = Buffer(static_cast<std::size_t>(size_) * bytes, Category::kData);
  std::size_t at = 0;
  for (const auto& each : tokens) {
    for (const std::int32_t token : each) {
      if (is_wide()) {
        tokens_.as<std::int32_t>()[at++] = token;
      } else {
        tokens_.as<std::uint16_t>()[at++] = static_cast<std::uint16_t>(token);
      }
    }
  }
}

void TokenText::check_range(std::int64_t begin, std::int64_t n) const {
  check(begin >= 0 && n >= 0 && begin <= size() && n <= size() - begin, "text: ", n,
        " tokens from token ", begin, " asked for, the text has ", size(),
        "; ask for tokens within it");
}

std::int64_t TokenText::byte_count(std::int64_t begin, std::int64_t n) const {
  check_range(begin, n);
  if (tokenizer_.is_bytes()) return n;
  std::int64_t bytes = begin == 0 && n > 0 && tokenizer_.adds_space() ? -1 : 0;
  for (std::int64_t i = begin; i < begin + n; ++i) {
    std::int32_t token = 0;
    read(i, 1, &token);
    bytes += static_cast<std::int64_t>(tokenizer_.bytes_of(token).size());
  }
  return bytes;
}

void TokenText::read(std::int64_t begin, std::int64_t n, std::int32_t* out) const {
  check_range(begin, n);
  if (tokenizer_.is_bytes()) {
    files_.for_each_part(begin, n, [&](std::span<const std::byte> bytes) {
      for (const std::byte byte : bytes) *out++ = std::to_integer<std::int32_t>(byte);
    });
  } else if (is_wide()) {
    copy_tokens<std::int32_t>(tokens_, begin, n, out);
  } else {
    copy_tokens<std::uint16_t>(tokens_, begin, n, out);
  }
}

std::uint64_t TokenText::hash() const {
  return tokenizer_.is_bytes() ? files_.hash() : xxh3(tokens_.bytes());
}

TokenText open_tokens(const std::string& path, const Vocabulary& tokenizer) {
  TokenText text(tokenizer);
  TextFiles files(path);
  text.byte_count_ = files.size();
  if (tokenizer.is_bytes()) {
    text.size_ = files.size();
    text.files_ = std::move(files);
  } else {
    text.tokenize(files);
  }
  return text;
}

TokenText open_bytes(const std::string& path) { return open_tokens(path, Vocabulary::of_bytes()); }

}  // namespace tritgrad
