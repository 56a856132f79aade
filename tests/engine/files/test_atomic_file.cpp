#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/files/atomic_file.h"
#include "tests/support/full_disk.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_atomic_file {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The Error's text, or nothing when the file was replaced.
std::optional<std::string> error_of(const std::filesystem::path& path, std::string_view text,
                                    const FileCalls& calls = {}) {
  try {
    replace_file(path, bytes_of(text), calls);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

bool mentions(const std::optional<std::string>& message, std::string_view part) {
  return message && message->find(part) != std::string::npos;
}

std::size_t entries_in(const TempDir& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++count;
  }
  return count;
}

bool is_pending(int signal) {
  sigset_t signals{};
  ::sigpending(&signals);
  return ::sigismember(&signals, signal) == 1;
}

bool is_blocked(int signal) {
  sigset_t signals{};
  ::pthread_sigmask(SIG_BLOCK, nullptr, &signals);
  return ::sigismember(&signals, signal) == 1;
}

// The effects of a failed replacement: told with path and reason, old file intact, nothing left
// over.
void check_refused(const FileCalls& calls, int reason) {
  const TempDir folder;
  const auto path = folder / "model";
  write_text(path, "old");
  const auto message = error_of(path, "new content", calls);
  CAPTURE(message.value_or("no error"));
  CHECK(mentions(message, path.string()));
  CHECK(mentions(message, std::strerror(reason)));
  CHECK(read_text(path) == "old");
  CHECK(entries_in(folder) == 1);
}

int fails_with(int reason) {
  errno = reason;
  return -1;
}

}  // namespace

TEST_CASE("atomic file: a new file appears and an old one is replaced, nothing else is left") {
  const TempDir folder;
  const auto path = folder / "model";
  CHECK_FALSE(error_of(path, "first"));
  CHECK(read_text(path) == "first");
  CHECK_FALSE(error_of(path, ""));
  CHECK(read_text(path).empty());
  CHECK(entries_in(folder) == 1);
}

TEST_CASE("atomic file: without commit the old file stays and the temporary one goes") {
  const TempDir folder;
  write_text(folder / "model", "old");
  {
    AtomicFile file(folder / "model");
    file.write(bytes_of("new"));
    CHECK(entries_in(folder) == 2);
  }
  CHECK(read_text(folder / "model") == "old");
  CHECK(entries_in(folder) == 1);
}

TEST_CASE("atomic file: the order is write, fsync of the file, rename, fsync of the folder") {
  const TempDir folder;
  std::vector<std::string> events;
  FileCalls calls;
  const FileCalls real;
  calls.write = [&](int file, const void* data, std::size_t bytes) {
    events.push_back("write");
    return real.write(file, data, bytes);
  };
  calls.fsync = [&](int file) {
    struct stat status {};
    ::fstat(file, &status);
    events.push_back(S_ISDIR(status.st_mode) ? "fsync folder" : "fsync file");
    return real.fsync(file);
  };
  calls.rename = [&](const char* from, const char* to) {
    events.push_back("rename");
    return real.rename(from, to);
  };
  replace_file(folder / "model", bytes_of("x"), calls);
  CHECK(events == std::vector<std::string>{"write", "fsync file", "rename", "fsync folder"});
}

TEST_CASE("atomic file: a fault at any call is told and leaves the old file intact") {
  for (const int reason : {ENOSPC, EIO, EDQUOT, EROFS}) {
    FileCalls writing;
    writing.write = [&](int, const void*, std::size_t) { return fails_with(reason); };
    check_refused(writing, reason);
    FileCalls syncing;
    syncing.fsync = [&](int) { return fails_with(reason); };
    check_refused(syncing, reason);
    FileCalls renaming;
    renaming.rename = [&](const char*, const char*) { return fails_with(reason); };
    check_refused(renaming, reason);
  }
}

TEST_CASE("atomic file: a disk that fills up after a short write is told") {
  const FileCalls real;
  int count = 0;
  FileCalls calls;
  calls.write = [&](int file, const void* data, std::size_t) -> std::ptrdiff_t {
    return ++count <= 3 ? real.write(file, data, 2) : fails_with(ENOSPC);
  };
  check_refused(calls, ENOSPC);
  CHECK(count == 4);
}

TEST_CASE("atomic file: short and interrupted writes are continued to the last byte") {
  const TempDir folder;
  const FileCalls real;
  int count = 0;
  FileCalls calls;
  calls.write = [&](int file, const void* data, std::size_t) -> std::ptrdiff_t {
    return ++count % 2 == 0 ? fails_with(EINTR) : real.write(file, data, 1);
  };
  replace_file(folder / "model", bytes_of("every byte"), calls);
  CHECK(read_text(folder / "model") == "every byte");
}

