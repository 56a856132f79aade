#include "tools/cli/progress.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "tools/cli/terminal.h"
#include "tools/report/number_text.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

constexpr std::chrono::milliseconds kDrawInterval{100};

std::string shown_loss(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4g}", loss) : std::string("not finite");
}

}  // namespace

std::string format_progress(const Progress& progress, int width) {
  enum Field { kEpoch, kStep, kLoss, kSpeed, kLeft, kFieldCount };
  std::array<std::string, kFieldCount> fields;
  fields[kEpoch] = fmt::format("epoch {}/{}", progress.epoch, progress.epochs);
  fields[kStep] = fmt::format("step {}/{}", progress.step, progress.steps);
  fields[kLoss] = "loss " + shown_loss(progress.loss);
  fields[kSpeed] = human_count(progress.examples_per_second, "") + " examples/s";
  fields[kLeft] = duration(progress.seconds_left) + " left";

  const auto join = [&fields] {
    std::string line;
    for (const std::string& field : fields) {
      if (!field.empty()) line += (line.empty() ? "" : "  ") + field;
    }
    return line;
  };
  const std::size_t room = width > 0 ? static_cast<std::size_t>(width) : 0;
  std::string line = join();
  for (const Field dropped : {kSpeed, kLeft, kStep, kLoss}) {
    if (display_width(line) <= room) return line;
    fields[dropped].clear();
    line = join();
  }
  return line.substr(0, room);  // only the epoch is left, which is ASCII
}

ProgressLine::ProgressLine(std::FILE* out, bool quiet, int epochs, std::int64_t steps,
                           std::int64_t first_step)
    : out_(out),
      enabled_(!quiet && is_terminal(out)),
      epochs_(epochs),
      steps_(steps),
      first_step_(first_step),
      start_(Clock::now()),
      next_draw_(start_) {}

ProgressLine::~ProgressLine() { finish(); }

void ProgressLine::update(int epoch, std::int64_t step, double loss, std::int64_t examples) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_draw_ && step < steps_) return;
  next_draw_ = now + kDrawInterval;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double done = static_cast<double>(step - first_step_);
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  Progress progress{epoch, epochs_, step, steps_, loss, kUnknown, kUnknown};
  if (elapsed > 0) progress.examples_per_second = static_cast<double>(examples) / elapsed;
  if (done > 0) progress.seconds_left = elapsed * static_cast<double>(steps_ - step) / done;
  const std::string line = format_progress(progress, line_width(out_));
  std::fprintf(out_, "%s%s", kEraseLine, line.c_str());
  std::fflush(out_);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  std::fputs(kEraseLine, out_);
  std::fflush(out_);
  drawn_ = false;
}

void ProgressLine::finish() {
  if (!drawn_) return;
  std::fputs("\n", out_);
  std::fflush(out_);
  drawn_ = false;
}

}  // namespace tritgrad
