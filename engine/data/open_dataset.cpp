#include "engine/data/open_dataset.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "engine/check.h"
#include "engine/data/cifar.h"
#include "engine/data/embedded.h"
#include "engine/data/idx.h"
#include "engine/data/known_texts.h"
#include "engine/data/npy_dataset.h"
#include "engine/data/text_dataset.h"
#include "engine/text.h"

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
    {"diabetes", 442, 10, 0, 0, true,
     "Efron, Hastie, Johnstone, Tibshirani, Least Angle Regression, doi:10.1214/009053604000000067",
     "not stated by the authors"},
    {"mnist", 70000, 784, 10, 10000, false, "LeCun, Cortes, Burges, The MNIST database",
     "not stated by the authors"},
    {"fashion-mnist", 70000, 784, 10, 10000, false,
     "Xiao, Rasul, Vollgraf, Fashion-MNIST, arXiv:1708.07747", "MIT"},
    {"cifar10", 60000, 3072, 10, 10000, false,
     "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
     "not stated by the author"},
    {"letter", 20000, 16, 26, 4000, false, "Slate, Letter Recognition, UCI, doi:10.24432/C5ZP40",
     "CC BY 4.0"},
    {"shuttle", 58000, 9, 7, 14500, false, "Statlog (Shuttle), UCI, doi:10.24432/C5WS31",
     "CC BY 4.0"},
};

// Sets that everybody has alike need no description in a checkpoint.
Dataset without_schema(Dataset dataset) {
  dataset.schema.reset();
  dataset.remarks = {};
  return dataset;
}

constexpr const char* kOtherData =
    " no number to predict; for numbers name other data, for classes leave --task regress out";

// Reads a set with read(task). Throws Error where words are asked to be targets: nobody mends a
// known set, so that it needs other advice than a file.
template <typename Read>
Dataset read_known(const std::string& name, TaskKind task, const Read& read) {
  if (task == TaskKind::kRegress) {
    const Dataset data = read(TaskKind::kAuto);
    check(data.is_regression() || parse_number(data.class_names[0]), name, ": the class \"",
          data.is_regression() ? "" : data.class_names[0], "\" is", kOtherData);
  }
  return without_schema(read(task));
}

// A table whose rows are in the order of their publication.
Dataset open_table(const KnownDataset& known, const fs::path& path, const DataOptions& options) {
  Dataset dataset = read_known(known.name, options.csv.task, [&](TaskKind task) {
    CsvOptions csv;
    csv.task = task;
    return read_csv(path.string(), csv);
  });
  check(dataset.rows == known.rows, path.string(), ": ", dataset.rows, " rows found, ", known.rows,
        " expected; run: tritgrad data fetch ", known.name, options.fetch_arguments);
  dataset.published_test_rows = known.published_test_rows;
  return dataset;
}

Dataset open_folder(const fs::path& folder, const std::string& name, TaskKind task) {
  check(task != TaskKind::kRegress, "'", name, "' holds images of classes and", kOtherData);
  if (has_idx_files(folder)) return read_idx_folder(folder, name);
  if (has_cifar_files(folder)) return read_cifar_folder(folder, name);
  fail("folder ", folder.string(),
       ": no data found; give a folder of four IDX files (train-images-idx3-ubyte, ...) or of "
       "CIFAR-10's six (data_batch_1.bin, ..., test_batch.bin)");
}

const KnownDataset* find_known(const std::string& name) {
  for (const KnownDataset& known : kKnown) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

Dataset open_fetched(const KnownDataset& known, const fs::path& folder,
                     const DataOptions& options) {
  const fs::path table = folder / concat(known.name, ".csv");
  std::error_code error;
  if (fs::exists(table, error)) return open_table(known, table, options);
  if (!has_idx_files(folder) && !has_cifar_files(folder)) {
    throw NotFound(concat("data set ", known.name, " is not in ", folder.string(),
                          "; run: tritgrad data fetch ", known.name, options.fetch_arguments));
  }
  return open_folder(folder, known.name, options.csv.task);
}

// Whatever ends the path: "dir", "dir/", "dir/.", "..".
std::string folder_name(const std::string& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.has_filename() ? folder.filename().string() : path;
}

constexpr std::string_view kText = "text:";

Dataset open_text(const std::string& spec, const std::string& path, const DataOptions& options) {
  check(options.window > 0, "--data ", spec,
        ": a text is for language models; give one, as in --model llama:4,256");
  const Vocabulary vocabulary =
      options.vocabulary ? *options.vocabulary : open_vocabulary(options.tokens);
  return text_dataset(std::make_shared<TokenText>(open_tokens(path, vocabulary)), spec,
                      options.window);
}

bool is_there(const std::string& path) {
  std::error_code error;
  return path == "-" || fs::exists(path, error);
}

// Throws Error where a language model is given what would be read as a table or as images.
void check_wants_rows(const std::string& spec, const DataOptions& options) {
  check(options.window == 0 || spec == "-" || !is_there(spec), "--data ", spec,
        ": a text is to be named as such; give --data text:", spec,
        ", or use --model mlp:WIDTH,... for tables and images");
}

// Reads a table. Prose that nobody has called a text looks like a broken one.
Dataset open_csv(const std::string& spec, const DataOptions& options) {
  if (!spec.ends_with(".txt")) return read_csv(spec, options.csv);
  try {
    return read_csv(spec, options.csv);
  } catch (const Error& error) {
    fail(error.what(), "; if it is a text for a language model, give --data text:", spec);
  }
}

// Throws the Error for a spec that is neither known nor there.
[[noreturn]] void refuse(const std::string& spec) {
  std::vector<std::string> names;
  for (const KnownDataset& known : kKnown) {
    names.emplace_back(known.name);
  }
  for (const KnownText& known : known_texts()) names.emplace_back(known.name);
  throw NotFound(concat("no data set or file \"", spec, "\"", did_you_mean(spec, names)));
}

}  // namespace

