#include "engine/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "engine/check.h"

namespace tritgrad {
namespace {

// zlib counts in unsigned int; longer spans are handed over in pieces.
constexpr std::size_t kMaxPiece = std::numeric_limits<unsigned>::max();

class Inflater {
 public:
  Inflater(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {
    constexpr int kGzipOnly = 16;
    check(inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, where_,
          ": zlib cannot be started; is there enough memory?");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out` as far as the contents reach; returns the bytes written.
  std::size_t read(std::span<std::uint8_t> out) {
    std::size_t written = 0;
    while (written < out.size() && !ended_) {
      const std::size_t room = std::min(out.size() - written, kMaxPiece);
      const std::size_t offered = std::min(bytes_.size() - consumed_, kMaxPiece);
      stream_.next_out = out.data() + written;
      stream_.avail_out = static_cast<unsigned>(room);
      // zlib's C interface takes no const, but never writes to its input.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + consumed_));
      stream_.avail_in = static_cast<unsigned>(offered);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      written += room - stream_.avail_out;
      consumed_ += offered - stream_.avail_in;
      ended_ = status == Z_STREAM_END;
      if (status == Z_BUF_ERROR || (status == Z_OK && offered == 0)) {
        fail(where_, ": the gzip stream ends too early; the file is truncated, fetch it again");
      }
      if (status != Z_OK && !ended_) {
        fail(where_, ": damaged gzip stream (", stream_.msg ? stream_.msg : "zlib error",
             "); fetch the file again");
      }
    }
    return written;
  }

  std::size_t unread_input() const { return bytes_.size() - consumed_; }

 private:
  std::string_view bytes_;
  const std::string& where_;
  std::size_t consumed_ = 0;
  bool ended_ = false;
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::size_t inflate_prefix(std::string_view bytes, std::span<std::uint8_t> out,
                           const std::string& where) {
  return Inflater(bytes, where).read(out);
}

void inflate_exactly(std::string_view bytes, std::span<std::uint8_t> head,
                     std::span<std::uint8_t> body, const std::string& where) {
  Inflater inflater(bytes, where);
  const std::size_t found = inflater.read(head) + inflater.read(body);
  check(found == head.size() + body.size(), where, ": ", found,
        " bytes found after decompression, ", head.size() + body.size(),
        " promised by the header; fetch the file again");
  // Asking for one byte more makes zlib verify the checksum at the end of the member.
  std::uint8_t extra[1];
  check(inflater.read(extra) == 0, where, ": more than the ", found,
        " bytes promised by the header after decompression; fetch the file again");
  check(inflater.unread_input() == 0, where, ": ", inflater.unread_input(),
        " trailing bytes after the gzip stream; fetch the file again");
}

}  // namespace tritgrad
