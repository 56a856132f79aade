#include "engine/files/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "engine/check.h"
#include "engine/files/atomic_file.h"
#include "engine/files/hash.h"

namespace tritgrad {
namespace {

// The format's own limit.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kFileHashKey = "tritgrad.xxh3";
constexpr std::string_view kTensorHashPrefix = "tritgrad.xxh3:";
constexpr std::string_view kIntegrityKey = "tritgrad.integrity";
constexpr std::string_view kIntegrityValue = "xxh3";
// The beginning of a header with hashes; the 16 digits of the file's hash follow.
constexpr std::string_view kHashedHeaderStart = R"({"__metadata__":{"tritgrad.xxh3":")";
constexpr std::size_t kHashDigits = 16;

// The header's entry of one array, whose bytes are found later.
struct HeaderEntry {
  StoredTensor tensor;
  std::uint64_t begin = 0;  // offsets from the end of the header
  std::uint64_t end = 0;
};

struct Header {
  std::vector<HeaderEntry> entries;  // in the header's order
  Metadata metadata;
};

constexpr std::size_t kLongestShownName = 80;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

// The mistake that nlohmann-json found, without its own wrapping and the text it had read, which
// may be most of the file: "[...] parse error at ...: while parsing value - REASON; last read:
// ...".
std::string reason_of(std::string_view what) {
  const std::size_t dash = what.find(" - ");
  if (dash == std::string_view::npos) return "a number out of range";
  const std::string_view rest = what.substr(dash + 3);
  return std::string(rest.substr(0, std::min(rest.find(';'), std::size_t{100})));
}

// Whether a metadata key is one of ours.
bool is_integrity_key(std::string_view key) {
  return key.starts_with(kFileHashKey) || key.starts_with(kIntegrityKey);
}

// A name as it may be shown: in quotes, unprintable bytes replaced, at most about 80 bytes.
std::string shown_name(std::string_view name) {
  std::size_t length = std::min(name.size(), kLongestShownName);
  // Not in the middle of a UTF-8 sequence.
  while (length < name.size() && length > 0 && (name[length] & 0xc0) == 0x80) --length;
  std::string text(name.substr(0, length));
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return "'" + text + (length < name.size() ? "...'" : "'");
}

// Throws Error, beginning with `file`, for a name no array may have.
void check_tensor_name(std::string_view name, const std::string& file) {
  check(!name.empty(), file, ": a tensor has an empty name");
  check(name != kMetadataKey, file, ": no tensor may be named ", kMetadataKey);
  check(std::none_of(name.begin(), name.end(), is_control), file, ": the tensor name ",
        shown_name(name), " holds a control character");
}

// Bytes of an array; throws Error when the product does not fit 64 bits.
std::uint64_t bytes_of_shape(const StoredTensor& tensor, const std::string& file) {
  std::uint64_t bytes = dtype_bytes(tensor.dtype);
  bool overflow = false;
  for (const std::uint64_t extent : tensor.shape) {
    overflow = __builtin_mul_overflow(bytes, extent, &bytes) || overflow;
  }
  check(!overflow, file, ": the shape of tensor ", shown_name(tensor.name),
        " has more than 2^64 bytes");
  return bytes;
}

// Receives the JSON events of a header, which has exactly this form and no other nesting:
//   { "__metadata__": {string: string}, name: {"dtype": s, "shape": [u], "data_offsets": [u, u]} }
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderHandler(const std::string& file, Header& header) : file_(file), header_(header) {}

  bool null() override { refuse_value("null"); }
  bool boolean(bool) override { refuse_value("a boolean"); }
  bool binary(binary_t&) override { refuse_value("binary data"); }

