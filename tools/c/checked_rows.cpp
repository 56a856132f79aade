#include "tools/c/checked_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/data/npy_dataset.h"
#include "engine/data/npy_writer.h"

namespace tritgrad {
namespace {

Dataset copy_of_rows(const Dataset& dataset, std::span<const std::int32_t> rows) {
  Dataset copy;
  copy.name = dataset.name;
  copy.feature_names = dataset.feature_names;
  copy.class_names = dataset.class_names;
  copy.image = dataset.image;
  copy.has_missing = dataset.has_missing;
  copy.schema = dataset.schema;
  copy.allocate(std::ssize(rows), dataset.features, dataset.element);
  const std::size_t row_bytes =
      dataset.values.bytes().size() / static_cast<std::size_t>(dataset.rows);
  std::byte* out = copy.values.as<std::byte>();
  for (const std::int32_t row : rows) {
    const auto at = static_cast<std::size_t>(row);
    std::memcpy(out, dataset.values.bytes().data() + at * row_bytes, row_bytes);
    out += row_bytes;
    if (dataset.is_regression()) {
      copy.targets.push_back(dataset.targets[at]);
    } else {
      copy.labels.push_back(dataset.labels[at]);
    }
  }
  return copy;
}

// The names of classes that these numbers are of.
std::vector<std::string> class_texts(const std::vector<std::string>& names,
                                     const std::int64_t* classes, std::int64_t rows) {
  std::vector<std::string> texts;
  for (std::int64_t row = 0; row < rows; ++row) {
    check(classes[row] >= 0 && classes[row] < std::ssize(names), "classes: row ", row, " is ",
          classes[row], ", a number from 0 to ", std::ssize(names) - 1, " expected");
    texts.push_back(names[static_cast<std::size_t>(classes[row])]);
  }
  return texts;
}

// The answers as a .npy file.
std::string npy_of(const SavedRun& saved, const KnownAnswers& answers, std::int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  if (saved.is_regression()) {
    std::vector<double> targets(count);
    if (answers.targets != nullptr) std::copy_n(answers.targets, count, targets.begin());
    return write_npy({rows}, targets);
  }
  const std::vector<std::string> names = saved.class_names();
  if (answers.classes == nullptr) return write_npy_texts(std::vector(count, names.front()));
  return write_npy_texts(class_texts(names, answers.classes, rows));
}

}  // namespace

Dataset rows_held_back(const Dataset& dataset, const Split& split) {
  constexpr std::size_t kMost = 1000;
  const auto& rows = !split.test.empty()  ? split.test
                     : !split.val.empty() ? split.val
                                          : split.train;
  const char* kind = !split.test.empty()  ? "test rows"
                     : !split.val.empty() ? "validation rows"
                                          : "rows of the training";
  std::vector<std::int32_t> some;
  const std::size_t every = (rows.size() + kMost - 1) / kMost;
  for (std::size_t i = 0; i < rows.size(); i += every) some.push_back(rows[i]);
  Dataset copy = copy_of_rows(dataset, some);
  copy.name +=
      every == 1 ? concat(" (", kind, ")") : concat(" (some of ", rows.size(), " ", kind, ")");
  return copy;
}

Dataset rows_given(const SavedRun& saved, const NpyArray& values, const KnownAnswers& answers) {
  const bool regression = saved.is_regression();
  check(!regression || answers.classes == nullptr,
        "classes: a model of regression has none; give NULL, and targets");
  check(regression || answers.targets == nullptr,
        "targets: the model has classes and predicts no numbers; give NULL, and classes");
  const TableSchema schema = saved.table();
  const std::string labels = npy_of(saved, answers, values.extents[0]);
  const ArrayPair pair{values, parse_npy(labels, "answers"), "values",
                       regression ? "targets" : "classes"};
  Dataset dataset = dataset_of_arrays({&pair, 1}, "rows that were given", &schema, false,
                                      regression ? TaskKind::kRegress : TaskKind::kClassify);
  dataset.image = saved.model().input.image;
  return dataset;
}

}  // namespace tritgrad
