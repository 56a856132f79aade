// Named arrays in one file, in the safetensors format, which other tools read too:
//
//   bytes 0..7         N, the length of the header, little-endian
//   bytes 8..8+N       header: JSON, padded with spaces to a multiple of 8
//   bytes 8+N..end     the arrays, little-endian, row-major, without holes
//
// The header maps each name to {"dtype", "shape", "data_offsets": [begin, end]}, offsets counted
// from the end of the header, and "__metadata__" to a map of strings.
//
// The format has no checksum, so our metadata carries them, as 16 hexadecimal digits of XXH3-64:
//   "tritgrad.xxh3"          of the first 8+N bytes, with these 16 digits read as zeros
//   "tritgrad.integrity"     "xxh3": says a second time that hashes belong here
//   "tritgrad.xxh3:<name>"   of the bytes of that array
// "tritgrad.xxh3" always comes first. It covers the header and with it the hashes of all arrays, so
// no bit of the file is free.
//
// Order: the format forbids holes, so arrays cannot be padded. They are written by descending
// element size, equal sizes in the caller's order: every array then begins at a multiple of its
// element size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/read_file.h"
#include "engine/formats/dtype.h"
#include "engine/memory/column_blocks.h"

namespace tritgrad {

// A named array whose bytes belong to someone else: the caller when writing, the file when reading.
struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::kU8;
  std::vector<std::uint64_t> shape;  // empty: one element
  std::span<const std::byte> bytes;
  ColumnBlocks order{};  // the order of bytes to be written; in files they lie row by row
};

using Metadata = std::map<std::string, std::string>;

// Replaces the file atomically; equal arguments give equal bytes. Nothing but the header is copied,
// and pieces of planes that do not lie as in files.
// Throws Error for names or metadata the format cannot hold, for bytes that do not fit the shape,
// and for metadata keys beginning with "tritgrad.xxh3" or "tritgrad.integrity", which are ours.
void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata);
// Takes the bytes of a file, piece by piece in their order.
using ByteSink = std::function<void(std::span<const std::byte> piece)>;
// Hands the bytes of the file to `write`; `name` stands for its path in errors.
void write_safetensors(const ByteSink& write, std::span<const StoredTensor> tensors,
                       const Metadata& metadata, const std::string& name);
// Returns the bytes of the file.
std::string safetensors_bytes(std::span<const StoredTensor> tensors, const Metadata& metadata,
                              const std::string& name);

// A validated file. Everything the format forbids is refused, and so is every file with our hashes
// in which any bit has changed; the Error names the file and, where there is one, the array.
class SafetensorsFile {
 public:
  // The file stays mapped for as long as this object lives; its arrays are views into it.
  static SafetensorsFile open(const std::filesystem::path& path);

  // Does so for bytes in memory, which must outlive the object; `name` stands for the path in
  // errors.
  static SafetensorsFile parse(std::span<const std::byte> bytes, const std::string& name);

  // Returns the path, or the name that stands for it.
  const std::string& name() const { return name_; }
  // Returns all bytes of the file.
  std::span<const std::byte> bytes() const { return bytes_; }
  // Returns the tensors in the order of their bytes in the file.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  // Returns nullptr when there is no such array.
  const StoredTensor* find(std::string_view name) const;
  // Throws Error when there is no such array.
  const StoredTensor& tensor(std::string_view name) const;
  // Returns the metadata without the entries that hold our hashes.
  const Metadata& metadata() const { return metadata_; }
  // Returns false for files by other writers: valid, but nothing would tell if their data had
  // changed.
  bool has_hashes() const { return has_hashes_; }

 private:
  void verify_hashes(std::span<const std::byte> start);

  std::string name_;
  MappedFile mapping_;
  std::span<const std::byte> bytes_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
  Metadata metadata_;
  bool has_hashes_ = false;
};

}  // namespace tritgrad
