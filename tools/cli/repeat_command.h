// Commands as they can be repeated.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tritgrad {

// The command that was read into `app`, a subcommand, as a shell wants it.
std::string repeat_command(const CLI::App& app);

}  // namespace tritgrad
