// Commands that users are told to give, as a shell wants them.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tritgrad {

// The word in quotes where it must be.
std::string shell_quoted(const std::string& word);

// The command that was read into `app`, a subcommand, as it can be repeated.
std::string repeat_command(const CLI::App& app);

}  // namespace tritgrad
