// Arrays as numpy.save writes them.
//
// Supported: format versions 1 to 3, little- and big-endian, in C and in Fortran (column) order;
// floats of 2, 4 or 8 bytes, integers of 1, 2, 4 or 8 bytes, bool, texts. Objects and records are
// refused by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

// What the elements of an array are.
struct NpyElement {
  std::int64_t bytes = 0;
  bool is_byte = false;                              // uint8 or bool
  bool fits_fp32 = true;                             // every number of the type is one of fp32
  bool is_native_fp32 = false;                       // the numbers are floats of this machine
  double (*number)(const char* at) = nullptr;        // null for texts
  std::string (*integer)(const char* at) = nullptr;  // all digits; null for floats and texts
  enum class Text { kNone, kBytes, kUtf32, kUtf32BigEndian };
  Text text = Text::kNone;
};

// A checked view of one array: it has elements, and the payload has exactly the bytes that type and
// extents demand. Element i is the one at that place in the payload.
struct NpyArray {
  std::vector<std::int64_t> extents;
  std::string_view payload;
  NpyElement element;
  bool fortran_order = false;  // the first axis is that of neighbours

  std::int64_t size() const;
  std::string shape_text() const;  // "60 x 4"
  bool holds_texts() const { return element.text != NpyElement::Text::kNone; }

  // How far the same element of the next row lies: rows are the first axis.
  std::int64_t row_stride() const;
  // Where the elements of the first row lie, in C order.
  std::vector<std::int64_t> places_in_row() const;

  double number(std::int64_t i) const { return element.number(payload.data() + i * element.bytes); }
  std::string integer(std::int64_t i) const {
    return element.integer(payload.data() + i * element.bytes);
  }
  // As UTF-8; nothing for what is no Unicode.
  std::optional<std::string> text(std::int64_t i) const;
};

// `where` names the source in messages.
NpyArray parse_npy(std::string_view bytes, const std::string& where);

// Views elements that lie in C order, whose type is `descr` as NumPy spells it ("<f4").
NpyArray view_npy(std::vector<std::int64_t> extents, std::string_view payload,
                  const std::string& descr, const std::string& where);

}  // namespace tritgrad
