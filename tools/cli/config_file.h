// Options of a command in a TOML file: keys are option names, the table [set] overrides the recipe.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tritgrad {

// Throws Error with path and line when the file cannot be read or is not TOML. `what` begins the
// message: "configuration file".
toml::table read_toml(const char* what, const std::string& path);

// The table as the arguments of `command` that say the same; lists become values separated by
// commas. Throws Error for a key that is no option of the command, with `where` and the line.
std::vector<std::string> option_arguments(const toml::table& table, const std::string& where,
                                          const CLI::App& command);

// Where an error of the parser, "--epochs: 'x' found, ...", is about a value of the table: `where`
// and its line, ending in ": ". Empty where it is about another one.
std::string place_of_mistake(const toml::table& table, const std::string& where,
                             const std::string& error);

// "--name" of every option of the command.
std::vector<std::string> option_names(const CLI::App& command);

}  // namespace tritgrad
