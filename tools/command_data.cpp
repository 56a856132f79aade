// tritgrad data: what there is to train on.
#include <fmt/format.h>

#include "engine/open_dataset.h"
#include "tools/commands.h"
#include "tools/table.h"

namespace tritgrad {
namespace {

void list_data() {
  Table table({{"name"}, {"rows", Align::kRight}, {"features", Align::kRight},
               {"classes", Align::kRight}, {"kind"}, {"source"}});
  for (const KnownDataset& set : known_datasets()) {
    table.add_row({set.name, std::to_string(set.rows), std::to_string(set.features),
                   std::to_string(set.classes), set.kind, set.source});
  }
  fmt::print("{}\nYour own: --data FILE.csv, a folder of four IDX files, or X.npy,Y.npy\n", table.render());
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("data", "list the data sets there are, or fetch one");
  command->add_subcommand("list", "built-in sets and those that can be fetched");
  command->require_subcommand(0, 1);
  command->footer("Examples:\n  tritgrad data\n  tritgrad data fetch mnist");
  command->callback([command] { list_data(); });
}

}  // namespace tritgrad
