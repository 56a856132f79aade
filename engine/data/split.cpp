#include "engine/data/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/check.h"
#include "engine/random.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

using Rows = RowNumbers;

// A text is long: a tenth of it is enough to judge a model by, and so are so many tokens.
constexpr double kTestOfText = 0.1;
constexpr double kMostTestTokens = 1 << 18;

// The rows of each class, or of regression all of them, each list shuffled by its own step of the
// key.
std::vector<Rows> shuffled_classes(const Rows& rows, const Dataset& dataset, std::uint64_t seed,
                                   std::string_view purpose) {
  std::vector<Rows> classes(dataset.is_regression() ? 1 : dataset.class_names.size());
  if (dataset.is_regression()) classes[0] = rows;
  for (std::size_t i = 0; i < rows.size() && !dataset.is_regression(); ++i) {
    const auto label = static_cast<std::size_t>(dataset.labels[static_cast<std::size_t>(rows[i])]);
    classes[label].push_back(rows[i]);
  }
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const RandomKey key{seed, random_stream(purpose), static_cast<std::uint32_t>(label)};
    Rows& members = classes[label];
    for (std::size_t i = members.size(); i > 1; --i) {
      std::swap(members[i - 1], members[random_below(key, i, static_cast<std::uint32_t>(i))]);
    }
  }
  return classes;
}

// How many rows of each class to take: the total is rounded once, every class gets the whole part
// of its share, and the largest remainders get the rest (the first class of equals).
std::vector<std::size_t> stratified_counts(const std::vector<Rows>& classes, double fraction,
                                           std::size_t total_rows) {
  std::vector<std::size_t> counts;
  std::vector<double> remainders;
  auto missing = std::llround(fraction * static_cast<double>(total_rows));
  for (const Rows& members : classes) {
    const double share = fraction * static_cast<double>(members.size());
    counts.push_back(static_cast<std::size_t>(share));
    remainders.push_back(share - std::floor(share));
    missing -= static_cast<long long>(counts.back());
  }
  for (; missing > 0; --missing) {
    const auto largest = std::max_element(remainders.begin(), remainders.end());
    ++counts[static_cast<std::size_t>(largest - remainders.begin())];
    *largest = -1.0;
  }
  return counts;
}

// Splits `rows` into those kept and those taken; `subject` names the part in messages.
std::pair<Rows, Rows> take_fraction(const Rows& rows, const Dataset& dataset, double fraction,
                                    std::string_view subject) {
  check(fraction > 0.0 && fraction < 1.0, subject, " fraction ", fraction,
        " found, a number between 0 and 1 (exclusive) expected");
  constexpr std::uint64_t kConstantSeed = 0;
  const auto classes = shuffled_classes(rows, dataset, kConstantSeed, subject);
  const auto counts = stratified_counts(classes, fraction, rows.size());
  Rows kept, taken;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const auto cut = classes[label].begin() + static_cast<std::ptrdiff_t>(counts[label]);
    taken.insert(taken.end(), classes[label].begin(), cut);
    kept.insert(kept.end(), cut, classes[label].end());
  }
  check(!kept.empty() && !taken.empty(), subject, " fraction ", fraction, " of ",
        counted(std::ssize(rows), "row"), " of ", dataset.name,
        " leaves a part empty; give more rows");
  std::sort(kept.begin(), kept.end());
  std::sort(taken.begin(), taken.end());
  return {std::move(kept), std::move(taken)};
}

// Windows of a text that follow each other are alike: what is held out are its last ones.
std::pair<Rows, Rows> take_tail(const Rows& rows, const Dataset& dataset, double fraction,
                                std::string_view subject) {
  const auto n = static_cast<double>(rows.size());
  const auto cut = rows.begin() + std::lround(n - std::max(1.0, fraction * n));
  check(cut > rows.begin(), dataset.name, ": its ", counted(std::ssize(rows), "window"), " of ",
        dataset.features, " tokens are too few for a ", subject,
        " part beside those to train on; give more text or a model with a smaller context");
  return {{rows.begin(), cut}, {cut, rows.end()}};
}

Rows row_range(std::int64_t begin, std::int64_t end) {
  Rows rows(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(begin));
  return rows;
}

