#include "tools/cli/config_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

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

// Tables become dotted keys.
void flatten(const toml::table& table, const std::string& prefix, std::vector<Entry>& out) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, name + ".", out);
    } else {
      out.push_back({name, value_text(node), key.source().begin.line});
    }
  }
}

}  // namespace

toml::table read_toml(const char* what, const std::string& path) {
  check(std::filesystem::is_regular_file(path), what, " '", path,
        "' cannot be read; check the path");
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    fail(what, " '", path, "', line ", error.source().begin.line, ": ", error.description());
  }
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> option_arguments(const toml::table& table, const std::string& where,
                                          const CLI::App& command) {
  std::vector<Entry> entries;
  flatten(table, "", entries);
  std::vector<std::string> known = option_names(command);
  for (std::string& name : known) name.erase(0, 2);  // keys have no dashes
  std::erase_if(known, [](const std::string& name) { return name == "config" || name == "help"; });
  std::vector<std::string> arguments;
  for (const auto& [key, value, line] : entries) {
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

std::string place_of_mistake(const toml::table& table, const std::string& where,
                             const std::string& error) {
  const std::size_t quote = error.find('\'');
  const std::size_t end = error.find('\'', quote + 1);
  if (quote == std::string::npos || end == std::string::npos) return "";
  const std::string found = error.substr(quote + 1, end - quote - 1);
  std::vector<Entry> entries;
  flatten(table, "", entries);
  for (const auto& [key, value, line] : entries) {
    // Of a list, one of its parts.
    const bool has = ("," + value + ",").find("," + found + ",") != std::string::npos;
    if (error.starts_with("--" + key + ":") && has) {
      return concat(where, ", line ", line, ": ");
    }
  }
  return "";
}

}  // namespace tritgrad
