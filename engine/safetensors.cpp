#include "engine/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/atomic_file.h"
#include "engine/check.h"
#include "engine/hash.h"

namespace tritgrad {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr int kMaxDepth = 4;  // header, tensor, shape: a file that nests deeper is not one of these
constexpr const char* kTensorHashPrefix = "xxh3:";
constexpr const char* kHeaderHash = "xxh3";

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypes[] = {{DType::kU8, "U8"},   {DType::kI8, "I8"},   {DType::kU16, "U16"},
                               {DType::kBF16, "BF16"}, {DType::kF16, "F16"}, {DType::kF32, "F32"},
                               {DType::kF64, "F64"}, {DType::kI32, "I32"}, {DType::kU32, "U32"},
                               {DType::kI64, "I64"}, {DType::kU64, "U64"}};

const char* type_name(DType dtype) {
  for (const TypeName& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  fail("safetensors: element type ", static_cast<int>(dtype), " has no name");
}

// Over everything that the tensor hashes do not cover: metadata, names, types, shapes, in order.
std::string header_hash(const StringMap& metadata, const std::vector<TensorEntry>& tensors) {
  std::string text;
  const auto add = [&](const std::string& part) { text += std::to_string(part.size()) + ":" + part; };
  for (const auto& [key, value] : metadata) {
    add(key);
    add(value);
  }
  for (const TensorEntry& tensor : tensors) {
    add(tensor.name);
    add(type_name(tensor.dtype));
    for (std::int64_t extent : tensor.shape) add(std::to_string(extent));
  }
  return hex16(xxh3(std::as_bytes(std::span(text))));
}

std::string build_header(const StringMap& metadata, const std::vector<TensorEntry>& tensors) {
  StringMap complete = metadata;
  for (const TensorEntry& tensor : tensors) {
    complete[kTensorHashPrefix + tensor.name] = hex16(xxh3(tensor.bytes));
  }
  complete[kHeaderHash] = header_hash(complete, tensors);
  Json header;
  header["__metadata__"] = complete;
  std::size_t offset = 0;
  for (const TensorEntry& tensor : tensors) {
    const std::size_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", type_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

// Builds the header's JSON while refusing what nlohmann accepts and the format forbids: a key given
// twice, and nesting that only an attack needs.
class HeaderParser : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderParser(const std::string& where) : where_(where), builder_(json_, false) {}

  Json take() { return std::move(json_); }

  bool null() override { return builder_.null(); }
  bool boolean(bool v) override { return builder_.boolean(v); }
  bool number_integer(number_integer_t v) override { return builder_.number_integer(v); }
  bool number_unsigned(number_unsigned_t v) override { return builder_.number_unsigned(v); }
  bool number_float(number_float_t v, const string_t& s) override {
    return builder_.number_float(v, s);
  }
  bool string(string_t& v) override { return builder_.string(v); }
  bool binary(binary_t& v) override { return builder_.binary(v); }
  bool start_object(std::size_t n) override {
    enter();
    return builder_.start_object(n);
  }
  bool key(string_t& name) override {
    check(keys_.back().insert(name).second, where_, ": the header has the key '", printable(name),
          "' twice");
    return builder_.key(name);
  }
  bool end_object() override {
    keys_.pop_back();
    return builder_.end_object();
  }
  bool start_array(std::size_t n) override {
    enter();
    return builder_.start_array(n);
  }
  bool end_array() override {
    keys_.pop_back();
    return builder_.end_array();
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail(where_, ": the header is not valid JSON (byte ", position, ")");
  }

  static std::string printable(const std::string& name) {
    std::string text;
    for (char c : name.substr(0, 80)) text += static_cast<unsigned char>(c) < 32 ? '?' : c;
    return text;
  }

 private:
  void enter() {
    keys_.emplace_back();
    check(keys_.size() <= kMaxDepth, where_, ": the header nests deeper than ", kMaxDepth, " levels");
  }

  std::string where_;
  Json json_;
  nlohmann::detail::json_sax_dom_parser<Json> builder_;
  std::vector<std::set<std::string>> keys_;
};

DType parse_type(const Json& entry, const std::string& where) {
  const auto found = entry.find("dtype");
  check(found != entry.end() && found->is_string(), where, ": 'dtype' is missing or not a string");
  const std::string name = found->get<std::string>();
  for (const TypeName& type : kTypes) {
    if (name == type.name) return type.dtype;
  }
  fail(where, ": element type '", HeaderParser::printable(name), "' is not supported");
}

std::uint64_t unsigned_number(const Json& json, const std::string& where, const char* what) {
  check(json.is_number_unsigned(), where, ": ", what, " must be whole numbers of at least 0");
  return json.get<std::uint64_t>();
}

// Bytes of the tensor; `shape` is filled in.
std::uint64_t parse_shape(const Json& entry, DType dtype, const std::string& where,
                          std::vector<std::int64_t>& shape) {
  const auto found = entry.find("shape");
  check(found != entry.end() && found->is_array(), where, ": 'shape' is missing or not a list");
  auto bytes = static_cast<std::uint64_t>(dtype_bytes(dtype));
  for (const Json& extent : *found) {
    const std::uint64_t n = unsigned_number(extent, where, "extents in 'shape'");
    std::uint64_t product = 0;
    check(!__builtin_mul_overflow(bytes, n, &product) && product < (1ull << 62), where,
          ": the product of 'shape' overflows");
    bytes = product;
    shape.push_back(static_cast<std::int64_t>(n));
  }
  return bytes;
}

struct ParsedTensor {
  TensorEntry entry;
  std::uint64_t begin, end;
};

ParsedTensor parse_tensor(const std::string& name, const Json& entry, const std::string& file) {
  const std::string where = file + ", tensor '" + HeaderParser::printable(name) + "'";
  check(!name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
          return static_cast<unsigned char>(c) < 32 || c == 127;
        }), where, ": the name is empty or has control characters");
  check(entry.is_object(), where, ": its description is not an object");
  ParsedTensor tensor{{name, parse_type(entry, where), {}, {}}, 0, 0};
  const std::uint64_t bytes = parse_shape(entry, tensor.entry.dtype, where, tensor.entry.shape);
  const auto offsets = entry.find("data_offsets");
  check(offsets != entry.end() && offsets->is_array() && offsets->size() == 2, where,
        ": 'data_offsets' is missing or not a pair");
  tensor.begin = unsigned_number((*offsets)[0], where, "'data_offsets'");
  tensor.end = unsigned_number((*offsets)[1], where, "'data_offsets'");
  check(tensor.end >= tensor.begin && tensor.end - tensor.begin == bytes, where, ": type and shape need ",
        bytes, " bytes but 'data_offsets' are ", tensor.begin, " to ", tensor.end);
  check(entry.size() == 3, where, ": its description has keys that the format does not know");
  return tensor;
}

StringMap parse_metadata(const Json& json, const std::string& where) {
  check(json.is_object(), where, ": '__metadata__' is not an object");
  StringMap metadata;
  for (const auto& [key, value] : json.items()) {
    check(value.is_string(), where, ": metadata '", HeaderParser::printable(key), "' is not a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// The tensors must follow each other from the first byte to the last.
void check_layout(std::vector<ParsedTensor> tensors, std::uint64_t data_bytes, const std::string& where) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const ParsedTensor& a, const ParsedTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t position = 0;
  for (const ParsedTensor& tensor : tensors) {
    check(tensor.begin == position, where, ": tensor '", tensor.entry.name, "' begins at byte ",
          tensor.begin, ", expected ", position, " (tensors may neither overlap nor leave holes)");
    position = tensor.end;
  }
  check(position == data_bytes, where, ": the tensors need ", position, " bytes but the file holds ",
        data_bytes, "; it is truncated or has bytes left over");
}

void verify_hashes(StringMap& metadata, const std::vector<TensorEntry>& tensors,
                   const std::string& where) {
  const std::string expected_header = metadata.at(kHeaderHash);
  metadata.erase(kHeaderHash);
  check(header_hash(metadata, tensors) == expected_header, where,
        ": the header is damaged (its hash differs); use a backup");
  for (const TensorEntry& tensor : tensors) {
    const auto hash = metadata.find(kTensorHashPrefix + tensor.name);
    check(hash != metadata.end(), where, ": tensor '", tensor.name, "' has no hash");
    check(hash->second == hex16(xxh3(tensor.bytes)), where, ": tensor '", tensor.name,
          "' is damaged (its hash differs); use a backup");
    metadata.erase(hash);
  }
}

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  check(in.good(), "checkpoint '", path, "' cannot be read; check the path and its permissions");
  const std::streamoff size = in.tellg();
  check(size >= 0 && size < (std::streamoff{1} << 62), "checkpoint '", path, "' is not a regular file");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), size);
  check(in.good() || size == 0, "checkpoint '", path, "' cannot be read to its end");
  return bytes;
}

}  // namespace

