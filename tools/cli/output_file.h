// A file that a command writes beside what it prints.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "engine/files/atomic_file.h"

namespace tritgrad {

// The first characters of files that an output may take the place of: its own kind. JSON that we
// write is an object; a bracket would also begin a recipe in TOML.
inline constexpr const char* kJsonBegins = "{";
inline constexpr const char* kHtmlBegins = "<";
inline constexpr const char* kMarkdownBegins = "#";

// To be made before the work begins whose result it takes. Nothing that a command reads, and no
// file of another kind, can be lost to it, and no other output has the same file.
class OutputFile {
 public:
  // "" is no file, "-" is standard output; a pipe or a device is written to, never replaced.
  // Throws Error, beginning with `option`, where AtomicFile does, and for a file that is neither
  // empty nor begins with one of the characters `begins`, unless that is null.
  OutputFile(const char* option, const std::string& path, const char* begins);

  // Writes `text` and a newline, at once.
  void write(const std::string& text);

  // Writes lines that are to be read while others follow. What was there before stays until the
  // first of them are on the disk.
  void append(const std::string& lines);

  const std::string& path() const { return path_; }

 private:
  std::string option_;
  std::string path_;
  std::optional<AtomicFile> file_;  // nothing for what cannot be replaced
  std::ofstream appended_;          // open from the first append() on
};

// Refuses what an OutputFile of these would refuse, before any work is done for it.
void check_output(const char* option, const std::string& path, const char* begins);

}  // namespace tritgrad
