// tritgrad recipes
#include <fmt/format.h>

#include "models/footprint.h"
#include "tools/commands.h"
#include "tools/table.h"

namespace tritgrad {
namespace {

// Bytes per parameter of a network that is wide enough for its vectors not to count.
double bytes_per_parameter(const Recipe& recipe) {
  const ModelFootprint footprint =
      forecast_footprint(plan_model("mlp:4096-4096-4096-4096", 0, 0, recipe), recipe);
  return footprint.per_parameter(footprint.total.total());
}

void list_recipes() {
  Table table({{"recipe"}, {"B/param", Align::kRight}, {"gradients"}, {"what and when"}, {"source"}});
  for (const std::string& name : recipe_names()) {
    const Recipe recipe = load_recipe(name);
    table.add_row({name, fmt::format("{:.2f}", bytes_per_parameter(recipe)),
                   recipe.gradients == GradientPolicy::kKept ? "kept" : "released", recipe.summary,
                   recipe.source});
  }
  fmt::print("{}\nB/param: all persistent bytes of training (weights, scales, residual, moments, kept\n"
             "gradients) in a network of 4096 x 4096 matrices. 'tritgrad recipes show NAME' prints one.\n",
             table.render());
}

}  // namespace

void add_recipes_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("recipes", "list recipes, or show one as TOML");
  command->add_subcommand("list", "all recipes with their bytes per parameter");
  CLI::App* show = command->add_subcommand("show", "one recipe, complete, as TOML to start your own from");
  auto name = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  show->add_option("NAME", *name, "recipe name or FILE.toml")->required();
  show->add_option("--set", *overrides, "KEY=VALUE: override, e.g. weight.lr=0.1");
  command->require_subcommand(0, 1);
  command->footer("Examples:\n  tritgrad recipes\n  tritgrad recipes show votes > my.toml\n"
                  "  tritgrad train --recipe my.toml");
  show->callback([name, overrides] { fmt::print("{}\n", load_recipe(*name, *overrides).toml); });
  command->callback([show] {
    if (!show->parsed()) list_recipes();
  });
}

}  // namespace tritgrad
