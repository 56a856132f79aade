// libFuzzer entry for the C interface: the input chooses calls and their arguments, byte by byte.
// Each call must end in a result or in a sentence. Handles that were closed and arrays that are too
// short are out of the contract, and not tried.
// The handles' header declares tests beside them, whose framework has to be there.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <unistd.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

#include "tests/support/c_caller.h"

namespace {

using tritgrad::test::Caller;
using tritgrad::test::CallerFiles;
using tritgrad::test::kCallTexts;

constexpr int kMostCalls = 24;

// Numbers of three digits make models and runs that take long.
bool asks_for_little(const std::string& text) {
  int digits = 0;
  for (const char c : text) {
    digits = std::isdigit(static_cast<unsigned char>(c)) != 0 ? digits + 1 : 0;
    if (digits > 2) return false;
  }
  return true;
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : next_(reinterpret_cast<const char*>(data)), end_(next_ + size) {}

  bool is_over() const { return next_ == end_; }
  std::size_t below(std::size_t n) {
    std::size_t value = byte();
    if (n > 256) value = 256 * value + byte();
    return value % n;
  }
  // One of the known texts, or what follows up to a zero byte.
  const char* text() {
    constexpr std::size_t kOwn = 128;
    const std::size_t choice = byte();
    if (choice < kOwn) return kCallTexts[choice % kCallTexts.size()];
    std::string own;
    while (!is_over() && *next_ != '\0') own += *next_++;
    byte();
    if (!asks_for_little(own)) return kCallTexts[choice % kCallTexts.size()];
    return texts_.emplace_back(std::move(own)).c_str();
  }

 private:
  std::size_t byte() { return is_over() ? 0 : static_cast<unsigned char>(*next_++); }

  const char *next_, *end_;
  std::deque<std::string> texts_;  // whose elements stay where they are
};

// Specs name files: what is written lies in the folder of the files, and standard input is empty.
const CallerFiles& files() {
  static const CallerFiles kFiles;
  static const bool kPrepared = [] {
    return ::chdir(kFiles.folder.path().c_str()) == 0 &&
           std::freopen("/dev/null", "r", stdin) != nullptr;
  }();
  if (!kPrepared) std::abort();
  return kFiles;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const CallerFiles& prepared = files();
  Input input(data, size);
  Caller caller(prepared, input);
  for (int i = 0; i < kMostCalls && !input.is_over(); ++i) {
    if (caller.call()) continue;
    if (std::strlen(tg_error()) == 0 || tg_error_status() == TG_OK) std::abort();
  }
  return 0;
}
