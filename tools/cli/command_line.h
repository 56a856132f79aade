// How the program reads its arguments: commands, configuration files, mistyped names.
#pragma once

namespace CLI {
class App;
}

namespace tritgrad {

// Parses and runs. `--config FILE.toml` of a command stands for the options that the file holds;
// options given on the command line win. Returns the exit code; throws Error with one sentence.
int run_command_line(CLI::App& app, int argc, char** argv);

}  // namespace tritgrad
