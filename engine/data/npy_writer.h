// Arrays in the bytes of a .npy file, as numpy.save writes them: little-endian, in C order, format
// version 1.0 with a header that is padded to a multiple of 64 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

// `descr` is the type as NumPy spells it ("<f4"). No extents: the array is a single number. Throws
// Error for a payload that has not the bytes that `element_bytes` and the extents demand.
std::string write_npy(std::string_view descr, std::int64_t element_bytes,
                      const std::vector<std::int64_t>& extents, std::string_view payload);

// Arrays of numbers: "<f4", "<f8", "|i1", "|u1", "<i8".
std::string write_npy(const std::vector<std::int64_t>& extents, std::span<const float> numbers);
std::string write_npy(const std::vector<std::int64_t>& extents, std::span<const double> numbers);
std::string write_npy(const std::vector<std::int64_t>& extents,
                      std::span<const std::int8_t> numbers);
std::string write_npy(const std::vector<std::int64_t>& extents,
                      std::span<const std::uint8_t> numbers);
std::string write_npy(const std::vector<std::int64_t>& extents,
                      std::span<const std::int64_t> numbers);
// A single truth ("|b1").
std::string write_npy_truth(bool truth);
// Texts in UTF-8 as an array of one axis, or a single one; in the file they are UTF-32 ("<U12").
// Throws Error for what is no UTF-8.
std::string write_npy_texts(const std::vector<std::string>& texts);
std::string write_npy_text(const std::string& text);

}  // namespace tritgrad
