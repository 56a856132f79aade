// libFuzzer entry for files that the tools alone read: plans of comparisons, configuration files,
// results in a cache, and pictures and labels of fetched sets. The first byte chooses. They lie in
// memory, under a name of /proc. A refusal (Error) is a good result.
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>

#include "engine/check.h"
#include "engine/files/hash.h"
#include "tests/support/support_files.h"
#include "tools/cli/command_line.h"
#include "tools/cli/commands.h"
#include "tools/cli/fetch.h"
#include "tools/compare/request.h"
#include "tools/compare/run_cache.h"

namespace {

using namespace tritgrad;
namespace fs = std::filesystem;

// A file without a folder.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : file_(::memfd_create("input", 0)) {
    if (file_ < 0 || ::write(file_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

// What readers ask for by a name of their own, as a link to the input.
void link_as(const fs::path& name, const std::string& path) {
  fs::remove(name);
  fs::create_symlink(path, name);
}

const TempDir& folder() {
  static const TempDir kFolder;
  return kFolder;
}

void read_comparisons(const std::string& path) { read_plan(path, ""); }

void read_picture(const std::string& path) {
  constexpr std::array<std::uint8_t, 1> kLabels = {7};
  convert_cifar_png(path, kLabels, folder() / "records.bin");
}

struct IsRead {};

// The command is read with all its options, and ends before it does anything: its own callback
// stays as it is, as it holds what options are written to.
void read_config(const std::string& path) {
  CLI::App app("", "tritgrad");
  add_train_command(app);
  app.get_subcommand("train")->parse_complete_callback([] { throw IsRead{}; });
  std::array<std::string, 4> words = {"tritgrad", "train", "--config", path};
  std::array<char*, 5> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  try {
    run_command_line(app, static_cast<int>(words.size()), arguments.data());
  } catch (const IsRead&) {
  }
}

// What is found is written and found again as the same.
void read_cached(const std::string& path) {
  const std::string key = "key";
  link_as(folder() / (sha256_hex(std::as_bytes(std::span(key))) + ".json"), path);
  const RunCache cache(folder().path());
  const std::optional<RunResult> found = cache.find(key);
  if (!found) return;
  const fs::path again = folder() / "again";
  RunCache(again).store(key, *found);
  if (to_json(*RunCache(again).find(key)) != to_json(*found)) std::abort();
}

// Of a package without pictures.
void read_labels(const std::string& path) {
  link_as(folder() / "train_lables.json", path);
  convert_cifar10(folder().path(), folder().path());
}

constexpr void (*kReaders[])(const std::string&) = {read_comparisons, read_picture, read_config,
                                                    read_cached, read_labels};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const MemoryFile file(data + 1, size - 1);
  try {
    kReaders[data[0] % std::size(kReaders)](file.path());
  } catch (const Error&) {
  }
  return 0;
}
