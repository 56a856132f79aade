#include "tools/cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "engine/text.h"
#include "optim/parallel/communicator.h"
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

int print_error(const std::string& sentence) {
  const std::string rank = launched_ranks() > 1 ? fmt::format("rank {}: ", launched_rank()) : "";
  std::fputs(fmt::format("tritgrad: {}{}\n", rank, printable(sentence)).c_str(), stderr);
  return 1;
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    lines += printable(text.substr(0, end)) + "\n";
    text.remove_prefix(end + 1);
  }
  return lines + printable(text);
}

void print_recipe_warning(const std::string& name, const std::string& sentence) {
  const std::string text = fmt::format("warning: recipe '{}': {}", name, sentence);
  std::fputs((printable(text) + "\n").c_str(), stderr);
}

StatusLine::StatusLine(std::FILE* out, bool quiet)
    : out_(out), enabled_(!quiet && isatty(fileno(out)) == 1 && obeys_escape_sequences()) {}

int StatusLine::width() const {
  winsize size{};
  const bool known = ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : 80) - 1;
}

void StatusLine::show(std::string_view text) {
  if (!enabled_) return;
  std::fputs(fmt::format("{}{:.{}}", kEraseLine, printable(text), width()).c_str(), out_);
  std::fflush(out_);
  drawn_ = true;
}

void StatusLine::leave(const char* with) {
  if (!drawn_) return;
  std::fputs(with, out_);
  std::fflush(out_);
  drawn_ = false;
}

void StatusLine::clear() { leave(kEraseLine); }

void StatusLine::finish() { leave("\n"); }

std::string format_progress(const Progress& progress, int width) {
  enum Part { kEpoch, kStep, kLoss, kSpeed, kLeft, kPartCount };
  std::array<std::string, kPartCount> parts = {
      fmt::format("epoch {}/{}", progress.epoch, progress.epochs),
      fmt::format("  step {}/{}", progress.step, progress.steps),
      "  loss " + shown_loss(progress.loss),
      "  " + human_count(progress.examples_per_second, "") + " examples/s",
      "  " + duration(progress.seconds_left) + " left"};
  const std::size_t room = width > 0 ? static_cast<std::size_t>(width) : 0;
  std::string line = fmt::format("{}", fmt::join(parts, ""));
  for (const Part dropped : {kSpeed, kLeft, kStep, kLoss}) {
    if (display_width(line) <= room) return line;
    parts[dropped].clear();
    line = fmt::format("{}", fmt::join(parts, ""));
  }
  return line.substr(0, room);  // only the epoch is left, which is ASCII
}

ProgressLine::ProgressLine(std::FILE* out, bool quiet, int epochs, std::int64_t steps,
                           std::int64_t first_step)
    : StatusLine(out, quiet),
      epochs_(epochs),
      steps_(steps),
      first_step_(first_step),
      start_(Clock::now()),
      next_draw_(start_) {}

void ProgressLine::update(int epoch, std::int64_t step, double loss, std::int64_t examples) {
  if (!enabled()) return;
  const Clock::time_point now = Clock::now();
  if (now < next_draw_ && step < steps_) return;
  next_draw_ = now + kDrawInterval;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double done = static_cast<double>(step - first_step_);
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  Progress progress{epoch, epochs_, step, steps_, loss, kUnknown, kUnknown};
  if (elapsed > 0) progress.examples_per_second = static_cast<double>(examples) / elapsed;
  if (done > 0) progress.seconds_left = elapsed * static_cast<double>(steps_ - step) / done;
  show(format_progress(progress, width()));
}

}  // namespace tritgrad
