// Files that are compressed by deflate, made by hand: gzip and zip.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tritgrad::test {

// `window_bits` as in zlib: MAX_WBITS + 16 for gzip, -MAX_WBITS for bare deflate.
inline std::string deflated(std::string_view text, int window_bits) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib cannot be started");
  }
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib failed");
  return out;
}

inline std::string gzip(std::string_view text) { return deflated(text, MAX_WBITS + 16); }

using ZipEntries = std::vector<std::pair<std::string, std::string>>;  // names and contents

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255);
  return text;
}

// An archive of stored or deflated entries (PKWARE's APPNOTE, 4.3.6).
inline std::string zip_file(const ZipEntries& entries, bool deflate) {
  std::string files, directory;
  for (const auto& [name, contents] : entries) {
    const std::string packed = deflate ? deflated(contents, -MAX_WBITS) : contents;
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(contents.data()),
                           static_cast<unsigned>(contents.size()));
    const std::string about = little_endian(20, 2) + little_endian(0, 2) +
                              little_endian(deflate ? 8 : 0, 2) + little_endian(0x21, 4) +
                              little_endian(crc, 4) + little_endian(packed.size(), 4) +
                              little_endian(contents.size(), 4) + little_endian(name.size(), 2);
    directory += "PK\x01\x02" + little_endian(20, 2) + about + std::string(12, '\0') +
                 little_endian(files.size(), 4) + name;
    files += "PK\x03\x04" + about + little_endian(0, 2) + name + packed;
  }
  return files + directory + "PK\x05\x06" + little_endian(0, 4) + little_endian(entries.size(), 2) +
         little_endian(entries.size(), 2) + little_endian(directory.size(), 4) +
         little_endian(files.size(), 4) + little_endian(0, 2);
}

}  // namespace tritgrad::test
