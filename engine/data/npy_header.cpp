#include "engine/data/npy_header.h"

#include <charconv>

#include "engine/check.h"

namespace tritgrad {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxAxes = 32;  // as in NumPy

// Reads the literals that numpy.save writes: quoted strings, True and False, tuples of integers.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    check(accept(token), where_, ": bad .npy header, ", token, " expected at character ", position_,
          "; write the file with numpy.save");
  }

  std::string string() {
    const char* quote = accept("\"") ? "\"" : "'";
    if (*quote == '\'') expect(quote);
    const std::size_t end = text_.find(*quote, position_);
    check(end != std::string_view::npos, where_,
          ": bad .npy header, a string is never closed; write the file with numpy.save");
    const std::string result(text_.substr(position_, end - position_));
    position_ = end + 1;
    return result;
  }

  bool boolean() {
    if (accept("True")) return true;
    expect("False");
    return false;
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> numbers;
    expect("(");
    while (!accept(")")) {
      check(numbers.size() < kMaxAxes, where_, ": bad .npy header, more than ", kMaxAxes, " axes");
      numbers.push_back(number());
      if (!accept(",")) {
        expect(")");
        break;
      }
    }
    return numbers;
  }

  bool at_end() {
    skip_blanks();
    return position_ == text_.size();
  }

 private:
  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) {
      ++position_;
    }
  }

  std::int64_t number() {
    skip_blanks();
    std::int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    check(error == std::errc() && value >= 0, where_,
          ": bad .npy header, the shape must hold integers from 0 to 2^63 - 1");
    position_ += static_cast<std::size_t>(stop - begin);
    return value;
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t position_ = 0;
};

void parse_dictionary(std::string_view text, const std::string& where, NpyHeader& header) {
  LiteralReader reader(text, where);
  bool has_descr = false, has_order = false, has_shape = false;
  reader.expect("{");
  while (!reader.accept("}")) {
    const std::string key = reader.string();
    bool* seen = key == "descr"           ? &has_descr
                 : key == "fortran_order" ? &has_order
                 : key == "shape"         ? &has_shape
                                          : nullptr;
    check(seen != nullptr && !*seen, where, ": bad .npy header, key '", key.substr(0, 20),
          "' is unknown or repeated; write the file with numpy.save");
    *seen = true;
    reader.expect(":");
    if (key == "shape") {
      header.extents = reader.tuple();
    } else if (key == "fortran_order") {
      header.fortran_order = reader.boolean();
    } else {
      check(!reader.accept("["), where,
            ": an array of records found, numbers expected; save one plain array");
      header.descr = reader.string();
    }
    if (!reader.accept(",")) {
      reader.expect("}");
      break;
    }
  }
  check(has_descr && has_order && has_shape, where,
        ": bad .npy header, descr, fortran_order and shape are all needed");
  check(reader.at_end(), where, ": bad .npy header, text follows the dictionary");
}

}  // namespace

NpyHeader parse_npy_header(std::string_view bytes, const std::string& where) {
  check(bytes.starts_with(kMagic), where,
        ": this is not a .npy file (its first bytes are not \\x93NUMPY); write it with numpy.save");
  const std::size_t version_at = kMagic.size();
  check(bytes.size() > version_at + 2, where, ": the file ends in its header; it is truncated");
  const auto byte = [&](std::size_t i) {
    return std::size_t{static_cast<unsigned char>(bytes[version_at + i])};
  };
  check(byte(0) >= 1 && byte(0) <= 3, where, ": .npy format version ", byte(0),
        " found, 1 to 3 supported; write the file with numpy.save");
  const std::size_t length_bytes = byte(0) == 1 ? 2 : 4;
  const std::size_t begin = version_at + 2 + length_bytes;
  check(bytes.size() >= begin, where, ": the file ends in its header; it is truncated");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(2 + i) << (8 * i);
  check(length <= bytes.size() - begin, where, ": a header of ", length, " bytes is declared, ",
        bytes.size() - begin, " follow; the file is truncated");
  NpyHeader header;
  header.bytes = begin + length;
  parse_dictionary(bytes.substr(begin, length), where, header);
  return header;
}

}  // namespace tritgrad
