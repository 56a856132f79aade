#include "engine/files/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>
#include <string_view>

#include "engine/check.h"

namespace tritgrad {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

// XXH3 of bytes that arrive in pieces.
class Xxh3 {
 public:
  Xxh3() : state_(XXH3_createState()) {
    check(state_ != nullptr && XXH3_64bits_reset(state_.get()) == XXH_OK,
          "xxh3: xxHash has no memory for a state");
  }
  void update(std::span<const std::byte> piece) {
    check(XXH3_64bits_update(state_.get(), piece.data(), piece.size()) == XXH_OK,
          "xxh3: xxHash failed to hash ", piece.size(), " bytes");
  }
  std::uint64_t digest() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace

std::uint64_t xxh3(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t xxh3_joined(std::span<const std::span<const std::byte>> pieces) {
  Xxh3 hash;
  for (const std::span<const std::byte> piece : pieces) hash.update(piece);
  return hash.digest();
}

std::uint64_t xxh3(std::span<const std::byte> plane, const ColumnBlocks& order) {
  Xxh3 hash;
  order.for_each_piece(plane, [&](std::span<const std::byte> piece) { hash.update(piece); });
  return hash.digest();
}

std::string hex(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[i] = kDigits[(value >> (60 - 4 * i)) & 15];
  return text;
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  check(context_ != nullptr, "Sha256: OpenSSL has no memory for a digest");
  start();
}

void Sha256::start() {
  check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
        "Sha256: this OpenSSL does not offer SHA-256");
}

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1,
        "Sha256: OpenSSL failed to hash ", bytes.size(), " bytes");
}

std::string Sha256::finish() {
  std::array<unsigned char, 32> digest{};
  check(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1,
        "Sha256: OpenSSL failed to finish a digest");
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  start();
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

}  // namespace tritgrad
