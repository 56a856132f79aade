#include "engine/data/npy.h"

#include <utf8cpp/utf8.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

// ---- The header of a .npy file: magic, version, a Python dictionary literal of three keys ----

struct NpyHeader {
  std::string descr;  // type, as in '<f4'
  bool fortran_order = false;
  std::vector<std::int64_t> extents;
  std::size_t bytes = 0;  // where the values begin
};

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
            ": an array of records found, numbers expected; save numpy.array(array.tolist())");
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

// ---- Elements ----

static_assert(std::endian::native == std::endian::little, "bytes are swapped for big-endian types");

struct Float16 {
  std::uint16_t bits;
  // IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction.
  explicit operator double() const {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                       : exponent != 31 ? std::ldexp(fraction + 1024, exponent - 25)
                       : fraction == 0  ? std::numeric_limits<double>::infinity()
                                        : std::numeric_limits<double>::quiet_NaN();
    return bits >> 15 != 0 ? -magnitude : magnitude;
  }
};

template <typename T, bool kSwap>
T read_element(const char* at) {
  std::array<char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), at, sizeof(T));
  if (kSwap) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

template <typename T, bool kSwap>
double number_at(const char* at) {
  return static_cast<double>(read_element<T, kSwap>(at));
}

template <typename T, bool kSwap>
std::string integer_text(const char* at) {
  return std::to_string(read_element<T, kSwap>(at));
}

template <typename T, bool kSwap, bool kInteger>
constexpr NpyElement number_type(bool fits_fp32) {
  NpyElement element{sizeof(T),           std::is_same_v<T, std::uint8_t>,
                     fits_fp32,           std::is_same_v<T, float> && !kSwap,
                     number_at<T, kSwap>, nullptr};
  if constexpr (kInteger) element.integer = integer_text<T, kSwap>;
  return element;
}

struct NamedType {
  std::string_view name;  // as NumPy spells it, without the order of bytes
  NpyElement little, big;
};

template <typename T, bool kInteger>
constexpr NamedType type_named(std::string_view name, bool fits_fp32) {
  return {name, number_type<T, false, kInteger>(fits_fp32),
          number_type<T, true, kInteger>(fits_fp32)};
}

constexpr NamedType kTypes[] = {
    type_named<Float16, false>("f2", true),      type_named<float, false>("f4", true),
    type_named<double, false>("f8", false),      type_named<std::uint8_t, true>("b1", true),
    type_named<std::uint8_t, true>("u1", true),  type_named<std::int8_t, true>("i1", true),
    type_named<std::int16_t, true>("i2", true),  type_named<std::uint16_t, true>("u2", true),
    type_named<std::int32_t, true>("i4", false), type_named<std::uint32_t, true>("u4", false),
    type_named<std::int64_t, true>("i8", false), type_named<std::uint64_t, true>("u8", false),
};

// Texts of up to so many characters: 'U12' has four bytes for each, 'S12' one.
std::optional<NpyElement> text_type(std::string_view name, bool big_endian) {
  if (name.size() < 2 || (name[0] != 'U' && name[0] != 'S')) return std::nullopt;
  std::int64_t length = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + 1, end, length);
  constexpr std::int64_t kLongest = 1 << 20;
  if (stop != end || error != std::errc() || length < 0 || length > kLongest) return std::nullopt;
  NpyElement element;
  element.text = name[0] == 'S' ? NpyElement::Text::kBytes
                 : big_endian   ? NpyElement::Text::kUtf32BigEndian
                                : NpyElement::Text::kUtf32;
  element.bytes = name[0] == 'S' ? length : 4 * length;
  return element;
}

NpyElement find_type(const std::string& descr, const std::string& where) {
  const bool big_endian = descr.starts_with('>');
  const bool has_order = big_endian || descr.starts_with('<') || descr.starts_with('|');
  const std::string_view name = std::string_view(descr).substr(has_order ? 1 : 0);
  for (const NamedType& type : kTypes) {
    if (name == type.name) return big_endian ? type.big : type.little;
  }
  if (const std::optional<NpyElement> text = text_type(name, big_endian)) return *text;
  check(!name.starts_with('O'), where,
        ": an array of Python objects found, numbers expected; save array.astype('float32'), or "
        "labels that are words as array.astype(str)");
  fail(where, ": type '", descr.substr(0, 20),
       "' found, a float of 2, 4 or 8 bytes or an integer expected; save array.astype('float32')");
}

