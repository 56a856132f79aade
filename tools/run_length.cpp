#include "tools/run_length.h"

#include <algorithm>

namespace tritgrad {
namespace {

bool trains_in_bands(const Recipe& recipe) {
  const auto has_bands = [](const Recipe::Group& group) { return group.format.bands > 1; };
  return std::any_of(recipe.groups.begin(), recipe.groups.end(), has_bands) ||
         std::any_of(recipe.named_groups.begin(), recipe.named_groups.end(),
                     [&](const Recipe::NamedGroup& named) { return has_bands(named.group); });
}

}  // namespace

void check_length(const TrainOptions& options, const Recipe& recipe,
                  const std::optional<SavedRun>& saved) {
  if (!saved || !trains_in_bands(recipe)) return;
  const int before = saved->options().epochs;
  check(options.epochs == before, "--epochs ", options.epochs, ": the bands of recipe '",
        recipe.name, "' divide the ", before, " epochs that '", options.resume,
        "' began with, and with others some rows would be left out; leave the option out");
}

std::string rows_left_out(std::int64_t steps, const ParameterStore& parameters) {
  std::int64_t bands = 1;  // of a matrix with fewer rows than bands, some bands have none
  for (const Parameter& parameter : parameters) {
    const RowRange first = parameter.storage().trained_rows();
    const std::int64_t rows = std::max<std::int64_t>(1, first.end - first.begin);
    bands = std::max(bands, (parameter.shape().rows() + rows - 1) / rows);
  }
  if (steps >= bands) return "";
  return concat(bands, " bands of rows are trained one after the other, and the run has ", steps,
                steps == 1 ? " step" : " steps",
                ", so some rows are not trained; give more --epochs or a smaller --batch");
}

}  // namespace tritgrad
