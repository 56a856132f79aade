#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "engine/check.h"
#include "engine/files/atomic_file.h"
#include "engine/files/hash.h"
#include "engine/files/safetensors.h"
#include "engine/files/safetensors_header.h"

namespace tritgrad {
namespace {

std::string json_string(const std::string& text, const std::string& file) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    fail(file, ": the name or metadata text ", shown_name(text), " is not valid UTF-8");
  }
}

void check_arguments(std::span<const StoredTensor> tensors, const Metadata& metadata,
                     const std::string& file) {
  std::unordered_set<std::string_view> names;
  for (const StoredTensor& tensor : tensors) {
    check_tensor_name(tensor.name, file);
    check(names.insert(tensor.name).second, file, ": two tensors are named ",
          shown_name(tensor.name));
    const std::uint64_t wanted = bytes_of_shape(tensor.shape, tensor.dtype, tensor.name, file);
    check(tensor.bytes.size() == wanted, file, ": tensor ", shown_name(tensor.name), " comes with ",
          tensor.bytes.size(), " bytes, its shape and dtype need ", wanted);
  }
  for (const auto& [key, value] : metadata) {
    check(!is_integrity_key(key), file, ": metadata key ", shown_name(key),
          " is reserved for hashes; choose another");
  }
}

std::vector<const StoredTensor*> in_file_order(std::span<const StoredTensor> tensors) {
  std::vector<const StoredTensor*> ordered;
  for (const StoredTensor& tensor : tensors) ordered.push_back(&tensor);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return dtype_bytes(a->dtype) > dtype_bytes(b->dtype);
  });
  return ordered;
}

std::string metadata_json(std::span<const StoredTensor* const> tensors, const Metadata& metadata,
                          const std::string& file) {
  std::string text(kHashedHeaderStart);
  text += std::string(kHashDigits, '0') + '"';
  const auto add = [&](const std::string& key, const std::string& value) {
    text += "," + json_string(key, file) + ":" + json_string(value, file);
  };
  add(std::string(kIntegrityKey), std::string(kIntegrityValue));
  for (const StoredTensor* tensor : tensors) {
    add(std::string(kTensorHashPrefix) + tensor->name, hex(xxh3(tensor->bytes, tensor->order)));
  }
  for (const auto& [key, value] : metadata) add(key, value);
  return text + "}";
}

std::string tensor_json(const StoredTensor& tensor, std::uint64_t begin, const std::string& file) {
  std::string shape;
  for (const std::uint64_t extent : tensor.shape) {
    shape += (shape.empty() ? "" : ",") + std::to_string(extent);
  }
  return concat(json_string(tensor.name, file), ":{\"dtype\":\"", dtype_name(tensor.dtype),
                "\",\"shape\":[", shape, "],\"data_offsets\":[", begin, ",",
                begin + tensor.bytes.size(), "]}");
}

// Length, header and padding, with the hash of all of it in its place.
std::string file_start(std::span<const StoredTensor* const> tensors, const Metadata& metadata,
                       const std::string& file) {
  std::string header = metadata_json(tensors, metadata, file);
  std::uint64_t place = 0;
  for (const StoredTensor* tensor : tensors) {
    header += "," + tensor_json(*tensor, place, file);
    place += tensor->bytes.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  check(header.size() <= kMaxHeaderBytes, file, ": the header would have ", header.size(),
        " bytes, at most ", kMaxHeaderBytes, " allowed; write fewer tensors or less metadata");
  std::string start;
  for (int i = 0; i < 8; ++i) {
    start += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 255);
  }
  start += header;
  const std::string hash = hex(xxh3(std::as_bytes(std::span(start))));
  return start.replace(8 + kHashedHeaderStart.size(), kHashDigits, hash);
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata) {
  const std::string name = path.string();
  check_arguments(tensors, metadata, name);
  const std::vector<const StoredTensor*> ordered = in_file_order(tensors);
  const std::string start = file_start(ordered, metadata, name);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(start)));
  for (const StoredTensor* tensor : ordered) {
    tensor->order.for_each_piece(tensor->bytes,
                                 [&](std::span<const std::byte> piece) { file.write(piece); });
  }
  file.commit();
}

}  // namespace tritgrad
