#include "tools/compare/request.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/check.h"
#include "engine/text.h"
#include "models/networks/llama.h"
#include "models/recipes/recipe.h"
#include "tools/cli/command_line.h"

namespace tritgrad {
namespace {

std::string without_outer_spaces(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

constexpr const char* kTables = "comparison";
constexpr const char* kPublished = "published";  // tables of a comparison

// Adds the common keys that a comparison lacks; tables such as [set] are joined.
void add_missing(toml::table& own, const toml::table& common) {
  for (const auto& [key, node] : common) {
    toml::table* inner = own[key].as_table();
    if (inner != nullptr && node.is_table()) {
      add_missing(*inner, *node.as_table());
    } else if (!own.contains(key)) {
      own.insert(key, node);
    }
  }
}

// Names make the first column of tables.
constexpr std::size_t kLongestName = 60;

PublishedResult read_published(const toml::table& table, const std::string& where) {
  static const std::vector<std::string> known = {"name", "score", "spread", "bytes", "protocol"};
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    check(std::find(known.begin(), known.end(), name) != known.end(), where, ", line ",
          key.source().begin.line, ": unknown key '", name, "' of a published result",
          did_you_mean(name, known));
  }
  const std::string place =
      concat(where, ", the published result in line ", table.source().begin.line, ": ");
  const auto text = [&](const char* key) {
    const auto value = table[key].value<std::string>();
    check(value && !value->empty() && value->find('\n') == std::string::npos, place, key,
          " is no line of text; write ", key, " = \"...\"");
    return *value;
  };
  const auto number = [&](const char* key, bool may_be_zero = true) {
    const auto value = table[key].is_number() ? table[key].value<double>() : std::nullopt;
    check(value ? *value <= 1e9 && (may_be_zero ? *value >= 0.0 : *value > 0.0)
                : !table.contains(key),
          place, key, " is no number ", may_be_zero ? "from 0 on" : "above 0",
          ", 1e9 at most; write ", key, " = 1.5, say");
    return value;
  };
  const std::optional<double> score = number("score");
  check(score.has_value(), place, "score is missing; write it as tables do, an accuracy in %");
  const std::string name = text("name");
  check(name.size() <= kLongestName, place, "name has ", name.size(), " bytes, at most ",
        kLongestName, " fit into a table; shorten it, and say more in protocol");
  return {name, *score, number("spread"), number("bytes", false), text("protocol")};
}

std::vector<PublishedResult> published_beside(const toml::table& comparison,
                                              const std::string& where) {
  std::vector<PublishedResult> results;
  const toml::node* node = comparison.get(kPublished);
  if (node == nullptr) return results;
  check(node->is_array_of_tables(), where, ", line ", node->source().begin.line,
        ": published is no list of tables; write one [[comparison.published]] for each result");
  for (const toml::node& each : *node->as_array()) {
    PublishedResult result = read_published(*each.as_table(), where);
    check(std::none_of(results.begin(), results.end(),
                       [&](const PublishedResult& other) { return other.name == result.name; }),
          where, ", the published result in line ", each.source().begin.line, ": the name '",
          result.name, "' is that of another one of this comparison; give each a name of its own");
    results.push_back(std::move(result));
  }
  return results;
}

ComparisonRequest read_comparison(const toml::table& table, const std::string& where,
                                  toml::source_index line, const std::string& cache) {
  ComparisonRequest request;
  request.where = concat(where, ", the comparison in line ", line);
  CLI::App app("", "compare");
  add_comparison_options(app, request);
  for (const char* name : {"--threads", "--json", "--quiet", "--cache", "--config"}) {
    app.remove_option(app.get_option(name));
  }
  std::vector<std::string> arguments = option_arguments(table, where, app);
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
    request.common.terminal.cache = cache;
    prepare(request, app);
  } catch (const CLI::ParseError& error) {
    fail(request.where, ": ", error.what());
  } catch (const Error& error) {
    fail(request.where, ": ", error.what());
  }
  return request;
}

}  // namespace

void add_comparison_options(CLI::App& app, ComparisonRequest& request) {
  add_data_options(app, request.common);
  add_training_options(app, request.common, false);
  ComparisonOptions& options = request.options;
  app.add_option("--title", request.title, "heading on the page of --report [MODEL on DATA]");
  app.add_option(
         "--recipes", options.recipes,
         "names or files, separated by commas; all = every built-in one for such models; of "
         "language models, the default is those whose names end in -lm")
      ->delimiter(',')
      ->take_all()
      ->capture_default_str();
  app.add_option("--baseline", options.baseline,
                 "name of the recipe that the others are compared with [master or master-lm, or "
                 "else the first]");
  app.add_option("--seeds", options.seeds, "seeds 1..N for every recipe")
      ->capture_default_str()
      ->check(in_range(1, 1000));
  app.add_option(
         "--tune", options.tune,
         "learning rates of the weights (weight.lr; [[group]] tables keep theirs) tried for "
         "every recipe with seed 1, on rows held out of the training rows (--val, 0.1 if not "
         "given): its own times 1/2, 1, 2, then beyond the end where the best lies, or between it "
         "and its neighbours; 1 = its own alone")
      ->capture_default_str()
      ->check(in_range(1, 15));
  app.add_option("--tune-epochs", options.tune_epochs, "epochs of these trials [those of a run]")
      ->check(in_range(1, 1000000));
}

void check_published(const std::vector<PublishedResult>& results, Metric metric) {
  if (metric != Metric::kAccuracy) return;
  for (const PublishedResult& result : results) {
    for (const auto& [key, percent] :
         {std::pair("score", result.score), std::pair("spread", result.spread.value_or(0.0))}) {
      check(percent <= 100.0, "the published result '", result.name, "': ", key, " is ", percent,
            ", but accuracies are in %, 100 at most; correct it");
    }
  }
}

void expand_all_recipes(std::vector<std::string>& recipes, bool for_language_models) {
  if (std::find(recipes.begin(), recipes.end(), "all") == recipes.end()) return;
  check(recipes.size() == 1,
        "--recipes: 'all' stands alone; leave the other names out, or name every recipe");
  recipes = for_language_models ? language_recipe_names() : recipe_names();
}

void prepare(ComparisonRequest& request, const CLI::App& app) {
  apply(request.common);
  request.options.train = request.common.train;
  request.command = repeat_command(app);
  std::vector<std::string>& recipes = request.options.recipes;
  for (std::string& recipe : recipes) recipe = without_outer_spaces(recipe);
  const bool for_language_models = context_of(request.common.train.model) > 0;
  if (for_language_models && app.count("--recipes") == 0) {
    for (std::string& recipe : recipes) recipe += kForLanguageModels;
  }
  expand_all_recipes(recipes, for_language_models);
}

std::vector<ComparisonRequest> read_plan(const std::string& path, const std::string& cache) {
  const std::string where = "plan '" + path + "'";
  const toml::table plan = read_toml("plan", path);
  const toml::array* tables = plan[kTables].as_array();
  check(tables != nullptr && tables->is_array_of_tables(), where,
        ": there is no [[comparison]]; write one for each data set");
  toml::table common = plan;
  common.erase(kTables);
  std::vector<ComparisonRequest> requests;
  for (const toml::node& node : *tables) {
    std::vector<PublishedResult> published = published_beside(*node.as_table(), where);
    toml::table table = *node.as_table();  // a copy, which knows no lines of tables
    table.erase(kPublished);
    add_missing(table, common);
    requests.push_back(read_comparison(table, where, node.source().begin.line, cache));
    requests.back().published = std::move(published);
  }
  return requests;
}

}  // namespace tritgrad
