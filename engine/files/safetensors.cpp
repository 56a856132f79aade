#include "engine/files/safetensors.h"

#include <algorithm>
#include <utility>

#include "engine/check.h"
#include "engine/files/hash.h"
#include "engine/files/safetensors_header.h"

namespace tritgrad {
namespace {

constexpr std::size_t kLengthBytes = 8;

// The header's text, its length checked against the limit and the file.
std::string_view header_of(std::span<const std::byte> bytes, const std::string& file) {
  check(bytes.size() >= kLengthBytes, file, ": is truncated: ", bytes.size(),
        " bytes, a safetensors file begins with 8 bytes of header length; restore it from a copy");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  check(length <= kMaxHeaderBytes, file, ": claims a header of ", length, " bytes, at most ",
        kMaxHeaderBytes, " allowed; not a safetensors file, or damaged");
  check(length <= bytes.size() - kLengthBytes, file,
        ": is truncated within its header: ", bytes.size() - kLengthBytes, " of ", length,
        " bytes; restore it from a copy");
  return {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length};
}

// Sorts the tensors by place and checks that they tile the data exactly.
void check_layout(std::vector<HeaderTensor>& tensors, std::uint64_t data_bytes,
                  const std::string& file) {
  for (const HeaderTensor& tensor : tensors) {
    check(tensor.begin <= tensor.end, file, ": tensor ", shown_name(tensor.name), " ends at ",
          tensor.end, ", before its begin at ", tensor.begin);
    const std::uint64_t wanted = bytes_of_shape(tensor.shape, tensor.dtype, tensor.name, file);
    check(tensor.end - tensor.begin == wanted, file, ": tensor ", shown_name(tensor.name),
          " occupies ", tensor.end - tensor.begin, " bytes, its shape and dtype need ", wanted);
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t place = 0;
  for (const HeaderTensor& tensor : tensors) {
    const bool first = &tensor == &tensors.front();
    check(!first || tensor.begin == 0, file, ": the first tensor, ", shown_name(tensor.name),
          ", begins at offset ", tensor.begin, ", expected 0");
    check(tensor.begin >= place, file, ": tensor ", shown_name(tensor.name), " at offset ",
          tensor.begin, " overlaps the one before it, which ends at ", place);
    check(tensor.begin == place, file, ": a hole of ", tensor.begin - place,
          " bytes lies before tensor ", shown_name(tensor.name));
    check(tensor.end <= data_bytes, file, ": is truncated within tensor ", shown_name(tensor.name),
          ": the data has ", data_bytes, " bytes, the tensor ends at ", tensor.end,
          "; restore it from a copy");
    place = tensor.end;
  }
  check(place == data_bytes, file, ": ", data_bytes - place,
        " trailing bytes follow the last tensor");
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  MappedFile mapping(path);
  SafetensorsFile file = parse(mapping.bytes(), path.string());
  file.mapping_ = std::move(mapping);
  return file;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view header_text = header_of(bytes, name);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_text.size());
  Header header = parse_header(header_text, name);
  check_layout(header.tensors, data.size(), name);

  SafetensorsFile file;
  file.name_ = name;
  file.metadata_ = std::move(header.metadata);
  for (HeaderTensor& tensor : header.tensors) {
    file.index_.emplace(tensor.name, file.tensors_.size());
    file.tensors_.push_back({std::move(tensor.name), tensor.dtype, std::move(tensor.shape),
                             data.subspan(tensor.begin, tensor.end - tensor.begin)});
  }
  file.has_hashes_ = std::any_of(file.metadata_.begin(), file.metadata_.end(),
                                 [](const auto& entry) { return is_integrity_key(entry.first); });
  if (file.has_hashes_) file.verify_hashes(bytes.first(kLengthBytes + header_text.size()));
  return file;
}

// `start` is everything before the data. Takes our entries out of metadata_.
void SafetensorsFile::verify_hashes(std::span<const std::byte> start) {
  const auto take = [&](const std::string& key) {
    const auto entry = metadata_.find(key);
    check(entry != metadata_.end(), name_, ": metadata key ", shown_name(key),
          " is missing; the file is damaged or was rewritten by a program that drops hashes");
    return metadata_.extract(entry).mapped();
  };
  std::string text(reinterpret_cast<const char*>(start.data()), start.size());
  const std::size_t digits = kLengthBytes + kHashedHeaderStart.size();
  check(std::string_view(text).substr(kLengthBytes).starts_with(kHashedHeaderStart), name_,
        ": the header does not begin with its hash; the file is damaged or was rewritten by "
        "another program");
  text.replace(digits, kHashDigits, kHashDigits, '0');
  const std::string found = hex(xxh3(std::as_bytes(std::span(text))));
  const std::string expected = take(std::string(kFileHashKey));
  check(found == expected, name_, ": the header is damaged: its hash is ", found, ", expected ",
        shown_name(expected), "; restore the file from a copy");
  check(take(std::string(kIntegrityKey)) == kIntegrityValue, name_, ": metadata key ",
        kIntegrityKey, " is not ", kIntegrityValue, "; written by a newer tritgrad?");
  for (const StoredTensor& tensor : tensors_) {
    const std::string hash = hex(xxh3(tensor.bytes));
    const std::string stored = take(std::string(kTensorHashPrefix) + tensor.name);
    check(hash == stored, name_, ": tensor ", shown_name(tensor.name), " is damaged: its hash is ",
          hash, ", expected ", shown_name(stored), "; restore the file from a copy");
  }
  for (const auto& [key, value] : metadata_) {
    check(!is_integrity_key(key), name_, ": metadata key ", shown_name(key),
          " belongs to no tensor");
  }
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto entry = index_.find(name);
  return entry == index_.end() ? nullptr : &tensors_[entry->second];
}

const StoredTensor& SafetensorsFile::tensor(std::string_view name) const {
  const StoredTensor* found = find(name);
  check(found != nullptr, name_, ": has no tensor ", shown_name(name));
  return *found;
}

}  // namespace tritgrad
