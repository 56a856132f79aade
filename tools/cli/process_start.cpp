#include "tools/cli/process_start.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "engine/check.h"
#include "optim/parallel/communicator.h"

namespace tritgrad {
namespace {

// Convolutions take between 256 and 512 KiB of the first thread's stack; the other threads' stacks
// are as large as the limit was when the program began.
constexpr rlim_t kWantedStack = rlim_t{4} << 20;
constexpr rlim_t kLeastStack = rlim_t{1} << 20;

// OpenMP threads spin while they wait, which makes a run ten times slower as soon as other
// processes want the cores too; where they sleep at once, waking them costs more than a small
// network gains by them. So they spin for some microseconds, which makes two threads that train
// mlp:512,512 more than twice as fast, and 1.8 times as slow beside two such threads
// (PERFORMANCE.md). Ranks have other ranks beside them, and sleep. Users who set a policy
// themselves keep theirs. Returns whether it changed.
bool wait_with_few_spins() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return false;
  const char* spins = launched_ranks() > 1 ? "0" : "2000";
  return setenv("GOMP_SPINCOUNT", spins, 0) == 0 && setenv("OMP_WAIT_POLICY", "passive", 1) == 0;
}

// Returns whether the limit changed.
bool raise_stack_limit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kWantedStack) return false;
  const rlim_t at_first = limit.rlim_cur;
  limit.rlim_cur = std::min(kWantedStack, limit.rlim_max);
  check(limit.rlim_cur >= kLeastStack, "the stack may have no more than ", limit.rlim_cur / 1024,
        " KiB (ulimit -Hs), and training needs ", kLeastStack / 1024,
        "; start the program where the limit is higher");
  return limit.rlim_cur > at_first && setrlimit(RLIMIT_STACK, &limit) == 0;
}

}  // namespace

void open_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    constexpr int kWays[] = {O_WRONLY, O_RDONLY, O_RDWR};
    // The lowest number that is free is this one.
    if (::open("/dev/null", kWays[stream]) < 0) return;
  }
}

void start_again_if_needed(char** argv) {
  const bool waits_otherwise = wait_with_few_spins();
  const bool has_more_stack = raise_stack_limit();
  if (!waits_otherwise && !has_more_stack) return;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  // Where a step fails, the program simply goes on as it is.
  if (!error) execv(self.c_str(), argv);
}

}  // namespace tritgrad
