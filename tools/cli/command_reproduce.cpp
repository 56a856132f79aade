// tritgrad reproduce: trains a published study anew, and writes pictures, tables and CSV files.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "engine/check.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"
#include "tools/cli/commands.h"
#include "tools/cli/common_options.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/terminal.h"
#include "tools/report/number_text.h"
#include "tools/study/study_files.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSmallest = 10'000;  // parameters whose step is worth timing

struct ReproduceOptions {
  std::string study;
  std::string out;
  StudyOptions training;
  std::int64_t largest = 10'000'000;
  int threads = 0;
  std::string config;  // read before options are parsed
};

// Makes the folder, or says why not, before any work is done for it. A new folder is removed again
// if the work came to nothing.
class OutputFolder {
 public:
  explicit OutputFolder(const std::string& path) : path_(path) {
    std::error_code error;
    check(!fs::exists(path, error) || fs::is_directory(path, error), "--out: '", path,
          "' is a file; name a folder");
    const fs::path place = path_.has_filename() ? path_ : path_.parent_path();  // "out/"
    const fs::path above = place.has_parent_path() ? place.parent_path() : ".";
    check(fs::is_directory(above, error), "--out: there is no folder '", above.string(),
          "'; make it first");
    is_new_ = fs::create_directory(place, error);
    check(!error, "--out: the folder '", path, "' cannot be made: ", error.message());
    check(::access(path.c_str(), W_OK) == 0, "--out: the folder '", path,
          "' cannot be written; choose another");
  }
  ~OutputFolder() {
    std::error_code not_empty;
    if (is_new_) fs::remove(path_, not_empty);
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool is_new_ = false;
};

void run_reproduce(const ReproduceOptions& options) {
  const std::vector<std::string> studies = {"microadam"};
  check(options.study == studies.front(), "unknown study '", options.study, "'",
        did_you_mean(options.study, studies));
  if (options.threads > 0) set_thread_count(options.threads);
  const InterruptWatch watch;  // one for all of the work, so that no signal comes in between
  const OutputFolder out(options.out.empty() ? "reproduce-" + options.study : options.out);

  StudyResults results = run_study(study_figures(), options.training);
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = kSmallest; size <= options.largest; size *= 10) sizes.push_back(size);
  results.costs = measure_costs(sizes, 9);
  const StudyFiles files =
      study_files(results, fmt::format("tritgrad reproduce {} --epochs {} --seeds {} --largest {}",
                                       options.study, options.training.epochs,
                                       options.training.seeds, options.largest));
  write_study(out.path(), files);
  if (options.training.quiet) return;
  const auto count = [&](const char* ending) {
    return std::count_if(files.begin(), files.end(),
                         [&](const auto& file) { return file.first.ends_with(ending); });
  };
  print_lines(stdout, "{}, {} CSV files and {} pictures beside it; {} of training\n",
              (out.path() / files.back().first).string(), count(".csv"), count(".svg"),
              duration(results.seconds));
}

}  // namespace

void add_reproduce_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("reproduce", "repeat a published study: one page of pictures, CSV files");
  auto options = std::make_shared<ReproduceOptions>();
  command->option_defaults()->take_last();
  command->add_option("STUDY", options->study, "microadam: MicroAdam on Iris and Breast Cancer")
      ->required();
  command->add_option("--out", options->out,
                      "folder for index.html, pictures and CSV files [reproduce-STUDY]");
  command->add_option("--epochs", options->training.epochs, "passes over the training rows")
      ->capture_default_str()
      ->check(in_range(2, 100000));
  command->add_option("--seeds", options->training.seeds, "seeds 1..N for every curve")
      ->capture_default_str()
      ->check(in_range(1, 100));
  command
      ->add_option("--largest", options->largest, "parameters of the largest matrix that is timed")
      ->capture_default_str()
      ->check(in_range(kSmallest, std::int64_t{1'000'000'000}));
  command
      ->add_option("--threads", options->threads,
                   "threads; results do not depend on it, times do [all]")
      ->check(in_range(1, 1024));
  command->add_option("--config", options->config, "FILE.toml with options as keys");
  command->add_flag("--quiet", options->training.quiet, "no progress, no last line");
  command->footer(
      "Examples:\n"
      "  tritgrad reproduce microadam --out microadam\n"
      "  tritgrad reproduce microadam --out quick --epochs 100 --seeds 1\n"
      "The page is index.html; figure3-1.svg and so on are its pictures, and CSV files what it\n"
      "draws and says: numbers.csv every number of every run, the others curves, as median,\n"
      "smallest and largest over seeds.");
  command->callback([options] { run_reproduce(*options); });
}

}  // namespace tritgrad
