// Command lines: how the program reads its own, what a TOML file says in place of options, and how
// a shell wants a command repeated.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tritgrad {

// Parses and runs. `--config FILE.toml` of a command stands for the options that the file holds;
// options given on the command line win. Returns the exit code; throws Error with one sentence.
int run_command_line(CLI::App& app, int argc, char** argv);

// Throws Error with path and line when the file cannot be read or is not TOML. `what` begins the
// message: "configuration file".
toml::table read_toml(const char* what, const std::string& path);

// Returns the arguments of `command` that say the same as the table: its keys are option names, its
// table [set] overrides the recipe, and lists become values separated by commas. Throws Error for a
// key that is no option of the command, with `where` and the line.
std::vector<std::string> option_arguments(const toml::table& table, const std::string& where,
                                          const CLI::App& command);

// The word as a shell reads it, in quotes where it must be.
std::string shell_quoted(const std::string& word);

// The command that was read into `app`, a subcommand, as it can be repeated.
std::string repeat_command(const CLI::App& app);

}  // namespace tritgrad
