#include "tools/cli/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>

#include "engine/check.h"
#include "engine/files/file_size_signal.h"

namespace tritgrad {

void check_no_input(const char* option, const std::string& output,
                    const std::vector<InputFile>& inputs) {
  namespace fs = std::filesystem;
  std::error_code error;  // also of paths that do not exist or are no folder; these are let through
  if (!fs::is_regular_file(output, error)) return;
  for (const InputFile& input : inputs) {
    bool same = fs::equivalent(output, input.path, error);
    for (const fs::directory_entry& entry : fs::directory_iterator(input.path, error)) {
      same = same || fs::equivalent(output, entry.path(), error);
    }
    check(!same, option, ": '", output, "' is also read (", input.option,
          ") and would be replaced; name another file");
  }
}

OutputFile::OutputFile(const char* option, const std::string& path, const char* begins)
    : option_(option), path_(path) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool is_file = std::filesystem::is_regular_file(status);
  check(!std::filesystem::is_directory(status), option, ": '", path, "' is a folder; name a file");
  if (std::filesystem::exists(status) && !is_file) return;
  if (is_file && begins != nullptr) {
    const std::string_view kinds = begins;
    const int first = std::ifstream(path, std::ios::binary).get();
    check(
        first == EOF || kinds.find(static_cast<char>(first)) != kinds.npos, option, ": '", path,
        "' is there and is of another kind than what would be written; delete it, or name another "
        "file");
  }
  try {
    file_.emplace(path);
  } catch (const Error& refusal) {
    fail_again(refusal, concat(option, ": "));
  }
}

void OutputFile::write(const std::string& text) { write_bytes(text + "\n"); }

void OutputFile::write_bytes(const std::string& bytes) {
  if (path_.empty()) return;
  if (path_ == "-") {
    fmt::print("{}", bytes);
    return;
  }
  if (file_) {
    file_->write(std::as_bytes(std::span(bytes)));
    file_->commit();
    return;
  }
  std::ofstream out(path_, std::ios::binary);
  out << bytes << std::flush;
  check(out.good(), option_, ": '", path_, "' cannot be written; choose another file");
}

// Closing writes what an append() could not.
OutputFile::~OutputFile() {
  const HeldFileSizeSignal held;
  appended_.close();
}

void OutputFile::append(const std::string& lines) {
  if (path_.empty()) return;
  const HeldFileSizeSignal held;
  const bool first = !appended_.is_open();
  if (first && file_) {
    file_->write(std::as_bytes(std::span(lines)));
    file_->commit_and_hold();
  }
  errno = 0;
  if (first) appended_.open(file_ ? file_->path().string() : path_, std::ios::app);
  if (!first || !file_) appended_ << lines << std::flush;
  const int reason = errno;
  check(appended_.good(), option_, ": '", path_, "' cannot be written (", std::strerror(reason),
        "); what was written before stays");
}

void check_output(const char* option, const std::string& path, const char* begins) {
  const OutputFile file(option, path, begins);
}

}  // namespace tritgrad
