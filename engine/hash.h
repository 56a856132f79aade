// Content hashes: XXH3 against accidents, SHA-256 for identity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tritgrad {

std::uint64_t xxh3(std::span<const std::byte> bytes);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  void update(const std::string& text);
  // 64 lower-case hex digits. The object is used up.
  std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
// Throws Error when the file cannot be read.
std::string sha256_of_file(const std::string& path);

// Digits of `value`, 16 of them.
std::string hex16(std::uint64_t value);

}  // namespace tritgrad
