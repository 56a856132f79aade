// One line on a terminal that says how far training is; silent in pipes, log files and when quiet.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/clock.h"

namespace tritgrad {

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

class ProgressLine {
 public:
  // Draws on `out` (stderr in the command line) only if that is a terminal and `quiet` is false. A
  // resumed run starts at `first_step`, so that speed and time left are those of this process.
  ProgressLine(std::FILE* out, bool quiet, int epochs, std::int64_t steps,
               std::int64_t first_step = 0);
  // Leaves the cursor at the start of a fresh line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Cheap when called every step: draws ten times a second at most, and always at the last step.
  // `examples` counts those seen since the line was made.
  void update(int epoch, std::int64_t step, double loss, std::int64_t examples);
  // Erases the line so that something else may be printed; the next update draws it again.
  void clear();
  // Ends the line with a newline and keeps what it said.
  void finish();

 private:
  std::FILE* out_;
  bool enabled_;
  bool drawn_ = false;
  int epochs_;
  std::int64_t steps_;
  std::int64_t first_step_;
  Clock::time_point start_;
  Clock::time_point next_draw_;
};

}  // namespace tritgrad
