// Hashes: xxh3 finds damage (fast, 64 bits, nobody is attacking), SHA-256 proves identity with
// published files. Both are spelled as lower-case hexadecimal, most significant digit first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/memory/column_blocks.h"

struct evp_md_ctx_st;  // OpenSSL's digest state, kept out of this header

namespace tritgrad {

// Returns XXH3 of 64 bits, with seed 0.
std::uint64_t xxh3(std::span<const std::byte> bytes);

// Returns XXH3 of pieces as one, one behind another.
std::uint64_t xxh3_joined(std::span<const std::span<const std::byte>> pieces);

// Returns XXH3 of a plane of bytes as it lies in files.
std::uint64_t xxh3(std::span<const std::byte> plane, const ColumnBlocks& order);

// Returns 16 digits.
std::string hex(std::uint64_t value);

// SHA-256 (FIPS 180-4) of bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  // Returns 64 digits of everything so far; the object starts afresh.
  std::string finish();

 private:
  void start();

  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace tritgrad
