#include "tools/distinct_files.h"

#include <filesystem>

#include "engine/check.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

// Devices can be read and written at once. What does not exist, such as the name of a recipe, is no
// file that could be lost.
bool replaces(const std::string& output, const std::string& input) {
  std::error_code error;
  return fs::is_regular_file(input, error) && fs::equivalent(output, input, error);
}

// A pipe or a device can be written to twice.
bool can_be_lost(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return !path.empty() && path != "-" && (!fs::exists(status) || fs::is_regular_file(status));
}

bool same_output(const std::string& a, const std::string& b) {
  if (!can_be_lost(a) || !can_be_lost(b)) return false;
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path path = fs::weakly_canonical(a, error);
  return !path.empty() && path == fs::weakly_canonical(b, error);
}

}  // namespace

void check_distinct_files(const std::vector<NamedFile>& inputs,
                          const std::vector<NamedFile>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const NamedFile& output = outputs[i];
    for (const NamedFile& input : inputs) {
      check(!replaces(output.path, input.path), output.option, ": '", output.path,
            "' is also read (", input.option, ") and would be replaced; name another file");
    }
    for (std::size_t j = 0; j < i; ++j) {
      check(!same_output(output.path, outputs[j].path), output.option, ": '", output.path,
            "' is also written by ", outputs[j].option, "; name another file");
    }
  }
}

std::vector<NamedFile> data_files(const std::string& data) {
  const std::size_t comma = data.find(".npy,");
  if (comma == std::string::npos) return {{"--data", data}};
  return {{"--data", data.substr(0, comma + 4)}, {"--data", data.substr(comma + 5)}};
}

}  // namespace tritgrad
