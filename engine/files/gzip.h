// Compression by gzip, read into memory: no small file can fill the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tritgrad {

bool is_gzip(std::string_view bytes);

// Whether so many bytes may come from so few. Deflate shrinks zeros a thousandfold, so a hostile
// file of megabytes may promise gigabytes; tables and images shrink by less than a hundred. Small
// contents may be anything, such as sorted labels.
bool is_plausible_inflation(std::uint64_t bytes, std::uint64_t compressed);

// Returns the contents of all members, one behind the other. Throws Error that begins with `where`
// for a stream that is damaged, cut short, or larger than is plausible, and for bytes that follow
// it.
std::string gunzip(std::string_view bytes, const std::string& where);

// One member, piece by piece.
class GzipMember {
 public:
  // `bytes` and `where` must outlive the object.
  GzipMember(std::string_view bytes, const std::string& where);
  ~GzipMember();
  GzipMember(const GzipMember&) = delete;
  GzipMember& operator=(const GzipMember&) = delete;

  // Fills `out` as far as the contents reach; returns the bytes written. At their end the checksum
  // is verified. Throws Error for a stream that is damaged or ends too early.
  std::size_t read(std::span<std::uint8_t> out);

  bool ended() const { return ended_; }
  std::size_t unread_input() const { return bytes_.size() - consumed_; }

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  std::string_view bytes_;
  const std::string& where_;
  std::size_t consumed_ = 0;
  bool ended_ = false;
};

}  // namespace tritgrad
