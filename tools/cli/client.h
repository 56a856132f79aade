// Runs an installed program (npm, apt-get, ...) without a shell and captures what it says.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace tritgrad {

struct Client {
  std::vector<std::string> arguments;  // the program, looked up on PATH, and its arguments
  std::string debian_package;          // which brings the program, for the error when it is missing
};

struct ClientResult {
  int exit_code = 0;   // 128 + n when ended by signal n
  std::string output;  // the last 64 KiB of standard output and error together
};

// Runs the program in `folder`, with empty input and messages in English. Throws Error when it is
// not installed, and when it has not ended within the limit (it is then terminated); Interrupted
// after a SIGINT.
ClientResult run_client(const Client& client, const std::filesystem::path& folder,
                        std::chrono::seconds limit);

// "npm pack", for messages.
std::string command_line_of(const Client& client);

// "'npm pack' failed with exit code 1: " and its last three lines, because the last alone is often
// only about its log.
std::string failure_of(const Client& client, const ClientResult& result);

}  // namespace tritgrad
