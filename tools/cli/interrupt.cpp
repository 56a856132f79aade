#include "tools/cli/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>

namespace tritgrad {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> noted = 0;                            // the signal; 0: none
static_assert(std::atomic<int>::is_always_lock_free);  // or no signal handler could set it
int watches = 0;
std::array<struct sigaction, kSignals.size()> before;

// A handler must not use the stack of what it interrupts: kernels of oneDNN (2.6, sgemm with an
// untransposed second matrix) keep pointers below the 128 bytes that a handler leaves alone, and
// went on with what it had left there. Signals to a process go to its first thread, which makes the
// watch. Large enough for all registers of a processor with AMX, 11 KiB.
void give_handlers_a_stack() {
  alignas(64) static std::array<std::byte, 64 * 1024> memory;
  stack_t stack = {};
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
}

}  // namespace

int noted_signal() { return noted; }

InterruptWatch::InterruptWatch() {
  if (watches++ > 0) return;
  noted = 0;
  give_handlers_a_stack();
  struct sigaction note = {};
  note.sa_handler = [](int signal) { noted = signal; };
  note.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART | SA_ONSTACK);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    // A signal that is ignored, as in background jobs of a shell, stays ignored.
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
