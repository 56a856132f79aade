#include "tools/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>

namespace tritgrad {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};

std::atomic<int> noted = 0;                            // the signal; 0: none
static_assert(std::atomic<int>::is_always_lock_free);  // or no signal handler could set it
int watches = 0;
std::array<struct sigaction, kSignals.size()> before;

}  // namespace

Interrupted::Interrupted(const std::string& message) : Error(message), signal_(noted) {}

InterruptWatch::InterruptWatch() {
  if (watches++ > 0) return;
  noted = 0;
  struct sigaction note = {};
  note.sa_handler = [](int signal) { noted = signal; };
  note.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    // Where the signal is ignored, as for background jobs of a shell, it stays so.
    if (sigaction(kSignals[i], nullptr, &before[i]) != 0) continue;
    if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &note, nullptr);
  }
}

InterruptWatch::~InterruptWatch() {
  if (--watches > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
}

bool InterruptWatch::interrupted() const { return noted != 0; }

void InterruptWatch::end_if_interrupted(const std::string& outcome) const {
  if (interrupted()) throw Interrupted(concat("interrupted; ", outcome));
}

}  // namespace tritgrad
