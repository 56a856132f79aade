#include "tools/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "engine/check.h"
#include "engine/text.h"
#include "optim/parallel/communicator.h"

namespace tritgrad {
namespace {

// A line of a TOML file; tables in it become dotted keys.
struct Entry {
  std::string key, value;
  toml::source_index line;
};

std::string value_text(const toml::node& node) {
  if (const auto text = node.value<std::string>()) return *text;
  std::string list;
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& item : *array) list += (list.empty() ? "" : ",") + value_text(item);
    return list;
  }
  // The shortest text of the number, 0.2, where a stream would give 17 digits.
  if (const toml::value<double>* number = node.as_floating_point()) {
    return fmt::format("{}", number->get());
  }
  std::ostringstream value;
  value << toml::node_view<const toml::node>(node);
  return value.str();
}

std::vector<Entry> entries_of(const toml::table& table, const std::string& prefix = "") {
  std::vector<Entry> entries;
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      const std::vector<Entry> more = entries_of(*inner, name + ".");
      entries.insert(entries.end(), more.begin(), more.end());
    } else {
      entries.push_back({name, value_text(node), key.source().begin.line});
    }
  }
  return entries;
}

// "--name" of every option of the command.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

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

// Throws Error where several processes would do the same work and write the same files at one time.
void check_ranks(std::vector<std::string>& arguments, const CLI::App& app) {
  const auto command = find_command(arguments, app);
  check(launched_ranks() == 1 || command == arguments.end() || *command == "train", "there are ",
        launched_ranks(), " ranks, but only 'train' can share its work among them; start '",
        command == arguments.end() ? "" : *command, "' without mpirun");
}

struct ConfigFile {
  std::string where;  // "configuration file 'PATH'"
  toml::table table;
};

// Where an error of the parser, "--epochs: 'x' found, ...", is about a value of the file, returns
// the place, ending in ": "; empty where it is about another one.
std::string place_of_mistake(const ConfigFile& file, const std::string& error) {
  const std::size_t quote = error.find('\'');
  const std::size_t end = error.find('\'', quote + 1);
  if (quote == std::string::npos || end == std::string::npos) return "";
  const std::string found = "," + error.substr(quote + 1, end - quote - 1) + ",";
  for (const auto& [key, value, line] : entries_of(file.table)) {
    // The value may be one of a list.
    if (error.starts_with("--" + key + ":") &&
        ("," + value + ",").find(found) != std::string::npos) {
      return concat(file.where, ", line ", line, ": ");
    }
  }
  return "";
}

// Puts the options in the file of --config in front of the command's own.
ConfigFile expand_config(std::vector<std::string>& arguments, const CLI::App& app) {
  const auto command = find_command(arguments, app);
  const auto is_config = [](const std::string& argument) {
    return argument == "--config" || argument.starts_with("--config=");
  };
  const auto config = std::find_if(command, arguments.end(), is_config);
  if (config == arguments.end()) return {};
  check(std::none_of(config + 1, arguments.end(), is_config),
        "--config: given twice; put all options into one file");
  const bool inline_value = config->size() > 8;
  const std::string path = inline_value ? config->substr(9) : *(config + 1);
  ConfigFile file{"configuration file '" + path + "'", read_toml("configuration file", path)};
  const std::vector<std::string> inserted =
      option_arguments(file.table, file.where, *app.get_subcommand(*command));
  arguments.insert(command + 1, inserted.begin(), inserted.end());
  return file;
}

// Throws Error where the command line itself gives an option twice that takes one value. One that
// stands in a configuration file too is overridden.
void check_repeated(const std::vector<std::string>& arguments, const CLI::App& command) {
  std::set<std::string> given;
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    const CLI::Option* option =
        name.starts_with("--") ? command.get_option_no_throw(name) : nullptr;
    if (option == nullptr || option->get_items_expected_max() != 1) continue;
    check(given.insert(name).second, name, ": given twice; leave one of the two out");
  }
}

// Throws Error where an option that takes a value has none, or an option of the command in its
// place, which would become the name of a file.
void check_missing_values(const std::vector<std::string>& arguments, const CLI::App& command) {
  const auto option_of = [&](const std::string& word) {
    return word.starts_with("--") ? command.get_option_no_throw(word) : nullptr;
  };
  for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
    const CLI::Option* option = option_of(*argument);
    if (option == nullptr || option->get_items_expected_max() == 0) continue;
    const std::string& name = *argument++;  // the value is no option, whatever it begins with
    check(argument != arguments.end(), name, ": a value is missing; give one behind it");
    check(option_of(argument->substr(0, argument->find('='))) == nullptr, name,
          ": a value is missing, '", *argument, "' behind it is an option; give one, or write ",
          name, "=", shell_quoted(*argument), " if that is meant");
  }
}

