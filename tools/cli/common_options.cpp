#include "tools/cli/common_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "engine/check.h"
#include "engine/data/augmentation.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"
#include "tools/cli/fetch.h"
#include "tools/cli/shell_quoted.h"
#include "tools/cli/within.h"

namespace tritgrad {

void add_data_options(CLI::App& command, CommonOptions& options) {
  command.option_defaults()->take_last();
  command
      .add_option("--data", options.train.data,
                  "a name that 'tritgrad data' lists, FILE.csv, a folder of IDX or of CIFAR-10's "
                  "files, or X.npy,Y.npy")
      ->capture_default_str();
  command.add_option(
      "--cache", options.cache,
      "folder of fetched data and finished runs [TRITGRAD_DATA, else the user's cache folder]");
  command.add_option("--label", options.train.label,
                     "label column of a CSV file: name, or number from 0 (-1 = last) [last]");
  command.add_option("--header", options.train.header, "CSV header line: auto, yes or no")
      ->capture_default_str();
  command.add_option("--threads", options.threads, "threads; results do not depend on it [all]")
      ->check(within(1, 1024));
  command.add_option("--config", options.config,
                     "FILE.toml with options as keys; [set] overrides the recipe");
}

void add_training_options(CLI::App& command, CommonOptions& options) {
  TrainOptions& train = options.train;
  command.option_defaults()->take_last();
  command
      .add_option("--model", train.model,
                  "mlp:WIDTH,WIDTH[:norm=batch|layer|rms|none][:activation=relu|squared_relu|"
                  "tanh][:dropout=P], or, for images, conv:WIDTH,WIDTH,M,...: 3 x 3 convolutions "
                  "with batch norm and rectifier, M is 2 x 2 max pooling")
      ->capture_default_str();
  command
      .add_option("--epochs", train.epochs,
                  "passes over the training rows [60; 10 from 10,000 rows]")
      ->check(within(1, 1000000));
  command.add_option("--batch", train.batch, "rows per step [32; 128 from 10,000 rows]")
      ->check(within(1, 1000000));
  command
      .add_option("--micro-batches", train.micro_batches,
                  "parts of each batch whose gradients are added up, to save activations; batch "
                  "norm then sees the parts [1]")
      ->check(within(1, 1000000));
  command.add_option("--lr", options.lr, "learning rate of the weights [the recipe's]");
  command.add_option("--compute", options.compute,
                     "int8 or fp32: products with ternary weights [the recipe's]");
  command.add_option("--folds", train.folds, "K-fold cross-validation instead of one test split")
      ->check(within(2, 1000));
  command.add_option("--val", train.validation, "share of the training rows held out to watch")
      ->check(within(0.0, 0.9));
  command.add_option("--augment", train.augment,
                     "of training images: none, shift=PIXELS, flip, or shift=PIXELS,flip [none]");
  command
      .add_option("--label-smoothing", train.label_smoothing,
                  "share of the target that is spread over all classes [0; 0.1 for images from "
                  "10,000 rows]")
      ->check(within(0.0, 0.9));
  command.add_option("--pixels", options.pixels,
                     "linear, or sqrt: square roots of pixels are standardised instead [sqrt for "
                     "grey images of 8 bits a pixel]");
  command
      .add_option("--set", train.overrides, "KEY=VALUE: override the recipe, e.g. weight.lr=0.1")
      ->take_all();
  command.add_option("--json", options.json,
                     "write the result as JSON to FILE, - = standard output");
  command.add_flag("--quiet", train.quiet, "no progress, no summary");
}

void apply(CommonOptions& options) {
  if (options.threads > 0) set_thread_count(options.threads);
  options.train.augment = to_text(parse_augmentation(options.train.augment));
  if (!options.pixels.empty()) options.train.pixels = parse_pixel_scale(options.pixels);
  if (!options.lr.empty()) {
    const std::optional<double> lr = parse_number(options.lr);
    check(lr.has_value(), "--lr: '", options.lr, "' is no number; give one such as 0.01");
    // As TOML writes it, which knows no ".01".
    options.train.overrides.push_back(fmt::format("weight.lr={}", *lr));
  }
  if (!options.compute.empty()) options.train.overrides.push_back("compute=" + options.compute);
}

namespace {

// Data that are not fetched need no folder, so none is asked for.
std::string folder_of_fetched(const CommonOptions& options) {
  const bool fetched = data_source(options.train.data, "").kind == DataSource::Kind::kFetched;
  return fetched || !options.cache.empty() ? cache_folder(options.cache).string() : "";
}

// What fills that folder, after the name of a set.
std::string fetch_arguments(const CommonOptions& options) {
  return options.cache.empty() ? "" : " --cache " + shell_quoted(options.cache);
}

}  // namespace

std::filesystem::path cache_folder(const std::string& option) {
  if (option.empty()) return default_cache_dir();
  std::error_code error;
  check(!std::filesystem::exists(option, error) || std::filesystem::is_directory(option, error),
        "--cache: '", option, "' is a file; name a folder");
  return option;
}

std::string fetch_command(const CommonOptions& options) {
  const std::string& data = options.train.data;
  if (data_source(data, "").kind != DataSource::Kind::kFetched) return "";
  return "tritgrad data fetch " + data + fetch_arguments(options);
}

bool is_csv(const std::string& data) {
  return data_source(data, "").kind == DataSource::Kind::kCsv;
}

Dataset open_data(const CommonOptions& options, bool to_score) {
  using Header = CsvOptions::Header;
  const TrainOptions& train = options.train;
  DataOptions data;
  data.cache_folder = folder_of_fetched(options);
  data.fetch_arguments = fetch_arguments(options);
  check(train.header == "auto" || train.header == "yes" || train.header == "no", "--header: '",
        train.header, "', expected auto, yes or no");
  if (train.header != "auto") data.csv.header = train.header == "yes" ? Header::kYes : Header::kNo;
  data.csv.label = train.label;
  data.csv.to_score = to_score;
  Dataset dataset = open_dataset(train.data, data);
  const bool csv = is_csv(train.data);
  check(csv || (train.label.empty() && train.header == "auto"), "--label and --header are for CSV ",
        "files, which '", train.data, "' is not; leave them out or name a file by --data");
  return dataset;
}

}  // namespace tritgrad
