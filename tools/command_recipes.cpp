// tritgrad recipes
#include <fmt/format.h>

#include "models/footprint.h"
#include "tools/commands.h"
#include "tools/table.h"

namespace tritgrad {
namespace {

// Bytes per parameter of a network that is wide enough for its vectors not to count.
ModelFootprint wide_footprint(const Recipe& recipe) {
  return forecast_footprint(plan_model("mlp:4096-4096-4096-4096", 0, 0, recipe), recipe);
}

void list_recipes() {
  Table table({{"recipe"},
               {"state", Align::kRight, "B/param"},
               {"gradient", Align::kRight, "B/param"},
               {"what and when"},
               {"source"}});
  for (const std::string& name : recipe_names()) {
    const Recipe recipe = load_recipe(name);
    const ModelFootprint wide = wide_footprint(recipe);
    const std::int64_t gradient = wide.total.gradients;
    table.add_row({name, fmt::format("{:.2f}", wide.per_parameter(wide.total.total() - gradient)),
                   gradient > 0 ? fmt::format("+{:.2f}", wide.per_parameter(gradient)) : "released",
                   recipe.summary, recipe.source});
  }
  fmt::print(
      "{}\nstate: weights, scales, residual and moments of a network of 4096 x 4096 matrices; "
      "gradient: kept\n"
      "beside them, or released as soon as it is used. 'tritgrad recipes show NAME' prints one.\n",
      table.render());
}

}  // namespace

void add_recipes_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("recipes", "list recipes, or show one as TOML");
  command->add_subcommand("list", "all recipes with their bytes per parameter");
  CLI::App* show =
      command->add_subcommand("show", "one recipe, complete, as TOML to start your own from");
  auto name = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  show->add_option("NAME", *name, "recipe name or FILE.toml")->required();
  show->add_option("--set", *overrides, "KEY=VALUE: override, e.g. weight.lr=0.1");
  command->require_subcommand(0, 1);
  command->footer(
      "Examples:\n  tritgrad recipes\n  tritgrad recipes show votes > my.toml\n"
      "  tritgrad train --recipe my.toml");
  show->callback([name, overrides] { fmt::print("{}\n", load_recipe(*name, *overrides).toml); });
  command->callback([show] {
    if (!show->parsed()) list_recipes();
  });
}

}  // namespace tritgrad
