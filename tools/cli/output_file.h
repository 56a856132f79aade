// Files that a command writes beside what it prints, kept apart from those that it reads.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "engine/files/atomic_file.h"

namespace tritgrad {

// A file that a command reads, or a folder whose files it reads. An empty path is none.
struct InputFile {
  std::string option;  // what names it: "--data"
  std::string path;
};

// Throws Error, beginning with `option`, where the output is one of the inputs: the same inode of
// the same device, by whatever links and spellings either is reached. To be called before anything
// is computed.
void check_no_input(const char* option, const std::string& output,
                    const std::vector<InputFile>& inputs);

// An output replaces files of its own kind alone, which begin with these characters. The JSON that
// we write is an object; a bracket would also begin a recipe in TOML.
inline constexpr const char* kJsonBegins = "{";
inline constexpr const char* kHtmlBegins = "<";
inline constexpr const char* kMarkdownBegins = "#";

// An output, to be made before the work begins whose result it takes. No file of another kind can
// be lost to it, and no other output has the same file.
class OutputFile {
 public:
  // "" is no file, "-" is standard output; a pipe or a device is written to, never replaced.
  // Throws Error, beginning with `option`, where AtomicFile does, and for a file that is neither
  // empty nor begins with one of the characters `begins`, unless that is null.
  OutputFile(const char* option, const std::string& path, const char* begins);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Writes `text` and a newline, at once.
  void write(const std::string& text);

  // Writes these bytes and no newline, at once.
  void write_bytes(const std::string& bytes);

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

// Throws what the constructor of such an OutputFile would throw.
void check_output(const char* option, const std::string& path, const char* begins);

}  // namespace tritgrad