  bool number_integer(number_integer_t value) override {
    if (!in_array()) refuse_value("a number");
    fail(file_, ": ", where(), " holds the negative number ", value);
  }
  bool number_float(number_float_t, const string_t& text) override {
    if (!in_array()) refuse_value("a number");
    fail(file_, ": ", where(), " holds ", shown_name(text), ", expected a whole number below 2^64");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      entry_.tensor.shape.push_back(value);
    } else if (place_ == Place::kOffsets) {
      check(offsets_.size() < 2, file_, ": ", where(), " has more than two numbers");
      offsets_.push_back(value);
    } else {
      refuse_value("a number");
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      const bool is_new = header_.metadata.emplace(key_, value).second;
      check(is_new, file_, ": metadata key ", shown_name(key_), " appears twice");
    } else if (place_ == Place::kTensor && key_ == "dtype") {
      dtype_ = find_dtype(value);
      check(dtype_.has_value(), file_, ": tensor ", shown_name(entry_.tensor.name),
            " has the unknown dtype ", shown_name(value));
    } else {
      refuse_value("a string");
    }
    return true;
  }

  bool key(string_t& value) override {
    key_ = value;
    if (place_ == Place::kTensor) {
      const bool known = key_ == "dtype" || key_ == "shape" || key_ == "data_offsets";
      check(known, file_, ": tensor ", shown_name(entry_.tensor.name), " has the unknown field ",
            shown_name(key_));
      check(fields_.insert(key_).second, file_, ": tensor ", shown_name(entry_.tensor.name),
            " has the field ", shown_name(key_), " twice");
    } else if (place_ == Place::kHeader) {
      check(names_.insert(key_).second, file_, ": the header has ", shown_name(key_), " twice");
      if (key_ != kMetadataKey) check_tensor_name(key_, file_);
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kHeader;
    } else if (place_ == Place::kHeader && key_ == kMetadataKey) {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kHeader) {
      place_ = Place::kTensor;
      entry_ = HeaderEntry{};
      entry_.tensor.name = key_;
      dtype_.reset();
      offsets_.clear();
      fields_.clear();
    } else {
      refuse_value("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        check(fields_.contains(field), file_, ": tensor ", shown_name(entry_.tensor.name),
              " has no ", field);
      }
      entry_.tensor.dtype = *dtype_;
      entry_.begin = offsets_[0];
      entry_.end = offsets_[1];
      header_.entries.push_back(std::move(entry_));
    }
    place_ = place_ == Place::kHeader ? Place::kOutside : Place::kHeader;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") refuse_value("an array");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    check(place_ == Place::kShape || offsets_.size() == 2, file_, ": ", where(), " has ",
          offsets_.size(), " numbers, expected two");
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    fail(file_, ": the header is not valid JSON at its byte ", position, ": ",
         reason_of(error.what()));
  }

 private:
  enum class Place { kOutside, kHeader, kMetadata, kTensor, kShape, kOffsets };

  bool in_array() const { return place_ == Place::kShape || place_ == Place::kOffsets; }

  // The value being read.
  std::string where() const {
    switch (place_) {
      case Place::kOutside:
        return "the header";
      case Place::kHeader:
        return key_ == kMetadataKey ? "__metadata__" : "tensor " + shown_name(key_);
      case Place::kMetadata:
        return "metadata key " + shown_name(key_);
      default:
        return "the " + key_ + " of tensor " + shown_name(entry_.tensor.name);
    }
  }

  std::string_view expected() const {
    switch (place_) {
      case Place::kOutside:
      case Place::kHeader:
        return "an object";
      case Place::kMetadata:
        return "a string";
      case Place::kTensor:
        return key_ == "dtype" ? "a string" : "an array of numbers";
      default:
        return "whole numbers only";
    }
  }

  [[noreturn]] void refuse_value(std::string_view found) const {
    fail(file_, ": ", where(), " holds ", found, ", expected ", expected());
  }

  const std::string& file_;
  Header& header_;
  Place place_ = Place::kOutside;
  std::string key_;
  std::unordered_set<std::string> names_;
  // The tensor being read.
  HeaderEntry entry_;
  std::optional<Dtype> dtype_;
  std::vector<std::uint64_t> offsets_;
  std::unordered_set<std::string> fields_;
};

