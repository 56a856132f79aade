// Arrays as numpy.save writes them, made by hand.
#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace tritgrad::test {

inline std::string npy_file(const std::string& dictionary, const std::string& payload,
                            char version = 1) {
  std::string header = dictionary + "\n";
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  }
  return bytes + header + payload;
}

inline std::string npy_dictionary(const std::string& descr, const std::string& shape,
                                  const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

// `values` as they lie in memory; of types of '>' the bytes of each are turned around.
template <typename T>
std::string npy_array(const std::string& descr, const std::string& shape,
                      const std::vector<T>& values, bool fortran = false) {
  std::string payload;
  for (const T& value : values) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    payload += descr[0] == '>' ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
  }
  return npy_file(npy_dictionary(descr, shape, fortran ? "True" : "False"), payload);
}

// Texts of four characters each: '<U4', '>U4' or '|S4'.
inline std::string npy_texts(const std::string& descr, const std::string& shape,
                             const std::vector<std::u32string>& texts) {
  std::string payload;
  for (std::u32string text : texts) {
    text.resize(4, U'\0');
    for (char32_t c : text) {
      const std::string bytes = {static_cast<char>(c & 255), static_cast<char>(c >> 8 & 255),
                                 static_cast<char>(c >> 16 & 255), static_cast<char>(c >> 24)};
      payload += descr[1] == 'S'   ? bytes.substr(0, 1)
                 : descr[0] == '>' ? std::string(bytes.rbegin(), bytes.rend())
                                   : bytes;
    }
  }
  return npy_file(npy_dictionary(descr, shape), payload);
}

}  // namespace tritgrad::test
