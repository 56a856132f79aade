// The JSON header of a safetensors file, shared by the reader and the writer of
// engine/files/safetensors.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/safetensors.h"

namespace tritgrad {

// The format's own limit.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

inline constexpr std::string_view kMetadataKey = "__metadata__";
inline constexpr std::string_view kFileHashKey = "tritgrad.xxh3";
inline constexpr std::string_view kTensorHashPrefix = "tritgrad.xxh3:";
inline constexpr std::string_view kIntegrityKey = "tritgrad.integrity";
inline constexpr std::string_view kIntegrityValue = "xxh3";
// How a header with hashes begins; the 16 digits of the file's hash follow.
inline constexpr std::string_view kHashedHeaderStart = R"({"__metadata__":{"tritgrad.xxh3":")";
inline constexpr std::size_t kHashDigits = 16;

// Whether a metadata key is one of ours.
bool is_integrity_key(std::string_view key);

// A name as it may be shown: in quotes, unprintable bytes replaced, at most about 80 bytes.
std::string shown_name(std::string_view name);

// Throws Error, beginning with `file`, for a name no array may have.
void check_tensor_name(std::string_view name, const std::string& file);

// Bytes of an array; throws Error when the product does not fit 64 bits.
std::uint64_t bytes_of_shape(const std::vector<std::uint64_t>& shape, Dtype dtype,
                             std::string_view name, const std::string& file);

struct HeaderTensor {
  std::string name;
  Dtype dtype = Dtype::kU8;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Header {
  std::vector<HeaderTensor> tensors;  // in the header's order
  Metadata metadata;
};

// Throws Error, beginning with `file`, unless the text is exactly a header: right kinds of values,
// nothing missing, unknown, twice or too deep. Where the arrays lie is not looked at.
Header parse_header(std::string_view text, const std::string& file);

}  // namespace tritgrad
