#include "tools/cli/fetch.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "engine/check.h"
#include "engine/files/atomic_file.h"
#include "engine/files/hash.h"
#include "engine/files/lock_file.h"
#include "tools/cli/interrupt.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunkBytes = std::size_t{1} << 18;

// An empty folder that does not outlive the fetch; what a killed fetch left in it is removed first.
class WorkFolder {
 public:
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct CloseGzip {
  void operator()(gzFile_s* file) const { ::gzclose(file); }
};

std::string by_hand(const FetchSource& source, const fs::path& set) {
  std::string text =
      concat("\nWithout a network, place these files in ", set.string(), " and try again:");
  for (const FetchFile& file : source.files) {
    text += concat("\n  ", file.name, ", ", file.bytes, " bytes, SHA-256 ", file.sha256);
  }
  return text;
}

// What is wrong with a file of the cache, or nothing.
std::optional<std::string> fault_of(const fs::path& path, const FetchFile& expected) {
  std::error_code error;
  const std::uint64_t bytes = fs::file_size(path, error);
  if (error) return concat(path.string(), ": ", error.message());
  if (bytes != expected.bytes) {
    return concat(path.string(), ": has ", bytes, " bytes, expected ", expected.bytes);
  }
  const std::string found = sha256_of_file(path);
  if (found == expected.sha256) return std::nullopt;
  return concat(path.string(), ": has SHA-256 ", found, ", expected ", expected.sha256);
}

// Tells what is wrong with a set that is there.
bool is_complete(const FetchSource& source, const fs::path& set, const FetchProgress& progress) {
  if (!fs::exists(set)) return false;
  for (const FetchFile& file : source.files) {
    if (const auto fault = fault_of(set / file.name, file)) {
      progress(*fault + "; fetching the set again");
      return false;
    }
  }
  return true;
}

void run_step(const FetchSource& source, const Client& client, const fs::path& folder,
              const FetchProgress& progress) {
  progress(source.name + ": " + command_line_of(client));
  const ClientResult result = run_client(client, folder, source.time_limit);
  if (result.exit_code == 0) return;
  const bool stale =
      !source.stale_sign.empty() && result.output.find(source.stale_sign) != std::string::npos;
  fail(source.name, ": ", failure_of(client, result), stale ? "; " + source.stale_hint : "");
}

std::string archive_in(const FetchSource& source, const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(source.archive_suffix)) return name;
  }
  fail(source.name, ": ", source.download.arguments.front(), " left no file ending with ",
       source.archive_suffix);
}

// The folder that holds the packed files.
fs::path provide(const FetchSource& source, const fs::path& work, const fs::path& set,
                 const FetchProgress& progress) {
  if (!source.installed.empty() && fs::is_directory(source.installed)) {
    progress(source.name + ": installed in " + source.installed.string());
    return source.installed;
  }
  try {
    run_step(source, source.download, work, progress);
    Client unpack = source.unpack;
    // "./": an archive's name is never taken for an option.
    const std::string archive = "./" + archive_in(source, work);
    std::replace(unpack.arguments.begin(), unpack.arguments.end(), std::string("{archive}"),
                 archive);
    run_step(source, unpack, work, progress);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    fail(error.what(), by_hand(source, set));
  }
  return work / source.folder;
}

// The folder of the files that are verified: the packed ones, or what is made of them.
fs::path convert(const FetchSource& source, const fs::path& packed, const fs::path& work,
                 const FetchProgress& progress) {
  if (!source.convert) return packed;
  progress(source.name + ": converting");
  const fs::path converted = work / "converted";
  fs::create_directory(converted);
  source.convert(fs::absolute(packed), converted);
  return converted;
}

// Unpacks and verifies in one pass. The size is known, so a bomb is cut off as soon as it exceeds
// it.
void unpack_verified(const fs::path& from, const fs::path& to, const FetchFile& expected) {
  const std::unique_ptr<gzFile_s, CloseGzip> packed(::gzopen(from.c_str(), "rbe"));
  check(packed != nullptr, from.string(), ": cannot be opened for reading: ", std::strerror(errno));
  AtomicFile out(to);
  Sha256 hash;
  std::vector<std::byte> chunk(kChunkBytes);
  std::uint64_t bytes = 0;
  int count = 0;
  while ((count = ::gzread(packed.get(), chunk.data(), kChunkBytes)) > 0 &&
         bytes <= expected.bytes) {
    const std::span<const std::byte> piece(chunk.data(), static_cast<std::size_t>(count));
    bytes += piece.size();
    hash.update(piece);
    out.write(piece);
  }
  int code = Z_OK;
  const char* reason = ::gzerror(packed.get(), &code);
  const bool damaged = code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR;
  check(!damaged, from.string(), ": is damaged: ", reason);
  check(bytes >= expected.bytes, from.string(), ": is truncated: ", bytes,
        " bytes unpacked, expected ", expected.bytes);
  check(bytes == expected.bytes, from.string(), ": unpacks to more than the expected ",
        expected.bytes, " bytes");
  const std::string found = hash.finish();
  check(found == expected.sha256, from.string(), ": has SHA-256 ", found, ", expected ",
        expected.sha256, "; not the published file, not kept");
  out.commit();
}

void put_in_place(const FetchSource& source, const fs::path& ready, const fs::path& set) {
  if (!fs::exists(set)) {
    fs::rename(ready, set);
    return;
  }
  for (const FetchFile& file : source.files) fs::rename(ready / file.name, set / file.name);
}

// The value of an environment variable; nothing when unset or empty.
std::optional<fs::path> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return fs::path(value);
}

}  // namespace

fs::path default_cache_dir() {
  if (const auto data = variable("TRITGRAD_DATA")) return *data;
  // The XDG specification: a relative path is to be ignored.
  const auto cache = variable("XDG_CACHE_HOME");
  if (cache && cache->is_absolute()) return *cache / "tritgrad";
  const auto home = variable("HOME");
  check(
      home.has_value(),
      "no folder for fetched data and finished runs, as HOME is not set; set TRITGRAD_DATA to one, "
      "or give --cache FOLDER");
  return *home / ".cache/tritgrad";
}

fs::path fetch(const FetchSource& source, const fs::path& cache_dir,
               const FetchProgress& progress) {
  const fs::path set = cache_dir / source.name;
  try {
    // Before the lock, so that a cache we may only read is good enough.
    if (is_complete(source, set, progress)) {
      progress(source.name + ": already there, " + set.string());
      return set;
    }
    const InterruptWatch watch;  // from where there is something to tidy up
    fs::create_directories(cache_dir);
    const fs::path held = cache_dir / (source.name + ".lock");
    const LockFile lock(held, concat(held.string(),
                                     ": another process is fetching this data set; "
                                     "wait for it to finish"));
    const WorkFolder work(cache_dir / (source.name + ".partial"));
    const fs::path packed =
        convert(source, provide(source, work.path(), set, progress), work.path(), progress);
    const fs::path ready = work.path() / "ready";
    fs::create_directory(ready);
    for (const FetchFile& file : source.files) {
      unpack_verified(packed / file.packed_name, ready / file.name, file);
      watch.end_if_interrupted("nothing of " + source.name + " was kept");
    }
    put_in_place(source, ready, set);
  } catch (const fs::filesystem_error& error) {
    fail(source.name, ": ", error.path1().string(), ": ", error.code().message(),
         "; mend that, or name another folder (--cache or TRITGRAD_DATA)");
  }
  progress(concat(source.name, ": ", source.files.size(), " files verified, ", set.string()));
  return set;
}

}  // namespace tritgrad
