// The signal of a limit on the size of files (ulimit -f), which would end a program that knows
// nothing of it.
#pragma once

#include <csignal>

namespace tritgrad {

// While it lives, a write of the calling thread that meets the limit fails with EFBIG, as one on a
// full disk does with ENOSPC, and raises no SIGXFSZ, whatever the program does with that signal.
// One that was on its way before still is; the signals that the thread blocks, and errno, are as
// they were.
class HeldFileSizeSignal {
 public:
  HeldFileSizeSignal();
  ~HeldFileSizeSignal();
  HeldFileSizeSignal(const HeldFileSizeSignal&) = delete;
  HeldFileSizeSignal& operator=(const HeldFileSizeSignal&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace tritgrad
