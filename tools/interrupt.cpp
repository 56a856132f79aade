#include "tools/interrupt.h"

#include <csignal>

namespace tritgrad {
namespace {

volatile std::sig_atomic_t noted = 0;
int watches = 0;
struct sigaction before;

}  // namespace

InterruptWatch::InterruptWatch() {
  if (watches++ > 0) return;
  noted = 0;
  // Where the signal is ignored, as for background jobs of a shell, it stays so.
  if (sigaction(SIGINT, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  struct sigaction note = {};
  note.sa_handler = [](int) { noted = 1; };
  note.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &note, nullptr);
}

InterruptWatch::~InterruptWatch() {
  if (--watches == 0) sigaction(SIGINT, &before, nullptr);
}

bool InterruptWatch::interrupted() const { return noted != 0; }

}  // namespace tritgrad
