// A disk that is full, as far as the system lets one test pretend it.
#pragma once

#include <sys/resource.h>

namespace tritgrad::test {

// No file of this process can grow beyond so many bytes while it lives. The signal that the system
// sends is left as it is: it would end the tests.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

}  // namespace tritgrad::test
