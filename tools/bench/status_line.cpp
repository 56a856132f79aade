#include "tools/bench/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace tritgrad {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

StatusLine::StatusLine(std::FILE* out, bool quiet)
    : out_(out), enabled_(!quiet && isatty(fileno(out)) == 1) {}

StatusLine::~StatusLine() {
  if (enabled_) show("");
}

void StatusLine::show(std::string_view text) {
  if (!enabled_) return;
  winsize size{};
  const bool known = ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  // The last cell stays free: writing there makes some terminals wrap.
  const std::string_view shown = text.substr(0, known ? size.ws_col - 1u : 79u);
  std::fprintf(out_, "%s%.*s", kClearLine, static_cast<int>(shown.size()), shown.data());
  std::fflush(out_);
}

}  // namespace tritgrad
