#include "tools/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace tritgrad {

bool is_terminal(std::FILE* out) { return isatty(fileno(out)) == 1; }

int line_width(std::FILE* out) {
  winsize size{};
  const bool known = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return (known ? size.ws_col : 80) - 1;
}

}  // namespace tritgrad
