#include "engine/data/builtin_data.h"

#include <algorithm>

#include "engine/check.h"
#include "engine/data/csv.h"
#include "engine/data/embedded.h"

namespace tritgrad {

Dataset builtin_dataset(const std::string& name) {
  const auto files = embedded_files();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const EmbeddedFile& each) { return each.name == name; });
  check(file != files.end(), "no built-in data set is called \"", name,
        "\"; there are iris, wdbc, digits and wine");
  std::string text;
  for (std::string_view piece : file->pieces) text += piece;
  CsvOptions options;
  options.header = CsvOptions::Header::kYes;
  // The published order, in which malignant comes first; alphabetical for the other sets.
  if (name == "wdbc") options.class_names = {"malignant", "benign"};
  Dataset dataset = parse_csv(text, name, options);
  if (name == "digits") dataset.image = {8, 8, 1};
  return dataset;
}

}  // namespace tritgrad
