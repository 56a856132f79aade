// A study is written as a whole or not at all.
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "tests/support/program.h"
#include "tests/support/support_files.h"
#include "tools/study/study_files.h"

namespace tritgrad::test::test_reproduce_files {
namespace {

const StudyFiles kNew = {{"a.csv", "new a"}, {"b.svg", "new b"}, {"index.html", "new page"}};

using Contents = std::map<std::string, std::string>;

Contents contents_of(const TempDir& folder) {
  Contents contents;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    contents[entry.path().filename().string()] = read_text(entry.path());
  }
  return contents;
}

Contents write_old(const TempDir& folder) {
  write_text(folder / "a.csv", "old a");
  write_text(folder / "index.html", "old page");
  write_text(folder / "mine.txt", "of the user");
  return contents_of(folder);
}

}  // namespace

TEST_CASE("reproduce: a new study replaces an older one and nothing else") {
  const TempDir folder;
  write_old(folder);
  write_study(folder.path(), kNew);
  CHECK(contents_of(folder) == Contents{{"a.csv", "new a"},
                                        {"b.svg", "new b"},
                                        {"index.html", "new page"},
                                        {"mine.txt", "of the user"}});
}

TEST_CASE("reproduce: a disk that is full leaves the older study, and nothing of the new one") {
  const FileCalls real;
  for (const bool at_sync : {false, true}) {
    for (int good = 0; good < 3; ++good) {
      CAPTURE(at_sync);
      CAPTURE(good);
      const TempDir folder;
      const Contents before = write_old(folder);
      int count = 0;
      FileCalls calls;
      const auto full = [&] {
        errno = ENOSPC;
        return ++count > good;
      };
      if (at_sync) {
        calls.fsync = [&](int file) { return full() ? -1 : real.fsync(file); };
      } else {
        calls.write = [&](int file, const void* data, std::size_t bytes) -> std::ptrdiff_t {
          return full() ? -1 : real.write(file, data, bytes);
        };
      }
      const std::string message = refusal([&] { write_study(folder.path(), kNew, calls); });
      CHECK(contains(message, kNew[static_cast<std::size_t>(good)].first));
      CHECK(contains(message, std::strerror(ENOSPC)));
      CHECK(contents_of(folder) == before);
    }
  }
}

TEST_CASE("reproduce: while names change there is no page") {
  const TempDir folder;
  write_old(folder);
  const FileCalls real;
  FileCalls calls;
  calls.rename = [&](const char* from, const char* to) {
    CHECK_FALSE(std::filesystem::exists(folder / "index.html"));
    return real.rename(from, to);
  };
  write_study(folder.path(), kNew, calls);
  CHECK(read_text(folder / "index.html") == "new page");

  // A page that is a link stays one.
  std::filesystem::rename(folder / "index.html", folder / "page.html");
  std::filesystem::create_symlink("page.html", folder / "index.html");
  write_study(folder.path(), {{"index.html", "newer"}});
  CHECK(std::filesystem::is_symlink(folder / "index.html"));
  CHECK(read_text(folder / "page.html") == "newer");
}

TEST_CASE("cli: reproduce writes a whole study, and refuses before it works") {
  using test::check_refused;
  CHECK(contains(test::run("reproduce --help").out, "--config TEXT"));
  check_refused("reproduce microadm", "did you mean 'microadam'");
  check_refused("reproduce microadam --epochs 1", "--epochs");
  const TempDir folder;
  write_text(folder / "file", "");
  const auto out_option = [&](const char* name) { return "--out " + (folder / name).string(); };
  check_refused("reproduce microadam " + out_option("file"), "is a file; name a folder");
  for (const char* name : {"file/below", "missing/below"}) {
    check_refused("reproduce microadam " + out_option(name), "--out: there is no folder '");
  }
  CHECK_FALSE(std::filesystem::exists(folder / "missing"));

  const std::string command =
      "reproduce microadam --epochs 2 --seeds 1 --largest 10000 " + out_option("study");
#ifndef TRITGRAD_THREAD_SANITIZED  // which itself needs a file of 512 KiB, as the program starts
  // The last file, the page, is the largest by far: 100 KiB hold all others.
  const std::string limited = "trap '' XFSZ; ulimit -f 200;";
  check_refused(command, std::strerror(EFBIG), limited);
  CHECK_FALSE(std::filesystem::exists(folder / "study"));
#endif

  const test::Result result = test::run(command + "/");
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());  // no progress in a pipe
  CHECK(result.out.starts_with((folder / "study/index.html").string()));
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 1);
  for (const char* name : {"index.html", "figure3.csv", "figure8.csv", "numbers.csv",
                           "autocorrelation.csv", "figure3-1.svg", "figure9-6.svg"}) {
    CAPTURE(name);
    CHECK(std::filesystem::file_size(folder / "study" / name) > 0);
  }
  // The page holds all pictures.
  std::uintmax_t pictures = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "study")) {
    if (entry.path().extension() == ".svg") pictures += entry.file_size();
  }
  CHECK(pictures > 0);
  CHECK(std::filesystem::file_size(folder / "study/index.html") > pictures);
}

}  // namespace tritgrad::test::test_reproduce_files