// Makes empty values errors, as most come from shell variables that are not set. An empty label
// takes back that of a configuration file.
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

// Returns the commands that were given, from the program on.
std::vector<const CLI::App*> given_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands{&app};
  while (!commands.back()->get_subcommands().empty()) {
    commands.push_back(commands.back()->get_subcommands().front());
  }
  return commands;
}

// Says which word of the command line, or of one of its commands, is unknown.
[[noreturn]] void explain_extras(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::string name;  // of the command, with those above it
  for (const CLI::App* command : given_commands(app)) {
    if (command == &app) continue;
    name += (name.empty() ? "" : " ") + command->get_name();
    const std::vector<std::string> extras = command->remaining(false);
    if (extras.empty()) continue;
    const std::string word = extras.front().substr(0, extras.front().find('='));
    const std::vector<std::string> commands = command_names(*command);
    const bool option = word.starts_with("-"), argument = !option && commands.empty();
    fail("unknown ",
         option     ? "option"
         : argument ? "argument"
                    : "command",
         " '", word, "' of '", name, "'",
         did_you_mean(word, option || argument ? option_names(*command) : commands));
  }
  const std::string word = arguments.empty() ? "" : arguments.front();
  fail("unknown command '", word, "'", did_you_mean(word, command_names(app)));
}

}  // namespace

toml::table read_toml(const char* what, const std::string& path) {
  check(!std::filesystem::is_directory(path), what, " '", path, "' is a folder; name a file in it");
  check(std::filesystem::is_regular_file(path), what, " '", path,
        "' cannot be read; check the path");
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    fail(what, " '", path, "', line ", error.source().begin.line, ": ", error.description());
  }
}

std::vector<std::string> option_arguments(const toml::table& table, const std::string& where,
                                          const CLI::App& command) {
  std::vector<std::string> known = option_names(command);
  for (std::string& name : known) name.erase(0, 2);  // keys have no dashes
  std::erase_if(known, [](const std::string& name) { return name == "config" || name == "help"; });
  std::vector<std::string> arguments;
  for (const auto& [key, value, line] : entries_of(table)) {
    if (key.starts_with("set.")) {
      arguments.insert(arguments.end(), {"--set", key.substr(4) + "=" + value});
      continue;
    }
    const std::string option = "--" + key;
    check(std::find(known.begin(), known.end(), key) != known.end(), where, ", line ", line,
          ": unknown key '", key, "'", did_you_mean(key, known));
    if (command.get_option(option)->get_items_expected_max() == 0) {
      check(value == "true" || value == "false", where, ", line ", line, ": ", key, " = ", value,
            ", expected true or false");
      if (value == "true") arguments.push_back(option);
    } else if (value.empty()) {  // after "=" it would be taken for missing
      arguments.insert(arguments.end(), {option, value});
    } else {
      arguments.push_back(option + "=" + value);
    }
  }
  return arguments;
}

std::string shell_quoted(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string repeat_command(const CLI::App& app) {
  std::string text = "tritgrad " + app.get_name();
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    if (option->check_lname("config")) continue;  // its options are among the others
    const std::string name = " --" + option->get_lnames().front();
    if (option->get_items_expected_max() == 0) {
      text += name;
    } else if (option->get_delimiter() != '\0') {
      std::string list;
      for (const std::string& value : option->results()) list += (list.empty() ? "" : ",") + value;
      text += name + " " + shell_quoted(list);
    } else if (option->get_items_expected_max() == 1) {
      text += name + " " + shell_quoted(option->results().back());  // which overrides the others
    } else {
      for (const std::string& value : option->results()) text += name + " " + shell_quoted(value);
    }
  }
  return text;
}

int run_command_line(CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  check_ranks(arguments, app);
  std::vector<std::string> own = arguments;
  const auto name = find_command(own, app);
  if (name != own.end()) check_missing_values(own, *app.get_subcommand(*name));
  const ConfigFile config = expand_config(arguments, app);
  if (name != own.end()) check_repeated(own, *app.get_subcommand(*name));
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
    fail(place_of_mistake(config, error.what()), error.what());
  }
  return 0;
}

}  // namespace tritgrad
