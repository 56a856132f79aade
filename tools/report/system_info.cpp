#include "tools/report/system_info.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <fstream>

#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "ops/products/dense_product.h"

namespace tritgrad {
namespace {

// Returns what follows "KEY<blanks>:<blanks>" on the first such line of a file, or nothing.
std::string find_line(const char* path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace

std::string processor() {
  const std::string name = find_line("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

std::string describe_program() {
  return fmt::format("tritgrad {}, {} kernels and {}, {} thread{}", TRITGRAD_VERSION,
                     kernels().name, dense_product_library(), thread_count(),
                     thread_count() == 1 ? "" : "s");
}

std::string describe_machine() { return describe_program() + ", " + processor(); }

// The kernel's count in /proc is of this program alone. getrusage(), which is asked where there is
// no /proc, also remembers a larger program that started this one.
std::int64_t peak_rss_bytes() {
  const std::string kibibytes = find_line("/proc/self/status", "VmHWM");
  if (!kibibytes.empty()) return std::stoll(kibibytes) * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace tritgrad
