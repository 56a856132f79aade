#include "engine/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>
#include <fstream>

#include "engine/check.h"

namespace tritgrad {

std::uint64_t xxh3(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  check(context_->evp != nullptr && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1,
        "SHA-256 cannot be started; is the OpenSSL library complete?");
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

void Sha256::update(const std::string& text) { update(std::as_bytes(std::span(text))); }

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest;
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context_->evp, digest.data(), &size) == 1 && size == digest.size(),
        "SHA-256 failed");
  std::string text;
  for (unsigned char byte : digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.good(), "file '", path, "' cannot be read; check the path and its permissions");
  Sha256 hash;
  std::array<char, 65536> block;
  while (in.read(block.data(), block.size()) || in.gcount() > 0) {
    hash.update(std::as_bytes(std::span(block.data(), static_cast<std::size_t>(in.gcount()))));
  }
  check(!in.bad(), "file '", path, "' cannot be read to its end");
  return hash.hex();
}

std::string hex16(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace tritgrad