std::span<const KnownDataset> known_datasets() { return kKnown; }

Dataset builtin_dataset(const std::string& name, TaskKind task) {
  const auto files = embedded_files();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const EmbeddedFile& each) { return each.name == name; });
  check(file != files.end(), "no built-in data set is called \"", name,
        "\"; there are iris, wdbc, digits, wine and diabetes");
  std::string text;
  for (std::string_view piece : file->pieces) text += piece;
  CsvOptions options;
  options.header = CsvOptions::Header::kYes;
  // The published order, in which malignant comes first; alphabetical for the other sets.
  if (name == "wdbc") options.class_names = {"malignant", "benign"};
  Dataset dataset = read_known(name, task, [&](TaskKind as) {
    options.task = as;
    return parse_csv(text, name, options);
  });
  if (name == "digits") dataset.image = {8, 8, 1};
  return dataset;
}

DataSource data_source(const std::string& spec, const std::string& cache_folder) {
  using Kind = DataSource::Kind;
  if (const KnownDataset* known = find_known(spec)) {
    if (known->built_in) return {Kind::kBuiltIn, {}};
    return {Kind::kFetched, {(fs::path(cache_folder) / known->name).string()}};
  }
  const std::size_t comma = spec.find(".npy,");
  if (comma != std::string::npos) {
    return {Kind::kNpyPair, {spec.substr(0, comma + 4), spec.substr(comma + 5)}};
  }
  std::error_code error;
  if (find_known_text(spec) != nullptr) {
    return {Kind::kFetched, {(fs::path(cache_folder) / spec).string()}};
  }
  if (spec.starts_with(kText)) return {Kind::kText, {spec.substr(kText.size())}};
  if (spec.ends_with(".npz")) return {Kind::kNpz, {spec}};
  return {fs::is_directory(spec, error) ? Kind::kFolder : Kind::kCsv, {spec}};
}

Dataset open_dataset(const std::string& spec, const DataOptions& options) {
  using Kind = DataSource::Kind;
  const DataSource source = data_source(spec, options.cache_folder);
  switch (source.kind) {
    case Kind::kBuiltIn:
      return builtin_dataset(spec, options.csv.task);
    case Kind::kFetched:
      if (const KnownText* text = find_known_text(spec)) {
        return open_text(spec, fetched_text(*text, options.cache_folder, options.fetch_arguments),
                         options);
      }
      return open_fetched(*find_known(spec), source.paths[0], options);
    case Kind::kNpyPair:
      check(!source.paths[1].empty(), "data \"", spec,
            "\": labels are missing; give both arrays as x.npy,y.npy");
      return read_npy_pair(source.paths[0], source.paths[1], options.csv.schema, options.csv.task);
    case Kind::kNpz:
      if (!is_there(spec)) refuse(spec);
      return read_npz(spec, options.csv.schema, options.csv.task);
    case Kind::kText:
      return open_text(spec, source.paths[0], options);
    case Kind::kFolder:
      check_wants_rows(spec, options);
      return open_folder(spec, folder_name(spec), options.csv.task);
    case Kind::kCsv:
      break;
  }
  if (!is_there(spec)) refuse(spec);
  check_wants_rows(spec, options);
  check(!spec.ends_with(".npy"), "data \"", spec,
        "\": labels are missing; give both arrays as x.npy,y.npy");
  return open_csv(spec, options);
}

}  // namespace tritgrad
