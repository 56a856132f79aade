#include "tools/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/text.h"
#include "optim/parallel/communicator.h"
#include "tools/cli/config_file.h"

namespace tritgrad {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());  // not a hidden one
  }
  return names;
}

std::vector<std::string>::iterator find_command(std::vector<std::string>& arguments,
                                                const CLI::App& app) {
  const auto names = command_names(app);
  return std::find_if(arguments.begin(), arguments.end(), [&](const std::string& a) {
    return std::find(names.begin(), names.end(), a) != names.end();
  });
}

// Several processes would do the same work, and write the same files at the same time.
void check_ranks(std::vector<std::string>& arguments, const CLI::App& app) {
  const auto command = find_command(arguments, app);
  check(launched_ranks() == 1 || command == arguments.end() || *command == "train", "there are ",
        launched_ranks(), " ranks, but only 'train' can share its work among them; start '",
        command == arguments.end() ? "" : *command, "' without mpirun");
}

// What the file of --config says; `where`: "configuration file 'PATH'".
struct ConfigFile {
  std::string where;
  toml::table table;
};

// Puts the options in the file of --config in front of the command's own.
ConfigFile expand_config(std::vector<std::string>& arguments, const CLI::App& app) {
  const auto command = find_command(arguments, app);
  if (command == arguments.end()) return {};
  const auto config = std::find_if(command, arguments.end(), [](const std::string& a) {
    return a == "--config" || a.starts_with("--config=");
  });
  if (config == arguments.end()) return {};
  check(std::none_of(
            config + 1, arguments.end(),
            [](const std::string& a) { return a == "--config" || a.starts_with("--config="); }),
        "--config: given twice; put all options into one file");
  const bool inline_value = config->size() > 8;
  check(inline_value || config + 1 != arguments.end(), "--config: a file name is missing");
  const std::string path = inline_value ? config->substr(9) : *(config + 1);
  ConfigFile file{"configuration file '" + path + "'", read_toml("configuration file", path)};
  const std::vector<std::string> inserted =
      option_arguments(file.table, file.where, *app.get_subcommand(*command));
  arguments.insert(command + 1, inserted.begin(), inserted.end());
  return file;
}

// An empty value is mostly that of a shell variable which is not set. An empty label takes back
// that of a configuration file.
void refuse_empty_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0 || option->check_lname("label")) continue;
    option->check([](const std::string& value) -> std::string {
      return value.empty() ? "is empty; give a value, or leave it out" : "";
    });
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    refuse_empty_values(*command);
  }
}

// `name`: of the command, with those above it.
[[noreturn]] void explain_extra(const CLI::App& command, const std::string& name,
                                const std::string& extra) {
  const std::string word = extra.substr(0, extra.find('='));
  const bool option = word.starts_with("-");
  const bool has_commands = !command_names(command).empty();
  fail(
      "unknown ",
      option         ? "option '"
      : has_commands ? "command '"
                     : "argument '",
      word, "' of '", name, "'",
      did_you_mean(word, option || !has_commands ? option_names(command) : command_names(command)));
}

// The commands that were given, from the program on.
std::vector<const CLI::App*> given_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands{&app};
  while (!commands.back()->get_subcommands().empty()) {
    commands.push_back(commands.back()->get_subcommands().front());
  }
  return commands;
}

[[noreturn]] void explain_extras(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::string name;
  for (const CLI::App* command : given_commands(app)) {
    if (command == &app) continue;
    name += (name.empty() ? "" : " ") + command->get_name();
    const std::vector<std::string> extras = command->remaining(false);
    if (!extras.empty()) explain_extra(*command, name, extras.front());
  }
  const std::string word = arguments.empty() ? "" : arguments.front();
  fail("unknown command '", word, "'", did_you_mean(word, command_names(app)));
}

}  // namespace

int run_command_line(CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  check_ranks(arguments, app);
  const ConfigFile config = expand_config(arguments, app);
  refuse_empty_values(app);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ExtrasError&) {
    explain_extras(app, arguments);
  } catch (const CLI::RequiredError& error) {
    if (!arguments.empty() && app.get_subcommands().empty()) explain_extras(app, arguments);
    std::string help;
    for (const CLI::App* command : given_commands(app)) help += command->get_name() + " ";
    fail(error.what(), "; see '", help, "--help'");
  } catch (const CLI::ParseError& error) {
    fail(place_of_mistake(config.table, config.where, error.what()), error.what());
  }
  return 0;
}

}  // namespace tritgrad
