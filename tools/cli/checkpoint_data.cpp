#include "tools/cli/checkpoint_data.h"

#include "engine/check.h"

namespace tritgrad {
namespace {

// The label column, the header and the way with missing cells may be others than those of the
// training file. The model decides which columns are read, and as what.
void adopt_table_options(const Given& given, const TrainSpec& asked, TrainSpec& saved,
                         TableSchema& schema) {
  for (const char* option : {"--columns", "--drop", "--words", "--max-categories"}) {
    check(!given(option), option,
          ": the model knows its columns from its training; leave the option out");
  }
  check(!given("--tokens"),
        "--tokens: the checkpoint holds the tokenizer of its model; leave the option out");
  check(!given("--task"),
        "--task: the model knows its task from its training; leave the option out");
  check(!given("--resize"),
        "--resize: the model knows the size of its images from its training; leave the option out");
  if (given("--header")) saved.header = asked.header;
  if (given("--missing")) saved.missing = asked.missing;
  if (given("--label")) {
    saved.label = asked.label;
    schema.label.clear();  // its name would be looked for first
  }
}

}  // namespace

Given given_on(const CLI::App& command) {
  return [&command](const char* option) { return command.count(option) > 0; };
}

void forget_columns(const std::string& data, TrainSpec& saved) {
  if (is_csv(data)) return;
  const TrainSpec untouched;
  saved.label = untouched.label;
  saved.header = untouched.header;
  saved.missing = untouched.missing;
  saved.max_categories = untouched.max_categories;
  saved.columns = untouched.columns;
  saved.drop = untouched.drop;
  saved.words = untouched.words;
}

std::optional<Vocabulary> vocabulary_of(const SavedRun& saved) {
  return saved.is_language_model() ? std::optional(saved.vocabulary()) : std::nullopt;
}

Dataset open_saved_data(const SavedRun& saved, const CommonOptions& options) {
  const std::string& checkpoint = saved.path();
  check(options.train.data != "-", "the checkpoint '", checkpoint,
        "' was trained on standard input, which cannot be read again: name a file with the same "
        "rows by --data, or send them once more and say --data -");
  try {
    return open_data(options, saved.table(), vocabulary_of(saved));
  } catch (const Error& error) {
    fail_again(error, "",
               concat("; the checkpoint '", checkpoint, "' was trained on '", options.train.data,
                      "': where that lies elsewhere now, name it by --data"));
  }
}

TableSchema adopt_scored_data(const Given& given, const SavedRun& run, CommonOptions& options) {
  TrainSpec saved = run.spec();
  if (given("--data")) {
    saved.data = options.train.data;
    forget_columns(saved.data, saved);
  }
  TableSchema schema = run.table();
  adopt_table_options(given, options.train, saved, schema);
  static_cast<TrainSpec&>(options.train) = saved;
  return schema;
}

Dataset open_scored_data(const Given& given, const SavedRun& run, const CommonOptions& options,
                         const TableSchema& schema) {
  const bool named = given("--data");
  Dataset dataset =
      named ? open_data(options, schema, vocabulary_of(run)) : open_saved_data(run, options);
  run.adopt_image(dataset);
  if (!named) {
    run.check_same_data(
        dataset, "its test rows may be others now; name them by --data to score them as new");
  }
  return dataset;
}

}  // namespace tritgrad