void write_safetensors(const std::string& path, const StringMap& metadata,
                       const std::vector<TensorEntry>& tensors) {
  const std::string header = build_header(metadata, tensors);
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  AtomicFile file(path);
  file.write(length);
  file.write(header);
  for (const TensorEntry& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

SafetensorsFile SafetensorsFile::parse(std::vector<std::byte> bytes, const std::string& where) {
  check(bytes.size() >= 8, where, ": ", bytes.size(), " bytes are too few for a safetensors file");
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < 8; ++i) header_bytes |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  check(header_bytes <= kMaxHeader, where, ": the header's length is ", header_bytes,
        " bytes, more than the allowed ", kMaxHeader, "; this is no safetensors file");
  check(header_bytes <= bytes.size() - 8, where, ": the header needs ", header_bytes,
        " bytes but only ", bytes.size() - 8, " follow; the file is truncated");

  const char* begin = reinterpret_cast<const char*>(bytes.data()) + 8;
  check(header_bytes > 0 && *begin == '{', where, ": the header does not begin with '{'");
  HeaderParser parser(where);
  Json::sax_parse(begin, begin + header_bytes, &parser);
  const Json header = parser.take();

  std::vector<ParsedTensor> parsed;
  SafetensorsFile file;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      file.metadata_ = parse_metadata(entry, where);
    } else {
      parsed.push_back(parse_tensor(name, entry, where));
    }
  }
  const std::uint64_t data_bytes = bytes.size() - 8 - header_bytes;
  check_layout(parsed, data_bytes, where);
  file.bytes_ = std::move(bytes);
  const std::span<const std::byte> data = std::span(file.bytes_).subspan(8 + header_bytes);
  for (ParsedTensor& tensor : parsed) {
    tensor.entry.bytes = data.subspan(tensor.begin, tensor.end - tensor.begin);
    file.tensors_.push_back(std::move(tensor.entry));
  }
  file.has_hashes_ = file.metadata_.contains(kHeaderHash);
  if (file.has_hashes_) verify_hashes(file.metadata_, file.tensors_, where);
  return file;
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  return parse(read_file(path), "checkpoint '" + path + "'");
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  for (const TensorEntry& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace tritgrad
