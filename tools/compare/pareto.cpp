#include "tools/compare/pareto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace tritgrad {

namespace {

// As they are printed: what the page calls the front must not contradict its own numbers.
double printed_bytes(const RecipeSummary& recipe) {
  return std::strtod(fmt::format("{:.2f}", recipe.bytes.total()).c_str(), nullptr);
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
    return std::tuple(printed_bytes(recipe), -recipe.accuracy->mean);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  std::vector<std::size_t> front;
  double best = -1.0;
  for (const std::size_t i : order) {
    const double accuracy = comparison.recipes[i].accuracy->mean;
    if (accuracy <= best) continue;
    best = accuracy;
    front.push_back(i);
  }
  return front;
}

}  // namespace tritgrad
