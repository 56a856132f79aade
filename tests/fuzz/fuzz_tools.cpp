// libFuzzer entry for files that the tools alone read: plans of comparisons (an even first byte)
// and pictures of fetched sets. They lie in memory, under a name of /proc. A refusal (Error) is a
// good result.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/check.h"
#include "tools/cli/fetch.h"
#include "tools/compare/request.h"

namespace {

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

void read_picture(const std::string& path) {
  static const std::string kBin = [] {
    std::string folder = "/tmp/fuzz_tools.XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    return folder + "/records.bin";
  }();
  constexpr std::array<std::uint8_t, 1> kLabels = {7};
  tritgrad::convert_cifar_png(path, kLabels, kBin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const MemoryFile file(data + 1, size - 1);
  try {
    if (data[0] % 2 == 0) {
      tritgrad::read_plan(file.path(), "");
    } else {
      read_picture(file.path());
    }
  } catch (const tritgrad::Error&) {
  }
  return 0;
}
