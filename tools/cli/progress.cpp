#include "tools/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "tools/report/number_text.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

constexpr std::chrono::milliseconds kDrawInterval{100};

// Clears the line and goes to its start.
constexpr const char* kEraseLine = "\r\x1b[K";

// A terminal that says nothing of itself, or that it is a simple one, would print them.
bool obeys_escape_sequences() {
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

std::string shown_loss(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4g}", loss) : std::string("not finite");
}

}  // namespace

StatusLine::StatusLine(std::FILE* out, bool quiet)
    : out_(out), enabled_(!quiet && isatty(fileno(out)) == 1 && obeys_escape_sequences()) {}

int StatusLine::width() const {
  winsize size{};
  const bool known = ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : 80) - 1;
}

void StatusLine::show(std::string_view text) {
  if (!enabled_) return;
  std::fputs(fmt::format("{}{:.{}}", kEraseLine, text, width()).c_str(), out_);
  std::fflush(out_);
  drawn_ = true;
}

void StatusLine::clear() {
  if (!drawn_) return;
  std::fputs(kEraseLine, out_);
  std::fflush(out_);
  drawn_ = false;
}

void StatusLine::finish() {
  if (!drawn_) return;
  std::fputs("\n", out_);
  std::fflush(out_);
  drawn_ = false;
}

std::string format_progress(const Progress& progress, int width) {
  enum Part { kEpoch, kStep, kLoss, kSpeed, kLeft, kFieldCount };
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
  for (const Part dropped : {kSpeed, kLeft, kStep, kLoss}) {
    if (display_width(line) <= room) return line;
    fields[dropped].clear();
    line = join();
  }
  return line.substr(0, room);  // only the epoch is left, which is ASCII
}

ProgressLine::ProgressLine(std::FILE* out, bool quiet, int epochs, std::int64_t steps,
                           std::int64_t first_step)
    : line_(out, quiet),
      epochs_(epochs),
      steps_(steps),
      first_step_(first_step),
      start_(Clock::now()),
      next_draw_(start_) {}

void ProgressLine::update(int epoch, std::int64_t step, double loss, std::int64_t examples) {
  if (!line_.enabled()) return;
  const Clock::time_point now = Clock::now();
  if (now < next_draw_ && step < steps_) return;
  next_draw_ = now + kDrawInterval;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double done = static_cast<double>(step - first_step_);
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  Progress progress{epoch, epochs_, step, steps_, loss, kUnknown, kUnknown};
  if (elapsed > 0) progress.examples_per_second = static_cast<double>(examples) / elapsed;
  if (done > 0) progress.seconds_left = elapsed * static_cast<double>(steps_ - step) / done;
  line_.show(format_progress(progress, line_.width()));
}

}  // namespace tritgrad
