#include "models/export/gguf_file.h"

#include <bit>
#include <limits>

#include "engine/check.h"

namespace tritgrad {
namespace {

constexpr std::uint32_t kVersion = 3;
// Types of values.
constexpr std::uint32_t kU32 = 4, kI32 = 5, kFloat = 6, kBool = 7, kText = 8, kArray = 9;

void append_u32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 255u);
}
void append_u64(std::string& out, std::uint64_t value) {
  append_u32(out, static_cast<std::uint32_t>(value));
  append_u32(out, static_cast<std::uint32_t>(value >> 32));
}
void append_text(std::string& out, const std::string& text) {
  append_u64(out, text.size());
  out += text;
}

void pad(std::string& out) {
  out.resize((out.size() + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment, '\0');
}

}  // namespace

void GgufWriter::begin_key(const std::string& key, std::uint32_t type) {
  ++keys_;
  append_text(metadata_, key);
  append_u32(metadata_, type);
}

void GgufWriter::begin_array(const std::string& key, std::uint32_t type, std::size_t count) {
  begin_key(key, kArray);
  append_u32(metadata_, type);
  append_u64(metadata_, count);
}

void GgufWriter::add_u32(const std::string& key, std::int64_t value) {
  check(value >= 0 && value <= std::numeric_limits<std::uint32_t>::max(), "export: ", key, " is ",
        value, ", which 32 bits cannot hold; train a model of smaller sizes");
  begin_key(key, kU32);
  append_u32(metadata_, static_cast<std::uint32_t>(value));
}

void GgufWriter::add_f32(const std::string& key, float value) {
  begin_key(key, kFloat);
  append_u32(metadata_, std::bit_cast<std::uint32_t>(value));
}

void GgufWriter::add_bool(const std::string& key, bool value) {
  begin_key(key, kBool);
  metadata_ += value ? '\1' : '\0';
}

void GgufWriter::add_text(const std::string& key, const std::string& value) {
  begin_key(key, kText);
  append_text(metadata_, value);
}

void GgufWriter::add_texts(const std::string& key, std::span<const std::string> values) {
  begin_array(key, kText, values.size());
  for (const std::string& value : values) append_text(metadata_, value);
}

void GgufWriter::add_i32s(const std::string& key, std::span<const std::int32_t> values) {
  begin_array(key, kI32, values.size());
  for (const std::int32_t value : values) append_u32(metadata_, static_cast<std::uint32_t>(value));
}

void GgufWriter::add_f32s(const std::string& key, std::span<const float> values) {
  begin_array(key, kFloat, values.size());
  for (const float value : values) append_u32(metadata_, std::bit_cast<std::uint32_t>(value));
}

void GgufWriter::add_tensor(const std::string& name, std::int64_t rows, std::int64_t row_length,
                            GgufType type, const std::string& bytes) {
  ++tensors_;
  append_text(infos_, name);
  append_u32(infos_, rows == 0 ? 1 : 2);
  append_u64(infos_, static_cast<std::uint64_t>(row_length));
  if (rows != 0) append_u64(infos_, static_cast<std::uint64_t>(rows));
  append_u32(infos_, gguf_traits(type).id);
  append_u64(infos_, data_.size());
  data_ += bytes;
  pad(data_);
}

std::string GgufWriter::bytes() const {
  std::string file = "GGUF";
  append_u32(file, kVersion);
  append_u64(file, tensors_);
  append_u64(file, keys_);
  file += metadata_;
  file += infos_;
  pad(file);
  file += data_;
  return file;
}

}  // namespace tritgrad
