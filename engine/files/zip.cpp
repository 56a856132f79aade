#include "engine/files/zip.h"

#include <zip.h>

#include <cstdint>
#include <utility>

#include "engine/check.h"
#include "engine/files/gzip.h"

namespace tritgrad {

struct ZipArchive::Handle {
  zip_t* archive = nullptr;
  ~Handle() {
    if (archive != nullptr) zip_discard(archive);
  }
};

bool is_zip(std::string_view bytes) { return bytes.starts_with("PK\x03\x04"); }

ZipArchive::ZipArchive(std::string_view bytes, std::string where)
    : handle_(std::make_unique<Handle>()), where_(std::move(where)) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source != nullptr) {
    handle_->archive = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (handle_->archive == nullptr) zip_source_free(source);
  }
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  check(handle_->archive != nullptr, where_, ": this is no whole zip archive (", reason,
        "); write the file again");
  const zip_int64_t entries = zip_get_num_entries(handle_->archive, 0);
  for (zip_int64_t i = 0; i < entries; ++i) {
    const char* name = zip_get_name(handle_->archive, static_cast<zip_uint64_t>(i), 0);
    names_.emplace_back(name == nullptr ? "" : name);
  }
}

ZipArchive::~ZipArchive() = default;

std::string ZipArchive::read(const std::string& name) const {
  zip_t* archive = handle_->archive;
  zip_stat_t entry;
  zip_stat_init(&entry);
  const bool known = zip_stat(archive, name.c_str(), 0, &entry) == 0 &&
                     (entry.valid & ZIP_STAT_SIZE) != 0 && (entry.valid & ZIP_STAT_COMP_SIZE) != 0;
  check(known, where_, ": the entry '", name, "' is damaged; write the file again");
  check(is_plausible_inflation(entry.size, entry.comp_size), where_, ": the entry '", name,
        "' promises ", entry.size, " bytes, which ", entry.comp_size,
        " compressed bytes cannot plausibly hold; save the arrays without compression "
        "(numpy.savez)");
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(zip_fopen(archive, name.c_str(), 0),
                                                                &zip_fclose);
  check(file != nullptr, where_, ": the entry '", name, "' cannot be read: ", zip_strerror(archive),
        "; save the arrays by numpy.savez");
  std::string bytes(entry.size, '\0');
  const zip_int64_t found = zip_fread(file.get(), bytes.data(), entry.size);
  // The end must be met for the checksum to be verified.
  char extra;
  const bool whole =
      found == static_cast<zip_int64_t>(entry.size) && zip_fread(file.get(), &extra, 1) == 0;
  check(whole, where_, ": the entry '", name, "' is damaged; write the file again");
  return bytes;
}

// ---- writing ----

namespace {

// 0 hours on 1980-01-01, the first day that the format knows.
constexpr zip_uint16_t kFirstTime = 0, kFirstDate = 1 << 5 | 1;

void add_entry(zip_t* archive, const ZipEntry& entry) {
  zip_source_t* source = zip_source_buffer(archive, entry.bytes.data(), entry.bytes.size(), 0);
  const zip_int64_t index =
      source == nullptr ? -1 : zip_file_add(archive, entry.name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0 && source != nullptr) zip_source_free(source);
  const auto place = static_cast<zip_uint64_t>(index);
  const bool added = index >= 0 && zip_set_file_compression(archive, place, ZIP_CM_STORE, 0) == 0 &&
                     zip_file_set_dostime(archive, place, kFirstTime, kFirstDate, 0) == 0;
  check(added, "zip: the entry '", entry.name, "' cannot be added: ", zip_strerror(archive));
}

std::string bytes_of_source(zip_source_t* source) {
  zip_stat_t made;
  zip_stat_init(&made);
  check(zip_source_stat(source, &made) == 0 && zip_source_open(source) == 0,
        "zip: the archive that was made cannot be read");
  std::string bytes(made.size, '\0');
  const zip_int64_t found = zip_source_read(source, bytes.data(), made.size);
  zip_source_close(source);
  check(found == static_cast<zip_int64_t>(made.size), "zip: ", found, " bytes of ", made.size,
        " could be read of the archive that was made");
  return bytes;
}

}  // namespace

std::string write_zip(std::span<const ZipEntry> entries, const std::string& comment) {
  check(comment.size() <= 0xFFFF, "zip: a comment of ", comment.size(),
        " bytes found, at most 65535 expected");
  const std::unique_ptr<zip_source_t, decltype(&zip_source_free)> target(
      zip_source_buffer_create(nullptr, 0, 0, nullptr), &zip_source_free);
  check(target != nullptr, "zip: there is no memory for an archive");
  std::unique_ptr<zip_t, decltype(&zip_discard)> archive(
      zip_open_from_source(target.get(), ZIP_TRUNCATE, nullptr), &zip_discard);
  check(archive != nullptr, "zip: no archive could be made in memory");
  zip_source_keep(target.get());  // the archive, which owns it now, frees it at its end
  for (const ZipEntry& entry : entries) add_entry(archive.get(), entry);
  const bool closed = zip_set_archive_comment(archive.get(), comment.data(),
                                              static_cast<zip_uint16_t>(comment.size())) == 0 &&
                      zip_close(archive.get()) == 0;
  check(closed, "zip: the archive cannot be made: ", zip_strerror(archive.get()));
  static_cast<void>(archive.release());  // zip_close() has freed it
  return bytes_of_source(target.get());
}

}  // namespace tritgrad
