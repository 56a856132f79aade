#include "engine/data/text_files.h"

#include <utf8cpp/utf8.h>

#include <cstring>
#include <filesystem>

#include "engine/check.h"
#include "engine/files/hash.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

// Linux maps no more than 65,530 areas for a process that nobody configured.
constexpr std::size_t kMostFiles = 30'000;
// What is looked at to see whether bytes are characters.
constexpr std::size_t kLookedAt = std::size_t{1} << 20;
// Of a hundred bytes, those that may belong to no character. Western text in an old encoding has
// about five; compressed data has forty.
constexpr std::size_t kMostStrangePercent = 10;

// Returns the bytes that belong to no character of UTF-8.
std::size_t strange_bytes(std::string_view text) {
  std::size_t count = 0;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); (at = utf8::find_invalid(at, end)) != end; ++at) ++count;
  return count;
}

void check_is_text(const std::string& path, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const void* nul = std::memchr(text.data(), 0, text.size());
  if (nul != nullptr) {
    fail("text ", printable(path), ": byte ", static_cast<const char*>(nul) - text.data(),
         " (counted from 0) is NUL, which no text holds; unpack the file, convert it to UTF-8, or "
         "take it away");
  }
  const std::string_view head = text.substr(0, kLookedAt);
  const std::size_t strange = strange_bytes(head);
  check(strange * 100 <= head.size() * kMostStrangePercent, "text ", printable(path), ": ", strange,
        " of the first ", counted(static_cast<std::int64_t>(head.size()), "byte"),
        " belong to no character of UTF-8, at most ", kMostStrangePercent,
        " % may; unpack the file, convert it to UTF-8, or take it away");
}

// Returns the paths of the files below a folder, in no order. Folders are not entered through
// links, which could lead round in a circle, and are files here that cannot be mapped.
std::vector<std::string> paths_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const bool is_folder = fs::is_directory(entry->symlink_status());
    if (entry->path().filename().string().starts_with('.')) {
      if (is_folder) entry.disable_recursion_pending();
    } else if (!is_folder) {
      paths.push_back(entry->path().string());
    }
  }
  check(!error, "text ", printable(folder), ": cannot be read: ", error.message());
  return paths;
}

std::vector<std::string> paths_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw NotFound(concat("text ", printable(path), ": there is no such file or folder",
                          status.type() == fs::file_type::none ? " that can be reached" : "",
                          "; check the path"));
  }
  if (!fs::is_directory(status)) return {path};
  std::vector<std::string> paths = paths_below(path);
  check(!paths.empty(), "text ", printable(path),
        ": the folder holds no files; give a text file or a folder of them");
  check(paths.size() <= kMostFiles, "text ", printable(path), ": ", paths.size(),
        " files found, at most ", kMostFiles, " can be open at once; join them into fewer");
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TextFiles::TextFiles(const std::string& path) {
  const std::vector<std::string> paths = paths_of(path);
  for (const std::string& each : paths) append(each);
  check(size_ > 0, "text ", printable(path), paths.size() > 1 ? ": all files are" : ": the file is",
        " empty; give a text to learn from");
}

void TextFiles::append(const std::string& path) {
  MappedFile file = [&] {
    try {
      return MappedFile(path);
    } catch (const Error& error) {
      fail("text ", printable(error.what()));
    }
  }();
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.empty()) return;
  check_is_text(path, bytes);
  size_ += static_cast<std::int64_t>(bytes.size());
  files_.push_back(std::move(file));
  ends_.push_back(size_);
}

std::uint64_t TextFiles::hash() const {
  std::vector<std::span<const std::byte>> parts;
  for (const MappedFile& file : files_) parts.push_back(file.bytes());
  return xxh3_joined(parts);
}

}  // namespace tritgrad