// Throws Error, beginning with `file`, unless the text is exactly a header: right kinds of values,
// nothing missing, unknown, twice or too deep. The places of the arrays are not looked at.
Header parse_header(std::string_view text, const std::string& file) {
  check(text.starts_with('{'), file, ": the header does not begin with '{'");
  Header header;
  HeaderHandler handler(file, header);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return header;
}

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
        kMaxHeaderBytes, " allowed");
  check(length <= bytes.size() - kLengthBytes, file,
        ": is truncated within its header: ", bytes.size() - kLengthBytes, " of ", length,
        " bytes; restore it from a copy");
  return {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length};
}

// Sorts the tensors by place and checks that they fill the data exactly.
void check_layout(std::vector<HeaderEntry>& entries, std::uint64_t data_bytes,
                  const std::string& file) {
  for (const HeaderEntry& entry : entries) {
    check(entry.begin <= entry.end, file, ": tensor ", shown_name(entry.tensor.name), " ends at ",
          entry.end, ", before its begin at ", entry.begin);
    const std::uint64_t wanted = bytes_of_shape(entry.tensor, file);
    check(entry.end - entry.begin == wanted, file, ": tensor ", shown_name(entry.tensor.name),
          " occupies ", entry.end - entry.begin, " bytes, its shape and dtype need ", wanted);
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t place = 0;
  for (const HeaderEntry& entry : entries) {
    const bool first = &entry == &entries.front();
    check(!first || entry.begin == 0, file, ": the first tensor, ", shown_name(entry.tensor.name),
          ", begins at offset ", entry.begin, ", expected 0");
    check(entry.begin >= place, file, ": tensor ", shown_name(entry.tensor.name), " at offset ",
          entry.begin, " overlaps the one before it, which ends at ", place);
    check(entry.begin == place, file, ": a hole of ", entry.begin - place,
          " bytes lies before tensor ", shown_name(entry.tensor.name));
    check(entry.end <= data_bytes, file, ": is truncated within tensor ",
          shown_name(entry.tensor.name), ": the data has ", data_bytes,
          " bytes, the tensor ends at ", entry.end, "; restore it from a copy");
    place = entry.end;
  }
  check(place == data_bytes, file, ": ", data_bytes - place,
        " trailing bytes follow the last tensor");
}

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
    const std::uint64_t wanted = bytes_of_shape(tensor, file);
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
  check_layout(header.entries, data.size(), name);

  SafetensorsFile file;
  file.name_ = name;
  file.bytes_ = bytes;
  file.metadata_ = std::move(header.metadata);
  for (HeaderEntry& entry : header.entries) {
    entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    file.index_.emplace(entry.tensor.name, file.tensors_.size());
    file.tensors_.push_back(std::move(entry.tensor));
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
        shown_name(expected));
  check(take(std::string(kIntegrityKey)) == kIntegrityValue, name_, ": metadata key ",
        kIntegrityKey, " is not ", kIntegrityValue, "; written by a newer tritgrad?");
  for (const StoredTensor& tensor : tensors_) {
    const std::string hash = hex(xxh3(tensor.bytes));
    const std::string stored = take(std::string(kTensorHashPrefix) + tensor.name);
    check(hash == stored, name_, ": tensor ", shown_name(tensor.name), " is damaged: its hash is ",
          hash, ", expected ", shown_name(stored));
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

void write_safetensors(const ByteSink& write, std::span<const StoredTensor> tensors,
                       const Metadata& metadata, const std::string& name) {
  check_arguments(tensors, metadata, name);
  const std::vector<const StoredTensor*> ordered = in_file_order(tensors);
  const std::string start = file_start(ordered, metadata, name);
  write(std::as_bytes(std::span(start)));
  for (const StoredTensor* tensor : ordered) tensor->order.for_each_piece(tensor->bytes, write);
}

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata) {
  AtomicFile file(path);
  write_safetensors([&](std::span<const std::byte> piece) { file.write(piece); }, tensors, metadata,
                    file.path().string());
  file.commit();
}

std::string safetensors_bytes(std::span<const StoredTensor> tensors, const Metadata& metadata,
                              const std::string& name) {
  std::string bytes;
  write_safetensors(
      [&](std::span<const std::byte> piece) {
        bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      },
      tensors, metadata, name);
  return bytes;
}

}  // namespace tritgrad
