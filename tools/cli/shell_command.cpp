#include "tools/cli/shell_command.h"

#include <CLI/CLI.hpp>

namespace tritgrad {

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
    } else {
      for (const std::string& value : option->results()) text += name + " " + shell_quoted(value);
    }
  }
  return text;
}

}  // namespace tritgrad
