#include "tools/compare/pareto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace tritgrad {

namespace {

// As they are printed: what the page calls the front must not contradict its own numbers.
double printed(double value) { return std::strtod(fmt::format("{:.2f}", value).c_str(), nullptr); }
double printed_bytes(const RecipeSummary& recipe) { return printed(recipe.bytes.total()); }
double printed_accuracy(const RecipeSummary& recipe) {
  return printed(100.0 * recipe.accuracy->mean);
}

}  // namespace

std::vector<std::size_t> pareto_front(const Comparison& comparison) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < comparison.recipes.size(); ++i) {
    if (comparison.recipes[i].accuracy) order.push_back(i);
  }
  // By bytes, and the more accurate first where they are equal.
  const auto rank = [&](std::size_t i) {
    const RecipeSummary& recipe = comparison.recipes[i];
    return std::tuple(printed_bytes(recipe), -printed_accuracy(recipe));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<std::size_t> front;
  double best = -1.0;
  for (const std::size_t i : order) {
    const double accuracy = printed_accuracy(comparison.recipes[i]);
    if (accuracy <= best) continue;
    best = accuracy;
    front.push_back(i);
  }
  return front;
}

}  // namespace tritgrad
