// libFuzzer entry for tables: one text is learned from, another one read as its model reads it. The
// first byte chooses options; the two that follow give the length of the first text. A refusal
// (Error) is a good result; a schema that does not survive as JSON, a data set of another width
// than its schema, or a target that is not finite or not the same when it is read again, is none.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check.h"
#include "engine/data/csv.h"
#include "engine/data/targets.h"

namespace {

using tritgrad::CsvOptions;
using tritgrad::Dataset;
using tritgrad::TableSchema;
using tritgrad::TargetScale;
using tritgrad::TaskKind;

void expect(bool condition) {
  if (!condition) std::abort();
}

void check_schema(const Dataset& data) {
  TableSchema schema = tritgrad::schema_from_json(tritgrad::to_json(*data.schema), "json");
  schema.class_names = data.schema->class_names;
  expect(schema == *data.schema);
  expect(schema.features() == data.features);
  expect(std::ssize(data.feature_names) == data.features);
}

// Rows have classes or targets, and targets are numbers that a network can learn.
void check_labels(const Dataset& data) {
  expect(std::ssize(data.labels) == (data.is_regression() ? 0 : data.rows));
  expect(std::ssize(data.targets) == (data.is_regression() ? data.rows : 0));
  if (!data.is_regression()) return;
  std::vector<std::int32_t> rows(data.targets.size());
  std::iota(rows.begin(), rows.end(), 0);
  const TargetScale scale = TargetScale::fit(data, rows);
  for (const double target : data.targets) {
    expect(std::isfinite(target) && std::isfinite(scale.standardised(target)));
  }
}

void read_both(unsigned choice, std::string_view bytes) {
  const std::size_t length = static_cast<unsigned char>(bytes[0]) +
                             std::size_t{256} * static_cast<unsigned char>(bytes[1]);
  bytes.remove_prefix(2);
  const std::string_view first = bytes.substr(0, length), second = bytes.substr(first.size());
  CsvOptions options;
  options.missing = static_cast<tritgrad::MissingCells>(choice % 4);
  if ((choice & 4) != 0) options.words = {"0"};
  if ((choice & 8) != 0) options.drop = {"a"};
  if ((choice & 16) != 0) options.label = "0";
  if ((choice & 32) != 0) options.task = TaskKind::kRegress;
  const Dataset learned = tritgrad::parse_csv(first, "first", options);
  check_schema(learned);
  check_labels(learned);
  options.schema = learned.schema.get();
  options.task = learned.is_regression() ? TaskKind::kRegress : TaskKind::kClassify;
  const Dataset again = tritgrad::parse_csv(first, "first", options);
  expect(again.features == learned.features && again.labels == learned.labels);
  expect(again.targets == learned.targets);
  const Dataset other = tritgrad::parse_csv(second, "second", options);
  expect(other.features == learned.features);
  expect(other.is_regression() == learned.is_regression());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  try {
    read_both(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const tritgrad::Error&) {
  }
  return 0;
}
