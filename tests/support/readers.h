// Tests of exports need programs that read them, which are not on every machine.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

namespace tritgrad::test {

// Says that a test leaves something out because `what` is not installed. It fails instead where
// TRITGRAD_READERS is `required`, as in continuous integration, which installs all readers.
inline void skip_or_fail(const std::string& what) {
  std::cout << "skipped: " << what << " is not installed\n";
  const char* readers = std::getenv("TRITGRAD_READERS");
  if (readers != nullptr && std::string_view(readers) == "required") {
    FAIL("TRITGRAD_READERS is 'required', but " << what << " is not installed");
  }
}

}  // namespace tritgrad::test