// The characters of a text of fixed length, which ends in NULs; nothing if they are no Unicode.
std::optional<std::string> decoded_text(const char* at, const NpyElement& element) {
  if (element.text == NpyElement::Text::kBytes) {
    std::string_view bytes(at, static_cast<std::size_t>(element.bytes));
    bytes = bytes.substr(0, bytes.find_last_not_of('\0') + 1);
    if (!is_utf8(bytes)) return std::nullopt;
    return std::string(bytes);
  }
  const bool swap = element.text == NpyElement::Text::kUtf32BigEndian;
  std::u32string characters;
  for (std::int64_t i = 0; i < element.bytes; i += 4) {
    characters +=
        swap ? read_element<char32_t, true>(at + i) : read_element<char32_t, false>(at + i);
  }
  characters.resize(characters.find_last_not_of(U'\0') + 1);
  std::string text;
  try {
    utf8::utf32to8(characters.begin(), characters.end(), std::back_inserter(text));
  } catch (const utf8::exception&) {
    return std::nullopt;
  }
  return text;
}

}  // namespace

std::int64_t NpyArray::size() const {
  std::int64_t product = 1;
  for (std::int64_t extent : extents) product *= extent;
  return product;
}

std::string NpyArray::shape_text() const {
  std::string text;
  for (std::int64_t extent : extents) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text.empty() ? "of one number" : text;
}

std::int64_t NpyArray::row_stride() const {
  return fortran_order || extents.empty() ? 1 : size() / extents[0];
}

std::vector<std::int64_t> NpyArray::places_in_row() const {
  std::vector<std::int64_t> places{0};
  std::int64_t stride = fortran_order ? extents[0] : row_stride();
  for (std::size_t axis = 1; axis < extents.size(); ++axis) {
    if (!fortran_order) stride /= extents[axis];
    std::vector<std::int64_t> longer;
    longer.reserve(places.size() * static_cast<std::size_t>(extents[axis]));
    for (std::int64_t place : places) {
      for (std::int64_t i = 0; i < extents[axis]; ++i) longer.push_back(place + i * stride);
    }
    places = std::move(longer);
    if (fortran_order) stride *= extents[axis];
  }
  return places;
}

std::optional<std::string> NpyArray::text(std::int64_t i) const {
  return decoded_text(payload.data() + i * element.bytes, element);
}

namespace {

// Throws Error unless the payload is what type and extents demand.
void check_payload(const NpyArray& array, const std::string& where) {
  const bool empty = std::count(array.extents.begin(), array.extents.end(), 0) > 0;
  check(!empty, where, ": the array is empty, its shape is ", array.shape_text(),
        "; save one that has rows, and features or labels in them");
  check(array.element.bytes > 0, where,
        ": every text of the array is empty; save the array that holds the labels");
  const auto payload = static_cast<std::int64_t>(array.payload.size());
  std::int64_t expected = array.element.bytes;
  for (std::int64_t extent : array.extents) {
    check(extent <= payload / expected, where, ": ", payload,
          " bytes of values found, fewer than the shape needs; the file is truncated");
    expected *= extent;
  }
  check(payload == expected, where, ": ", payload, " bytes of values found, ", expected,
        " expected from the shape; ", payload < expected ? "the file is truncated" : "bytes trail");
}

}  // namespace

NpyArray parse_npy(std::string_view bytes, const std::string& where) {
  const NpyHeader header = parse_npy_header(bytes, where);
  NpyArray array{header.extents, bytes.substr(header.bytes), find_type(header.descr, where),
                 // One axis has the same layout in both orders.
                 header.fortran_order && header.extents.size() > 1};
  check_payload(array, where);
  return array;
}

NpyArray view_npy(std::vector<std::int64_t> extents, std::string_view payload,
                  const std::string& descr, const std::string& where) {
  NpyArray array{std::move(extents), payload, find_type(descr, where)};
  check_payload(array, where);
  return array;
}

}  // namespace tritgrad
