#include "tools/cli/client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

#include "engine/check.h"
#include "tools/cli/interrupt.h"
#include "tools/report/clock.h"

namespace tritgrad {
namespace {

constexpr std::size_t kKeptOutput = std::size_t{1} << 16;
constexpr std::size_t kPipeBytes = std::size_t{1} << 16;  // Linux's default capacity
constexpr std::chrono::seconds kGrace{2};  // between asking a client to end and killing it
constexpr int kPollMilliseconds = 20;

// A started program and the reading end of its output.
class Process {
 public:
  Process(const Client& client, const std::filesystem::path& folder);
  ~Process() {
    if (!ended_) terminate();
    ::close(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits a moment for output or the end; true when the program has ended and its output is read.
  bool advance(ClientResult& result);

 private:
  void read_available(std::string& text);
  bool reap(int& status);
  void terminate();

  pid_t id_ = -1;
  int output_ = -1;
  bool output_closed_ = false;
  bool ended_ = false;
};

std::vector<std::string> english_environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("LC_ALL=")) variables.emplace_back(*entry);
  }
  variables.emplace_back("LC_ALL=C");
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

Process::Process(const Client& client, const std::filesystem::path& folder) {
  const std::string& program = client.arguments.front();
  std::array<int, 2> ends{};
  check(::pipe2(ends.data(), O_CLOEXEC) == 0, program,
        ": no pipe for its output: ", std::strerror(errno));
  output_ = ends[0];
  ::fcntl(output_, F_SETFL, O_NONBLOCK);

  // The child stays in our process group: Ctrl-C goes to both.
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  std::vector<std::string> arguments = client.arguments;
  std::vector<std::string> environment = english_environment();
  const int error = ::posix_spawnp(&id_, program.c_str(), &actions, nullptr,
                                   pointers(arguments).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error == 0) return;
  ::close(output_);
  check(error != ENOENT, program, ": is not installed; on Debian: apt-get install ",
        client.debian_package);
  fail(program, ": cannot be started: ", std::strerror(error));
}

void Process::read_available(std::string& text) {
  // At most what a pipe holds, so that a program that never stops talking cannot outrun its limit.
  std::array<char, 4096> chunk;
  for (std::size_t total = 0; total < kPipeBytes;) {
    const ssize_t count = ::read(output_, chunk.data(), chunk.size());
    if (count == 0) output_closed_ = true;
    if (count <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    total += static_cast<std::size_t>(count);
  }
  if (text.size() > kKeptOutput) text.erase(0, text.size() - kKeptOutput);
}

bool Process::reap(int& status) {
  if (::waitpid(id_, &status, WNOHANG) != id_) return false;
  return ended_ = true;
}

bool Process::advance(ClientResult& result) {
  // Descriptor -1 makes poll a plain pause, for a program that has closed its output but still
  // runs.
  struct pollfd waiting {
    output_closed_ ? -1 : output_, POLLIN, 0
  };
  ::poll(&waiting, 1, kPollMilliseconds);
  int status = 0;
  const bool ended = reap(status);
  read_available(result.output);
  if (!ended) return false;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

void Process::terminate() {
  int status = 0;
  ::kill(id_, SIGTERM);
  for (const auto deadline = Clock::now() + kGrace; Clock::now() < deadline;) {
    if (reap(status)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMilliseconds));
  }
  ::kill(id_, SIGKILL);
  ::waitpid(id_, &status, 0);
  ended_ = true;
}

std::string last_words(std::string text) {
  while (!text.empty() && std::strchr("\r\n \t", text.back()) != nullptr) text.pop_back();
  std::size_t begin = text.size();
  for (int lines = 0; lines < 3 && begin != std::string::npos && begin > 0; ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  text = text.substr(begin == std::string::npos ? 0 : begin + (text[begin] == '\n' ? 1 : 0));
  std::replace(text.begin(), text.end(), '\n', ';');
  return text.empty() ? "no message" : text;
}

}  // namespace

ClientResult run_client(const Client& client, const std::filesystem::path& folder,
                        std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  ClientResult result;
  const InterruptWatch watch;
  const std::string outcome = concat("'", command_line_of(client), "' was stopped");
  Process process(client, folder);
  while (!process.advance(result)) {
    watch.end_if_interrupted(outcome);
    check(Clock::now() < deadline, client.arguments.front(), ": did not finish within ",
          limit.count(), " s and was stopped");
  }
  watch.end_if_interrupted(outcome);
  return result;
}

std::string command_line_of(const Client& client) {
  std::string line;
  for (const std::string& argument : client.arguments) {
    line += (line.empty() ? "" : " ") + argument;
  }
  return line;
}

std::string failure_of(const Client& client, const ClientResult& result) {
  return concat("'", command_line_of(client), "' failed with exit code ", result.exit_code, ": ",
                last_words(result.output));
}

}  // namespace tritgrad