TEST_CASE("atomic file: a system that takes no bytes is refused, not asked for ever") {
  FileCalls calls;
  calls.write = [](int, const void*, std::size_t) -> std::ptrdiff_t { return 0; };
  const TempDir folder;
  CHECK(mentions(error_of(folder / "model", "new", calls), "the system took 0 of 3 bytes"));
  CHECK(entries_in(folder) == 0);
}

TEST_CASE(
    "atomic file: when only the folder's fsync fails, the new file is there and this is said") {
  const TempDir folder;
  write_text(folder / "model", "old");
  const FileCalls real;
  int count = 0;
  FileCalls calls;
  calls.fsync = [&](int file) { return ++count == 1 ? real.fsync(file) : fails_with(EIO); };
  const auto message = error_of(folder / "model", "new", calls);
  CHECK(mentions(message, "is replaced, but may not survive a power cut"));
  CHECK(mentions(message, std::strerror(EIO)));
  CHECK(read_text(folder / "model") == "new");
  CHECK(entries_in(folder) == 1);
}

TEST_CASE("atomic file: the kernel's own refusal of a too large file is told, by no signal") {
  const TempDir folder;
  write_text(folder / "model", "old");
  // The first would end the tests.
  for (const auto handler : {SIG_DFL, SIG_IGN}) {
    const auto old_handler = ::signal(SIGXFSZ, handler);
    std::optional<std::string> message;
    {
      const FullDisk full(4096);
      message = error_of(folder / "model", std::string(10'000, 'x'));
    }
    ::signal(SIGXFSZ, old_handler);
    CHECK(mentions(message, std::strerror(EFBIG)));
    CHECK(read_text(folder / "model") == "old");
    CHECK(entries_in(folder) == 1);
    CHECK_FALSE(is_pending(SIGXFSZ));
    CHECK_FALSE(is_blocked(SIGXFSZ));
  }
}

TEST_CASE("atomic file: a signal of that kind that waited before the write still waits") {
  const TempDir folder;
  sigset_t signals{};
  sigset_t before{};
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGXFSZ);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  ::pthread_kill(::pthread_self(), SIGXFSZ);
  std::optional<std::string> message;
  {
    const FullDisk full(4096);
    message = error_of(folder / "model", std::string(10'000, 'x'));
  }
  CHECK(mentions(message, std::strerror(EFBIG)));
  CHECK(is_pending(SIGXFSZ));
  CHECK(is_blocked(SIGXFSZ));
  const timespec now{};
  CHECK(::sigtimedwait(&signals, nullptr, &now) == SIGXFSZ);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("atomic file: a missing folder, a folder as target and an empty name are refused") {
  const TempDir folder;
  const auto missing = folder / "missing/model";
  CHECK(mentions(error_of(missing, "x"), missing.string()));
  CHECK(mentions(error_of(missing, "x"), std::strerror(ENOENT)));
  std::filesystem::create_directory(folder / "model");
  CHECK(mentions(error_of(folder / "model", "x"), "is not a regular file"));
  CHECK(mentions(error_of(folder / "model/", "x"), "names no file"));
  CHECK(entries_in(folder) == 1);
}

TEST_CASE("atomic file: a folder that may not be written is refused") {
  const TempDir folder;
  write_text(folder / "model", "old");
  ::chmod(folder.path().c_str(), 0555);
  // Root may write everywhere, so this test steps down for the moment.
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::seteuid(65534) == 0);
  const auto message = error_of(folder / "model", "new");
  if (root) REQUIRE(::seteuid(0) == 0);
  ::chmod(folder.path().c_str(), 0755);
  CHECK(mentions(message, (folder / "model").string()));
  CHECK(mentions(message, std::strerror(EACCES)));
  CHECK(read_text(folder / "model") == "old");
}

TEST_CASE(
    "atomic file: leftovers of a killed writer are overwritten, a living writer is respected") {
  const TempDir folder;
  const auto path = folder / "model";
  write_text(folder / "model.tritgrad-tmp", "half of a much longer file");
  CHECK_FALSE(error_of(path, "whole"));
  CHECK(read_text(path) == "whole");

  AtomicFile living(path);
  living.write(bytes_of("from the first"));
  CHECK(mentions(error_of(path, "from the second"),
                 "another run, or another output of this one, is writing to this file"));
  living.commit();
  CHECK(read_text(path) == "from the first");
  CHECK(entries_in(folder) == 1);
}

TEST_CASE(
    "atomic file: a file that is committed and held can be written again, by this one alone") {
  const TempDir folder;
  const auto path = folder / "model";
  {
    AtomicFile file(path);
    for (const char* text : {"a first and longer text", "a second"}) {
      file.write(bytes_of(text));
      file.commit_and_hold();
      CHECK(read_text(path) == text);
      CHECK(mentions(error_of(path, "from another"), "is writing to this file"));
    }
    file.write(bytes_of("never committed"));
  }
  CHECK(read_text(path) == "a second");
  CHECK(entries_in(folder) == 1);
}

TEST_CASE("atomic file: a write-protected file is refused") {
  const TempDir folder;
  write_text(folder / "model", "old");
  ::chmod((folder / "model").c_str(), 0444);
  ::chmod(folder.path().c_str(), 0777);
  // Root may write everything, so this test steps down for the moment.
  const bool root = ::geteuid() == 0;
  if (root) REQUIRE(::seteuid(65534) == 0);
  const auto message = error_of(folder / "model", "new");
  if (root) REQUIRE(::seteuid(0) == 0);
  CHECK(mentions(message, "is write-protected"));
  CHECK(read_text(folder / "model") == "old");
}

TEST_CASE("atomic file: a replaced file keeps its permissions, a link does not lead elsewhere") {
  const TempDir folder;
  write_text(folder / "secret", "old");
  ::chmod((folder / "secret").c_str(), 0600);
  replace_file(folder / "secret", bytes_of("new"));
  CHECK(std::filesystem::status(folder / "secret").permissions() ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  write_text(folder / "secret.tritgrad-tmp", "left by a killed process");
  ::chmod((folder / "secret.tritgrad-tmp").c_str(), 0644);
  replace_file(folder / "secret", bytes_of("newer"));
  CHECK(read_text(folder / "secret") == "newer");
  CHECK(std::filesystem::status(folder / "secret").permissions() ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));

  write_text(folder / "elsewhere", "untouched");
  std::filesystem::create_symlink(folder / "elsewhere", folder / "other.tritgrad-tmp");
  CHECK(mentions(error_of(folder / "other", "new"), "other.tritgrad-tmp"));
  CHECK(read_text(folder / "elsewhere") == "untouched");
}

TEST_CASE("atomic file: what lies where the temporary file belongs is named, to be deleted") {
  const TempDir folder;
  const std::string path = folder / "m", remains = path + ".tritgrad-tmp";
  const std::string sentence = path + ": cannot be written, '" + remains +
                               "' lies where its temporary file belongs and is no regular file; "
                               "delete that, or name another file";
  const auto check_named = [&] {
    CHECK(error_of(path, "new") == sentence);
    REQUIRE(std::filesystem::remove(remains));
    CHECK_FALSE(error_of(path, "new"));
    CHECK(read_text(path) == "new");
  };
  std::filesystem::create_directory(remains);
  check_named();
  std::filesystem::create_symlink(folder / "nowhere", remains);
  check_named();
  REQUIRE(::mkfifo(remains.c_str(), 0600) == 0);  // opening it would wait for a reader
  check_named();
}

TEST_CASE("atomic file: writing or committing after the commit is refused") {
  const TempDir folder;
  AtomicFile file(folder / "model");
  file.commit();
  CHECK_THROWS_AS(file.write(bytes_of("late")), Error);
  CHECK_THROWS_AS(file.commit(), Error);
}

TEST_CASE("atomic file: a device is not replaced, a link stays a link") {
  const TempDir folder;
  CHECK(mentions(error_of("/dev/full", "new"), "not a regular file"));
  CHECK(std::filesystem::is_character_file("/dev/full"));
  CHECK(mentions(error_of(folder.path(), "new"), "not a regular file"));
  write_text(folder / "target", "old");
  std::filesystem::create_symlink(folder / "target", folder / "link");
  CHECK_FALSE(error_of(folder / "link", "new"));
  CHECK(std::filesystem::is_symlink(folder / "link"));
  std::filesystem::create_symlink(folder / "nothing", folder / "dangling");
  CHECK(error_of(folder / "dangling", "new")
            ->ends_with("dangling: is a link to a file that does not exist; nothing was written, "
                        "name that file"));
  CHECK(std::filesystem::is_symlink(folder / "dangling"));
  CHECK(read_text(folder / "target") == "new");
}

}  // namespace tritgrad::test::test_atomic_file
