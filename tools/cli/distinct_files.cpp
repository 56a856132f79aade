#include "tools/cli/distinct_files.h"

#include <filesystem>

#include "engine/check.h"
#include "engine/data/open_dataset.h"
#include "models/recipes/recipe.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

// One path for each file, however it is written or linked, whether or not it exists. Relative paths
// of new files would stay relative in weakly_canonical().
fs::path place_of(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path place = fs::weakly_canonical(absolute, error);
  return place.empty() ? absolute : place;
}

// A file that writing an output replaces.
struct Written {
  fs::path place;
  std::string name;  // for messages, in quotes
};

// None for pipes and devices, which can be written to twice.
std::vector<Written> written_files(const NamedFile& output) {
  std::error_code error;
  const fs::file_status status = fs::status(output.path, error);
  const bool can_be_lost = !fs::exists(status) || fs::is_regular_file(status);
  if (output.path.empty() || output.path == "-" || !can_be_lost) return {};
  std::vector<Written> files{{place_of(output.path), concat("'", output.path, "'")}};
  const auto add = [&](const char* ending, const char* purpose) {
    fs::path beside = files[0].place;
    beside += ending;
    files.push_back(
        {beside, concat("'", output.path, ending, "', which ", purpose, " '", output.path, "',")});
  };
  add(".lock", "may be held for");
  if (!output.in_place) add(".tmp", "becomes");
  return files;
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return a == b || fs::equivalent(a, b, error);
}

void check_apart(const Written& file, const std::string& option, const NamedFile& input) {
  std::error_code error;
  if (fs::is_directory(input.path, error)) {
    check(file.place.parent_path() != place_of(input.path), option, ": ", file.name,
          " lies in the folder '", input.path, "' that is read (", input.option,
          "); name a file elsewhere");
  } else if (fs::is_regular_file(input.path, error)) {
    check(!same_file(file.place, place_of(input.path)), option, ": ", file.name, " is also read (",
          input.option, ") and would be replaced; name another file");
  }
}

void check_apart(const NamedFile& output, const NamedFile& other) {
  for (const Written& file : written_files(output)) {
    for (const Written& before : written_files(other)) {
      check(!same_file(file.place, before.place), output.option, ": ", file.name,
            " is also written by ", other.option, "; name another file");
    }
  }
}

}  // namespace

void check_distinct_files(const std::vector<NamedFile>& inputs,
                          const std::vector<NamedFile>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const Written& file : written_files(outputs[i])) {
      for (const NamedFile& input : inputs) check_apart(file, outputs[i].option, input);
    }
    for (std::size_t j = 0; j < i; ++j) check_apart(outputs[i], outputs[j]);
  }
}

std::vector<NamedFile> data_files(const std::string& data, const std::string& cache_folder) {
  std::vector<NamedFile> files;
  for (const std::string& path : data_source(data, cache_folder).paths) {
    files.push_back({"--data", path});
  }
  return files;
}

std::vector<NamedFile> recipe_files(const std::string& option, const std::string& recipe) {
  if (!builtin_recipe_text(recipe).empty()) return {};
  return {{option, recipe}};
}

}  // namespace tritgrad
