// The --log file of a run, also where the disk is full.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/full_disk.h"
#include "tests/support/support_files.h"
#include "tools/cli/training_observer.h"

namespace tritgrad::test::test_training_observer {
TEST_CASE("run log: on a full disk it is an error, and no empty file is left") {
  const TempDir folder;
  const std::string path = folder / "run.jsonl";
  for (const bool first : {true, false}) {
    OutputFile file("--log", path, nullptr);
    RunLog log(file, 1, {});
    if (!first) log.write({1, 0.5, 0.5, {}});
    const auto written = first ? 0 : std::filesystem::file_size(path);
    std::string message;
    {
      const FullDisk full(written);
      message = refusal([&] { log.write({2, 0.5, 0.5, {}}); });
    }
    CHECK(message == (first
                          ? path + ": cannot be written: File too large; what was there before is "
                                   "as it was"
                          : "--log: '" + path +
                                "' cannot be written (File too large); what was "
                                "written before stays"));
    CHECK(std::filesystem::exists(path) == !first);  // what was logged stays
  }
}

TEST_CASE("run log: an older one stays until an epoch is over, or the run without one") {
  const TempDir folder;
  const std::string path = folder.write("run.jsonl", "older\n");
  OutputFile file("--log", path, nullptr);
  { const RunLog failed(file, 1, {}); }
  CHECK(read_text(path) == "older\n");
  RunLog log(file, 1, {{1, 0.5, 0.5, {}}});
  CHECK(read_text(path) == "older\n");
  log.write({2, 0.25, 0.75, {}});
  const std::string epochs = read_text(path);
  CHECK(std::count(epochs.begin(), epochs.end(), '\n') == 2);  // with the one before this run
  log.end();
  CHECK(read_text(path) == epochs);
}

TEST_CASE("run log: a run without an epoch leaves an empty one") {
  const TempDir folder;
  OutputFile file("--log", folder.write("run.jsonl", "older\n"), nullptr);
  RunLog(file, 1, {}).end();
  CHECK(read_text(folder / "run.jsonl").empty());
}

TEST_CASE("run log: an older one stays when the disk is full, however many epochs come") {
  const TempDir folder;
  const std::string path = folder.write("run.jsonl", "older\n");
  OutputFile file("--log", path, nullptr);
  RunLog log(file, 1, {{1, 0.5, 0.5, {}}});
  std::string message;
  {
    const FullDisk full(8);
    message = refusal([&] { log.write({2, 0.5, 0.5, {}}); });
  }
  CHECK(message ==
        path + ": cannot be written: File too large; what was there before is as it was");
  CHECK(read_text(path) == "older\n");
}

}  // namespace tritgrad::test::test_training_observer
