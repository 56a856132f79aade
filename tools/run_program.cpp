#include "tools/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "engine/check.h"

extern char** environ;

namespace tritgrad {
namespace {

// The file actions of a child: its own folder, no input, both outputs into the pipe.
class FileActions {
 public:
  FileActions(const std::string& folder, int pipe_end) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, pipe_end, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, pipe_end, STDERR_FILENO);
  }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> block;
  for (;;) {
    const ssize_t n = ::read(descriptor, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& folder) {
  std::array<int, 2> pipe_ends;
  check(::pipe2(pipe_ends.data(), O_CLOEXEC) == 0, "cannot start ", arguments[0], ": ",
        std::strerror(errno));
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const FileActions actions(folder, pipe_ends[1]);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  ::close(pipe_ends[1]);
  if (error != 0) {
    ::close(pipe_ends[0]);
    fail("cannot start ", arguments[0], ": ", std::strerror(error));
  }
  ProgramResult result;
  result.output = read_all(pipe_ends[0]);
  ::close(pipe_ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace tritgrad
