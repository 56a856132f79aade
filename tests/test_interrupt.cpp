// Ctrl-C ends a run in good order: saved, explained, and continued as if nothing had happened.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "engine/open_dataset.h"
#include "tests/program.h"
#include "tests/support_files.h"
#include "tools/interrupt.h"
#include "tools/train.h"

namespace tritgrad::test {
namespace {

// What the run says that SIGINT ended, or "" when it came to its own end. The signal comes when the
// run has saved for the first time, so it is surely under way.
std::string interrupted_run(const Dataset& dataset, const TrainOptions& options) {
  std::thread sender([&] {
    while (!std::filesystem::exists(options.save)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(::getpid(), SIGINT);
  });
  std::string said;
  try {
    train(dataset, options);
  } catch (const Interrupted& end) {
    said = end.what();
  }
  sender.join();
  return said;
}

}  // namespace

TEST_CASE("interrupt: a run that is interrupted is saved, and goes on as if it had not been") {
  const Dataset iris = open_dataset("iris", {});
  const TempDir folder;
  TrainOptions options;
  options.data = "iris";
  options.model = "mlp:8";
  options.recipe = "latent8";
  options.epochs = 1000000;
  options.batch = 16;
  options.quiet = true;
  options.save = (folder / "it's mine.safetensors").string();
  options.save_every = 1;
  const std::string said = interrupted_run(iris, options);
  CAPTURE(said);
  REQUIRE(contains(said, "interrupted after step "));
  CHECK(contains(said, " of 8000000; saved; to go on: tritgrad train --resume '" +
                           (folder / "it").string() + "'\\''s mine.safetensors'"));
  const std::int64_t step = std::stoll(said.substr(std::string("interrupted after step ").size()));

  TrainOptions rest = options;
  rest.resume = options.save;
  rest.stop_after = step + 5;
  TrainOptions whole = options;
  whole.save = (folder / "whole.safetensors").string();
  whole.save_every = 0;
  whole.stop_after = step + 5;
  CHECK(train(iris, rest).weights_sha256 == train(iris, whole).weights_sha256);
}

TEST_CASE("interrupt: the signal is the process's own again when the watch is over") {
  const auto previous = std::signal(SIGINT, SIG_DFL);
  {
    const InterruptWatch watch;
    CHECK_FALSE(watch.interrupted());
    std::raise(SIGINT);
    CHECK(watch.interrupted());
  }
  CHECK((std::signal(SIGINT, SIG_IGN) == SIG_DFL));
  {
    // Whoever has the signal ignored, as nohup and a shell's background jobs do, wants it ignored.
    const InterruptWatch watch;
    std::raise(SIGINT);
    CHECK_FALSE(watch.interrupted());
  }
  CHECK((std::signal(SIGINT, previous) == SIG_IGN));
}

TEST_CASE("interrupt: the program says so and exits with 130") {
  const std::string endless = "train --data iris --model mlp:8 --epochs 1000000 --quiet";
  const Result train = run(endless, "timeout --foreground --preserve-status --signal=INT 3");
  CHECK(train.exit_code == 130);
  CHECK(contains(train.err, "interrupted after step "));
  CHECK(contains(train.err, "nothing was saved, as --save was not given"));
}

}  // namespace tritgrad::test
