#include "tools/cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "engine/check.h"
#include "engine/files/atomic_file.h"

namespace tritgrad {

void check_writable(const char* option, const std::string& path, Writing writing) {
  namespace fs = std::filesystem;
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  check(status.type() != fs::file_type::none, option, ": '", path, "' is no possible path (",
        error.message(), "); name another file");
  check(!fs::is_directory(status), option, ": '", path, "' is a folder; name a file");
  // A link is followed to the file that it names.
  const fs::path file = fs::is_regular_file(status) ? fs::canonical(path) : fs::path(path);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  check(fs::is_directory(folder), option, ": there is no folder '", folder.string(),
        "'; make it first");
  // Pipes and devices are written to, never replaced.
  const bool in_place =
      fs::exists(status) && (writing == Writing::kInPlace || !fs::is_regular_file(status));
  if (in_place) {
    check(::access(path.c_str(), W_OK) == 0, option, ": '", path,
          "' cannot be written; choose another file");
  } else {
    check(::access(folder.c_str(), W_OK) == 0, option, ": the folder '", folder.string(),
          "' cannot be written; choose another");
    // Replacing takes no permission of the file's own, but whoever took that away wants to keep it.
    check(!fs::exists(status) || ::access(path.c_str(), W_OK) == 0, option, ": '", path,
          "' is write-protected; choose another file");
  }
}

void write_json(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  if (path == "-") {
    fmt::print("{}\n", text);
    return;
  }
  const std::string line = text + "\n";
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) {
    // A pipe or a device such as /dev/stdout is written to, not replaced.
    std::ofstream out(path);
    out << line << std::flush;
    check(out.good(), "--json: '", path, "' cannot be written; choose another file");
    return;
  }
  replace_file(path, std::as_bytes(std::span(line)));
}

}  // namespace tritgrad
