#include "tools/interrupt.h"

#include <atomic>
#include <csignal>

namespace tritgrad {
namespace {

std::atomic<bool> noted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // or no signal handler could set it
int watches = 0;
struct sigaction before;

}  // namespace

InterruptWatch::InterruptWatch() {
  if (watches++ > 0) return;
  noted = false;
  // Where the signal is ignored, as for background jobs of a shell, it stays so.
  if (sigaction(SIGINT, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  struct sigaction note = {};
  note.sa_handler = [](int) { noted = true; };
  note.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &note, nullptr);
}

InterruptWatch::~InterruptWatch() {
  if (--watches == 0) sigaction(SIGINT, &before, nullptr);
}

bool InterruptWatch::interrupted() const { return noted; }

void InterruptWatch::end_if_interrupted(const std::string& outcome) const {
  if (interrupted()) throw Interrupted(concat("interrupted; ", outcome));
}

}  // namespace tritgrad
