#include "engine/data/npy_writer.h"

#include <utf8cpp/utf8.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes are written as they lie");

constexpr std::size_t kHeaderMultiple = 64;

template <typename Number>
std::string npy_of_numbers(std::string_view descr, const std::vector<std::int64_t>& extents,
                           std::span<const Number> numbers) {
  return write_npy(descr, sizeof(Number), extents,
                   {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()});
}

std::string npy_of_texts(const std::vector<std::int64_t>& extents,
                         std::span<const std::string> texts) {
  std::vector<std::u32string> rows;
  std::size_t longest = 1;  // readers refuse types of no bytes
  for (const std::string& text : texts) {
    check(is_utf8(text), "npy: the text '", printable(text), "' is not UTF-8");
    std::u32string& row = rows.emplace_back();
    utf8::utf8to32(text.begin(), text.end(), std::back_inserter(row));
    longest = std::max(longest, row.size());
  }
  std::string payload;
  for (std::u32string& row : rows) {
    row.resize(longest, U'\0');
    payload.append(reinterpret_cast<const char*>(row.data()), longest * sizeof(char32_t));
  }
  return write_npy(concat("<U", longest), static_cast<std::int64_t>(longest * sizeof(char32_t)),
                   extents, payload);
}

}  // namespace

std::string write_npy(std::string_view descr, std::int64_t element_bytes,
                      const std::vector<std::int64_t>& extents, std::string_view payload) {
  std::int64_t expected = element_bytes;
  std::string shape;
  for (const std::int64_t extent : extents) {
    expected *= extent;
    shape += concat(shape.empty() ? "" : " ", extent, ",");
  }
  check(std::ssize(payload) == expected, "npy: ", payload.size(), " bytes of values found, ",
        expected, " expected from the shape");
  std::string header =
      concat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr std::size_t kBefore = 10;  // magic, version, length
  const std::size_t end = kBefore + header.size() + 1;
  header.append((kHeaderMultiple - end % kHeaderMultiple) % kHeaderMultiple, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes +=
      {'\1', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  return bytes + header + std::string(payload);
}

std::string write_npy(const std::vector<std::int64_t>& extents, std::span<const float> numbers) {
  return npy_of_numbers("<f4", extents, numbers);
}
std::string write_npy(const std::vector<std::int64_t>& extents, std::span<const double> numbers) {
  return npy_of_numbers("<f8", extents, numbers);
}
std::string write_npy(const std::vector<std::int64_t>& extents,
                      std::span<const std::int8_t> numbers) {
  return npy_of_numbers("|i1", extents, numbers);
}
std::string write_npy(const std::vector<std::int64_t>& extents,
                      std::span<const std::uint8_t> numbers) {
  return npy_of_numbers("|u1", extents, numbers);
}
std::string write_npy(const std::vector<std::int64_t>& extents,
                      std::span<const std::int64_t> numbers) {
  return npy_of_numbers("<i8", extents, numbers);
}
std::string write_npy_truth(bool truth) {
  return write_npy("|b1", 1, {}, std::string(1, truth ? '\1' : '\0'));
}
std::string write_npy_texts(const std::vector<std::string>& texts) {
  return npy_of_texts({std::ssize(texts)}, texts);
}
std::string write_npy_text(const std::string& text) { return npy_of_texts({}, {&text, 1}); }

}  // namespace tritgrad
