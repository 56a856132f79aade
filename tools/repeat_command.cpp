#include "tools/repeat_command.h"

namespace tritgrad {
namespace {

// As a shell wants it.
std::string shell_quoted(const std::string& value) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@";
  if (!value.empty() && value.find_first_not_of(kPlain) == std::string::npos) return value;
  std::string text = "'";
  for (char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string repeat_command(const CLI::App& app) {
  std::string text = "tritgrad " + app.get_name();
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
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
