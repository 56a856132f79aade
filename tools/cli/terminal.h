// What the program says on a terminal: errors, warnings, and lines that are drawn over and over,
// which are silent in pipes, log files and when quiet.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "engine/clock.h"

namespace tritgrad {

// Prints "tritgrad: SENTENCE" on standard error in one piece, so that those of several ranks stay
// apart, and names the rank where there are several. Returns the exit code of a program that
// failed.
int print_error(const std::string& sentence);

// Returns the text with '?' in place of control characters, except those that end lines.
std::string printable_lines(std::string_view text);

// Prints lines in one piece. Names of files, columns and classes may hold control characters; none
// but line breaks reaches the terminal. What other programs read is not to be printed so.
template <typename... Args>
void print_lines(std::FILE* out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::print(out, "{}", printable_lines(fmt::format(format, std::forward<Args>(args)...)));
}

// Prints "warning: recipe 'NAME': SENTENCE" on standard error in one piece.
void print_recipe_warning(const std::string& name, const std::string& sentence);

// A line that says what is going on.
class StatusLine {
 public:
  // Draws on `out` (stderr in the command line) only if that is a terminal that TERM calls more
  // than a dumb one, and `quiet` is false.
  StatusLine(std::FILE* out, bool quiet);
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool enabled() const { return enabled_; }
  // Terminal cells that text may fill. The last cell of the line stays free, as writing there makes
  // some terminals wrap.
  int width() const;

  // Draws the text over the last one and leaves out what does not fit.
  void show(std::string_view text);
  // Erases the line so that something else may be printed.
  void clear();
  // Ends the line with a newline and keeps what it said.
  void finish();

 private:
  void leave(const char* with);

  std::FILE* out_;
  bool enabled_;
  bool drawn_ = false;
};

struct Progress {
  int epoch = 0;
  int epochs = 0;
  std::int64_t step = 0;  // over the whole run
  std::int64_t steps = 0;
  double loss = 0;
  double examples_per_second = 0;
  double seconds_left = 0;
};

// "epoch 3/10  step 1200/4690  loss 0.0812  42.1k examples/s  0:37 left" in at most `width`
// terminal cells: the speed goes first, then the time left, then the step, then the loss.
std::string format_progress(const Progress& progress, int width);

// A line that says how far training is; the next update draws it again after clear().
class ProgressLine : public StatusLine {
 public:
  // A resumed run starts at `first_step`, so that speed and time left are those of this process.
  ProgressLine(std::FILE* out, bool quiet, int epochs, std::int64_t steps,
               std::int64_t first_step = 0);
  // Leaves the cursor at the start of a fresh line.
  ~ProgressLine() { finish(); }

  // Cheap when called every step: draws ten times a second at most, and always at the last step.
  // `examples` counts those seen since the line was made.
  void update(int epoch, std::int64_t step, double loss, std::int64_t examples);

 private:
  int epochs_;
  std::int64_t steps_;
  std::int64_t first_step_;
  Clock::time_point start_;
  Clock::time_point next_draw_;
};

}  // namespace tritgrad
