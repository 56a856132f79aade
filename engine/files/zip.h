// Archives in the format of zip, with entries that are stored or deflated.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

bool is_zip(std::string_view bytes);

class ZipArchive {
 public:
  // `bytes` must outlive the object; `where` names the source in messages. Throws Error for what is
  // no whole archive.
  ZipArchive(std::string_view bytes, std::string where);
  ~ZipArchive();
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  const std::string& where() const { return where_; }
  // Returns the names of all entries, in their order.
  const std::vector<std::string>& names() const { return names_; }
  // Returns the bytes of one, whose checksum is verified. Throws Error for an entry that is
  // damaged, encrypted or compressed in another way, and for one that is so large that it must be
  // hostile.
  std::string read(const std::string& name) const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::string where_;
  std::vector<std::string> names_;
};

struct ZipEntry {
  std::string name, bytes;
};

// Returns an archive of these entries, stored as they are and dated 1980-01-01, so that equal
// arguments make equal bytes. The comment ends the archive, in plain bytes.
std::string write_zip(std::span<const ZipEntry> entries, const std::string& comment);

}  // namespace tritgrad
