// What is being measured, on one line of a terminal; silent in pipes, log files and when quiet.
#pragma once

#include <cstdio>
#include <string_view>

namespace tritgrad {

class StatusLine {
 public:
  // Draws on `out` only if that is a terminal and `quiet` is false.
  StatusLine(std::FILE* out, bool quiet);
  // Leaves nothing behind.
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // `text` is ASCII; what does not fit the terminal is left out.
  void show(std::string_view text);

 private:
  std::FILE* out_;
  bool enabled_;
};

}  // namespace tritgrad
