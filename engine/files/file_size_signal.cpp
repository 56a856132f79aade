#include "engine/files/file_size_signal.h"

#include <cerrno>
#include <ctime>

namespace tritgrad {
namespace {

sigset_t file_size_signal() {
  sigset_t signals{};
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

}  // namespace

HeldFileSizeSignal::HeldFileSizeSignal() {
  sigset_t pending{};
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
  const sigset_t held = file_size_signal();
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

// The system sends it to the thread that writes, and keeps it even where it is ignored, as it is
// blocked; so it waits here, and only here.
HeldFileSizeSignal::~HeldFileSizeSignal() {
  const int reason = errno;  // of the write
  const sigset_t held = file_size_signal();
  const timespec now{};
  while (!was_pending_ && sigtimedwait(&held, nullptr, &now) < 0 && errno == EINTR) continue;
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = reason;
}

}  // namespace tritgrad
