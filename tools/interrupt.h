// Ctrl-C as a request to end in good order.
#pragma once

#include "engine/check.h"

namespace tritgrad {

// The work was ended by the user, not by a mistake.
class Interrupted : public Error {
 public:
  using Error::Error;
};

// While it lives, the first SIGINT is noted; a second one ends the process at once, as everywhere
// else. One at a time; other processes of a job are not told, so ranks should have none.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool interrupted() const;
};

}  // namespace tritgrad