// Throws Error where a class has fewer rows than there are folds, and names at once what works.
void check_folds(const std::vector<Rows>& classes, const Dataset& dataset, int folds) {
  if (dataset.is_regression()) {
    const auto rows = std::ssize(classes[0]);
    check(rows >= folds, "folds: ", folds, " found, but ", dataset.name, " has only ",
          counted(rows, "row"), "; use ", rows, " folds at most (--folds ", rows, ")");
    return;
  }
  std::size_t most = static_cast<std::size_t>(folds), rarest = 0;
  std::vector<std::size_t> lone;  // classes that no two folds can share
  for (std::size_t label = 0; label < classes.size(); ++label) {
    const std::size_t members = classes[label].size();
    if (members < 2) {
      lone.push_back(label);
    } else if (members < most) {
      most = members;
      rarest = label;
    }
  }
  const bool too_many = most < static_cast<std::size_t>(folds);
  const std::string fewer = concat("use ", most, " folds at most (--folds ", most, ")");
  if (lone.empty()) {
    check(!too_many, "folds: ", folds, " found, but class \"",
          printable(dataset.class_names[rarest]), "\" of ", dataset.name, " has only ", most,
          " rows; ", fewer);
    return;
  }
  const bool one = lone.size() == 1;
  const std::string name = "\"" + printable(dataset.class_names[lone[0]]) + "\"";
  fail("folds: ", folds, " found, but ",
       one ? "class " + name : concat(lone.size(), " classes, such as ", name, ","), " of ",
       dataset.name, one ? " has only " : " have only ",
       counted(std::ssize(classes[lone[0]]), "row"), "; leave ",
       one ? "that class" : "those classes", " out", too_many ? " and " + fewer : "",
       ", or train without folds");
}

}  // namespace

Split unsplit(const Dataset& dataset) {
  Split split;
  split.train.resize(static_cast<std::size_t>(dataset.rows));
  std::iota(split.train.begin(), split.train.end(), 0);
  return split;
}

Split fixed_split(const Dataset& dataset, double test_fraction) {
  Split split;
  if (dataset.published_test_rows > 0) {
    const std::int64_t cut = dataset.rows - dataset.published_test_rows;
    split.train = row_range(0, cut);
    split.test = row_range(cut, dataset.rows);
  } else if (dataset.is_text()) {
    const double tokens = static_cast<double>(dataset.rows) * static_cast<double>(dataset.features);
    std::tie(split.train, split.test) =
        take_tail(row_range(0, dataset.rows), dataset,
                  std::min(kTestOfText, kMostTestTokens / tokens), "test");
  } else {
    std::tie(split.train, split.test) =
        take_fraction(row_range(0, dataset.rows), dataset, test_fraction, "test");
  }
  return split;
}

Split fold_split(const Dataset& dataset, int folds, int fold, std::uint64_t seed) {
  check(folds >= 2, "folds: ", folds, " found, at least 2 needed");
  check(!dataset.is_text(), "folds: ", dataset.name,
        " is a text, which is judged by its end; leave --folds out");
  check(fold >= 0 && fold < folds, "fold: ", fold, " found, 0 to ", folds - 1, " expected");
  const auto rows = row_range(0, dataset.rows - dataset.published_test_rows);
  const auto classes = shuffled_classes(rows, dataset, seed, "folds");
  check_folds(classes, dataset, folds);
  Split split;
  // Rows are dealt like cards, each class beginning where the one before it stopped, so that both
  // the folds and the classes within them differ in size by at most one.
  std::size_t dealt = 0;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    for (std::int32_t row : classes[label]) {
      const bool held_out =
          dealt++ % static_cast<std::size_t>(folds) == static_cast<std::size_t>(fold);
      (held_out ? split.test : split.train).push_back(row);
    }
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.test.begin(), split.test.end());
  return split;
}

Split carve_validation(Split split, const Dataset& dataset, double fraction) {
  auto [train, val] =
      (dataset.is_text() ? take_tail : take_fraction)(split.train, dataset, fraction, "validation");
  split.train = std::move(train);
  split.val = std::move(val);
  return split;
}

}  // namespace tritgrad
