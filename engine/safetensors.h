// The safetensors file format: 8 bytes header length (little-endian), a JSON header, raw tensors.
//
// Written files carry an XXH3-64 of every tensor and one over the whole header in their metadata, so that
// every flipped bit is found on reading; the format itself has no checksum. Files of other programs,
// which lack them, can be read too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dtype.h"

namespace tritgrad {

struct TensorEntry {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // must be the product of the shape times the size of the type
};

using StringMap = std::map<std::string, std::string>;

// Tensors are laid out in the given order, without holes. Replaces the file atomically.
void write_safetensors(const std::string& path, const StringMap& metadata,
                       const std::vector<TensorEntry>& tensors);

class SafetensorsFile {
 public:
  // Reads and verifies everything; throws Error that names the file and what is wrong with it.
  static SafetensorsFile open(const std::string& path);
  // The same for a file's bytes in memory; `where` begins the messages.
  static SafetensorsFile parse(std::vector<std::byte> bytes, const std::string& where);

  const StringMap& metadata() const { return metadata_; }  // without the hashes
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const TensorEntry* find(std::string_view name) const;
  bool has_hashes() const { return has_hashes_; }

 private:
  std::vector<std::byte> bytes_;  // moved, never copied: the tensors' spans point into it
  StringMap metadata_;
  std::vector<TensorEntry> tensors_;
  bool has_hashes_ = false;
};

}  // namespace tritgrad
