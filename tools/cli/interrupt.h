// Ctrl-C, the SIGTERM of a scheduler or the SIGHUP of a closed terminal, as a request to end in
// good order.
#pragma once

#include <string>

#include "models/training/observer.h"

namespace tritgrad {

// The signal that was noted last; 0: none.
int noted_signal();

// While a watch lives, the first signal of each kind is noted; a second one of its kind ends the
// process at once, as everywhere else. Watches within another one see what it has noted: a command
// keeps one for all of its runs, so that none is begun after a signal that came between two. Other
// processes of a job are not told, so ranks should have none. One thread makes and ends all watches
// of a process; any thread may ask.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool interrupted() const;
  // Throws Interrupted("interrupted; " and what became of the work) if it was.
  void end_if_interrupted(const std::string& outcome) const;
};

}  // namespace tritgrad
