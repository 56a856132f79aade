#include "tools/cli/fetch.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "engine/check.h"
#include "engine/data/open_dataset.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

// The value of an environment variable; nothing when unset or empty.
std::optional<fs::path> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return fs::path(value);
}

void check_name(const std::string& name) {
  std::vector<std::string> names;
  for (const KnownDataset& set : known_datasets()) {
    check(!set.built_in || name != set.name, "'", name,
          "' is built in, there is nothing to fetch; train with --data ", name);
    if (!set.built_in) names.emplace_back(set.name);
  }
  check(std::find(names.begin(), names.end(), name) != names.end(), "fetch: no data set is named '",
        name, "'", did_you_mean(name, names));
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

void fetch_datasets(const std::vector<std::string>& names, const fs::path& cache_dir, bool quiet) {
  for (const std::string& name : names) check_name(name);
  // As fetch_data.sh describes them.
  std::vector<std::string> arguments = {"bash",
                                        "-c",
                                        kFetchScript,
                                        "tritgrad",
                                        kFetchTable,
                                        fs::read_symlink("/proc/self/exe").string(),
                                        cache_dir.string(),
                                        quiet ? "yes" : "no"};
  arguments.insert(arguments.end(), names.begin(), names.end());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execvp("bash", pointers.data());
  fail("bash, which fetches data sets, cannot be started: ", std::strerror(errno));
}

}  // namespace tritgrad
