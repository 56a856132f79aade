#include "engine/files/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

// zlib counts in unsigned int; longer spans are handed over in pieces.
constexpr std::size_t kMaxPiece = std::numeric_limits<unsigned>::max();

}  // namespace

struct GzipMember::Stream : z_stream {
  ~Stream() { inflateEnd(this); }
};

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

bool is_plausible_inflation(std::uint64_t bytes, std::uint64_t compressed) {
  constexpr std::uint64_t kFree = 16 << 20;
  constexpr std::uint64_t kMaxRatio = 128;
  return bytes <= kFree || (bytes - kFree) / kMaxRatio <= compressed;
}

GzipMember::GzipMember(std::string_view bytes, const std::string& where)
    : stream_(std::make_unique<Stream>()), bytes_(bytes), where_(where) {
  constexpr int kGzipOnly = 16;
  check(inflateInit2(stream_.get(), MAX_WBITS + kGzipOnly) == Z_OK, where_,
        ": zlib cannot be started; is there enough memory?");
}

GzipMember::~GzipMember() = default;

std::size_t GzipMember::read(std::span<std::uint8_t> out) {
  std::size_t written = 0;
  while (written < out.size() && !ended_) {
    const std::size_t room = std::min(out.size() - written, kMaxPiece);
    const std::size_t offered = std::min(bytes_.size() - consumed_, kMaxPiece);
    stream_->next_out = out.data() + written;
    stream_->avail_out = static_cast<unsigned>(room);
    // zlib's C interface takes no const, but never writes to its input.
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes_.data() + consumed_));
    stream_->avail_in = static_cast<unsigned>(offered);
    const int status = inflate(stream_.get(), Z_NO_FLUSH);
    written += room - stream_->avail_out;
    consumed_ += offered - stream_->avail_in;
    ended_ = status == Z_STREAM_END;
    if (status == Z_BUF_ERROR || (status == Z_OK && offered == 0)) {
      fail(where_, ": the gzip stream ends too early; the file is truncated, fetch it again");
    }
    if (status != Z_OK && !ended_) {
      fail(where_, ": damaged gzip stream (", stream_->msg ? stream_->msg : "zlib error",
           "); fetch the file again");
    }
  }
  return written;
}

std::string gunzip(std::string_view bytes, const std::string& where) {
  constexpr std::size_t kPiece = 1 << 20;
  std::string contents;
  for (std::string_view rest = bytes; !rest.empty();) {
    check(is_gzip(rest), where, ": ", counted(std::ssize(rest), "trailing byte"),
          " after the gzip stream; fetch the file again");
    GzipMember member(rest, where);
    while (!member.ended()) {
      const std::size_t size = contents.size();
      contents.resize(size + kPiece);
      const std::size_t found =
          member.read({reinterpret_cast<std::uint8_t*>(contents.data()) + size, kPiece});
      contents.resize(size + found);
      check(is_plausible_inflation(contents.size(), bytes.size()), where, ": ", bytes.size(),
            " compressed bytes hold more than ", contents.size(),
            ", which is not plausible; unpack the file to use it anyway");
    }
    rest.remove_prefix(rest.size() - member.unread_input());
  }
  return contents;
}

}  // namespace tritgrad
