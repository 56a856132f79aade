#include "engine/open_dataset.h"

#include <filesystem>
#include <string_view>
#include <vector>

#include "engine/builtin_data.h"
#include "engine/check.h"
#include "engine/idx.h"
#include "engine/nearest.h"
#include "engine/npy.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

constexpr KnownDataset kKnown[] = {
    {"iris", 150, 4, 3, 0, true, "R. A. Fisher, Iris, UCI, doi:10.24432/C56C76", "CC BY 4.0"},
    {"wdbc", 569, 30, 2, 0, true,
     "Wolberg et al., Breast Cancer Wisconsin (Diagnostic), UCI, doi:10.24432/C5DW2B", "CC BY 4.0"},
    {"digits", 1797, 64, 10, 0, true,
     "Alpaydin, Kaynak, Optical Recognition of Handwritten Digits, UCI, doi:10.24432/C50P49",
     "CC BY 4.0"},
    {"wine", 178, 13, 3, 0, true, "Aeberhard, Forina, Wine, UCI, doi:10.24432/C5PC7J", "CC BY 4.0"},
    {"mnist", 70000, 784, 10, 10000, false, "LeCun, Cortes, Burges, The MNIST database",
     "not stated by the authors"},
    {"fashion-mnist", 70000, 784, 10, 10000, false,
     "Xiao, Rasul, Vollgraf, Fashion-MNIST, arXiv:1708.07747", "MIT"},
};

Dataset open_known(const KnownDataset& known, const DataOptions& options) {
  if (known.built_in) return builtin_dataset(known.name);
  const std::string folder = (fs::path(options.cache_folder) / known.name).string();
  check(has_idx_files(folder), "data set ", known.name, " is not in ", folder,
        "; run: tritgrad data fetch ", known.name);
  return read_idx_folder(folder, known.name);
}

// What to say about a spec that is neither known nor there.
[[noreturn]] void refuse(const std::string& spec) {
  std::vector<std::string> names;
  for (const KnownDataset& known : kKnown) {
    names.emplace_back(known.name);
  }
  fail("no data set or file \"", spec, "\"", did_you_mean(spec, names));
}

}  // namespace

std::span<const KnownDataset> known_datasets() { return kKnown; }

Dataset open_dataset(const std::string& spec, const DataOptions& options) {
  for (const KnownDataset& known : kKnown) {
    if (spec == known.name) return open_known(known, options);
  }
  const std::size_t comma = spec.find(".npy,");
  if (comma != std::string::npos) {
    return read_npy_pair(spec.substr(0, comma + 4), spec.substr(comma + 5));
  }
  std::error_code error;
  const fs::file_status status = fs::status(spec, error);
  if (!fs::exists(status)) refuse(spec);
  if (fs::is_directory(status)) {
    return read_idx_folder(spec, fs::absolute(spec).lexically_normal().filename().string());
  }
  check(!spec.ends_with(".npy"), "data \"", spec,
        "\": labels are missing; give both arrays as x.npy,y.npy");
  return read_csv(spec, options.csv);
}

}  // namespace tritgrad
