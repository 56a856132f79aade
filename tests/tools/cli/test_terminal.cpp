#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

#include "tools/cli/terminal.h"
#include "tools/report/table.h"

namespace tritgrad::test::test_terminal {
namespace {

const Progress kSample{3, 10, 1200, 4690, 0.0812, 42100, 37};

// Both ends of a terminal that exists only for the test.
class FakeTerminal {
 public:
  // `term`: what TERM says while it lives; null: nothing.
  explicit FakeTerminal(unsigned short width, const char* term = "xterm")
      : near_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (const char* before = std::getenv("TERM")) term_before_ = before;
    set_term(term);
    REQUIRE(near_ >= 0);
    REQUIRE(grantpt(near_) == 0);
    REQUIRE(unlockpt(near_) == 0);
    out_ = std::fopen(ptsname(near_), "w");
    REQUIRE(out_ != nullptr);
    winsize size{};
    size.ws_col = width;
    size.ws_row = 24;
    REQUIRE(ioctl(fileno(out_), TIOCSWINSZ, &size) == 0);
  }
  ~FakeTerminal() {
    std::fclose(out_);
    close(near_);
    set_term(term_before_ ? term_before_->c_str() : nullptr);
  }
  FakeTerminal(const FakeTerminal&) = delete;
  FakeTerminal& operator=(const FakeTerminal&) = delete;

  std::FILE* out() { return out_; }
  // What was drawn since the last call; the terminal turns "\n" into "\r\n".
  std::string drawn() {
    std::string text;
    char bytes[4096];
    for (pollfd ready{near_, POLLIN, 0}; poll(&ready, 1, 50) > 0;) {
      const ssize_t count = read(near_, bytes, sizeof bytes);
      if (count <= 0) break;
      text.append(bytes, static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  static void set_term(const char* term) {
    if (term == nullptr) {
      unsetenv("TERM");
    } else {
      setenv("TERM", term, 1);
    }
  }

  int near_;
  std::FILE* out_ = nullptr;
  std::optional<std::string> term_before_;
};

TEST_CASE("progress: the whole line when there is room") {
  CHECK(format_progress(kSample, 80) ==
        "epoch 3/10  step 1200/4690  loss 0.0812  42.1k examples/s  0:37 left");
}

TEST_CASE("progress: fields go one by one and the line never exceeds the width") {
  CHECK(format_progress(kSample, 66) == "epoch 3/10  step 1200/4690  loss 0.0812  0:37 left");
  CHECK(format_progress(kSample, 45) == "epoch 3/10  step 1200/4690  loss 0.0812");
  CHECK(format_progress(kSample, 30) == "epoch 3/10  loss 0.0812");
  CHECK(format_progress(kSample, 12) == "epoch 3/10");
  for (int width = -1; width <= 100; ++width) {
    const std::size_t room = width > 0 ? static_cast<std::size_t>(width) : 0;
    CHECK(display_width(format_progress(kSample, width)) <= room);
  }
}

TEST_CASE("progress: unknown and broken numbers are said, not printed as nan") {
  Progress progress = kSample;
  progress.loss = std::numeric_limits<double>::quiet_NaN();
  progress.examples_per_second = progress.seconds_left = std::numeric_limits<double>::infinity();
  CHECK(format_progress(progress, 80) ==
        "epoch 3/10  step 1200/4690  loss not finite  – examples/s  – left");
}

TEST_CASE("progress: nothing is written to a file") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    ProgressLine line(file, false, 10, 100);
    line.update(1, 100, 0.5, 1000);
    line.clear();
    line.finish();
  }
  CHECK(std::ftell(file) == 0);
  std::fclose(file);
}

TEST_CASE("progress: a terminal gets the line, and a newline at the end") {
  FakeTerminal terminal(100);
  {
    ProgressLine line(terminal.out(), false, 10, 4690);
    line.update(3, 1200, 0.0812, 153600);
    const std::string drawn = terminal.drawn();
    CHECK(drawn.rfind("\r\x1b[Kepoch 3/10  step 1200/4690  loss 0.0812", 0) == 0);
    CHECK(drawn.find('\n') == std::string::npos);
    line.clear();
    CHECK(terminal.drawn() == "\r\x1b[K");
    line.update(10, 4690, 0.01, 600320);
    CHECK(terminal.drawn().find("step 4690/4690") != std::string::npos);
  }
  CHECK(terminal.drawn() == "\r\n");
}

TEST_CASE("progress: quiet is silent even on a terminal") {
  FakeTerminal terminal(100);
  {
    ProgressLine line(terminal.out(), true, 10, 100);
    line.update(10, 100, 0.5, 1000);
  }
  CHECK(terminal.drawn().empty());
}

TEST_CASE("progress: a terminal that knows no escape sequences gets none") {
  for (const char* term : {"dumb", "", static_cast<const char*>(nullptr)}) {
    FakeTerminal terminal(100, term);
    {
      ProgressLine line(terminal.out(), false, 10, 100);
      line.update(10, 100, 0.5, 1000);
    }
    CHECK(terminal.drawn().empty());
  }
}

TEST_CASE("progress: updates in quick succession are drawn ten times a second at most") {
  FakeTerminal terminal(100);
  const auto start = std::chrono::steady_clock::now();
  ProgressLine line(terminal.out(), false, 1, 1000000);
  for (int step = 1; step <= 10000; ++step) line.update(1, step, 0.5, step);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string drawn = terminal.drawn();
  const auto draws = std::count(drawn.begin(), drawn.end(), '\r');
  CHECK(draws >= 1);
  // One at once, then one for each whole tenth of a second that passed.
  CHECK(static_cast<double>(draws) <= 1.0 + seconds / 0.1);
}

TEST_CASE("progress: a narrow terminal keeps its last cell free") {
  FakeTerminal terminal(24);
  ProgressLine line(terminal.out(), false, 10, 4690);
  line.update(3, 1200, 0.0812, 153600);
  CHECK(terminal.drawn() == "\r\x1b[Kepoch 3/10  loss 0.0812");
}

TEST_CASE("progress: a status line leaves out what does not fit, and nothing behind") {
  FakeTerminal terminal(11);
  {
    StatusLine line(terminal.out(), false);
    line.show("round 1/7  fp32");
    CHECK(terminal.drawn() == "\r\x1b[Kround 1/7 ");
  }
  CHECK(terminal.drawn() == "\r\x1b[K");
  StatusLine quiet(terminal.out(), true);
  quiet.show("round 1/7");
  CHECK(terminal.drawn().empty());
}

}  // namespace
}  // namespace tritgrad::test::test_terminal
