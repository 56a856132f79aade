#include "tools/bench/status_line.h"

#include "tools/cli/terminal.h"

namespace tritgrad {

StatusLine::StatusLine(std::FILE* out, bool quiet)
    : out_(out), enabled_(!quiet && is_terminal(out)) {}

StatusLine::~StatusLine() {
  if (enabled_) show("");
}

void StatusLine::show(std::string_view text) {
  if (!enabled_) return;
  const std::string_view shown = text.substr(0, static_cast<std::size_t>(line_width(out_)));
  std::fprintf(out_, "%s%.*s", kEraseLine, static_cast<int>(shown.size()), shown.data());
  std::fflush(out_);
}

}  // namespace tritgrad
