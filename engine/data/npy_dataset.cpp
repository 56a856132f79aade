#include "engine/data/npy_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/data/cell_text.h"
#include "engine/data/column_statistics.h"
#include "engine/data/label_encoder.h"
#include "engine/data/npy.h"
#include "engine/data/targets.h"
#include "engine/files/read_file.h"
#include "engine/files/zip.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

std::int64_t rows_of_pair(const ArrayPair& pair) { return pair.x.extents[0]; }

void check_feature_array(const NpyArray& x, const std::string& where) {
  check(!x.holds_texts(), where,
        ": texts found, numbers expected; save array.astype('float32') if they are numbers, else "
        "put words and labels into a CSV file");
  const std::size_t axes = x.extents.size();
  if (axes == 2 || (axes == 3 && x.element.is_byte)) return;
  fail(where, ": an array of ", axes, axes == 1 ? " axis" : " axes",
       " found, rows x features (or uint8 images: rows x height x width) expected; save ",
       axes < 2 ? "array.reshape(-1, 1) if each row has one feature"
                : "array.reshape(len(array), -1), or grey images as array.astype('uint8')");
}

void check_label_array(const ArrayPair& pair) {
  const NpyArray& y = pair.y;
  const auto& extents = y.extents;
  const std::int64_t rows = rows_of_pair(pair);
  const bool flat =
      std::count_if(extents.begin(), extents.end(), [](auto extent) { return extent > 1; }) < 2;
  const bool one_hot = !flat && extents.size() == 2 && extents[0] == rows;
  check(flat, pair.y_where, ": an array of shape ", y.shape_text(),
        " found, one label per row expected; save ",
        one_hot ? "numpy.argmax(y, axis=1) of one-hot labels" : "an array of one axis");
  check(y.size() == rows, pair.x_where, " holds ", counted(rows, "row"), " but ", pair.y_where,
        " holds ", counted(y.size(), "label"), "; give files that belong together");
}

// Returns the place behind the copy.
std::uint8_t* copy_bytes(const NpyArray& x, std::uint8_t* out) {
  if (!x.fortran_order) {
    std::memcpy(out, x.payload.data(), x.payload.size());
    return out + x.payload.size();
  }
  const std::vector<std::int64_t> places = x.places_in_row();
  for (std::int64_t row = 0; row < x.extents[0]; ++row) {
    for (std::int64_t place : places) {
      *out++ = static_cast<std::uint8_t>(
          x.payload[static_cast<std::size_t>(row * x.row_stride() + place)]);
    }
  }
  return out;
}

// The offsets that a model has learned of as many columns of numbers.
std::vector<double> offsets_of(const TableSchema& schema, std::size_t features) {
  std::vector<double> offsets;
  for (const TableFeature& column : schema.columns) {
    if (column.width() == 1 && column.words.empty()) offsets.push_back(column.offset);
  }
  if (offsets.size() != features) offsets.assign(features, 0.0);
  return offsets;
}

// Learns offsets from the training rows, and warns of columns for which none is enough.
TableSchema learn_offsets(const ArrayPair& pair, Remarks& remarks) {
  TableSchema schema;
  schema.label = "y";
  std::vector<double> numbers(static_cast<std::size_t>(rows_of_pair(pair)));
  for (std::int64_t place : pair.x.places_in_row()) {
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      numbers[row] = pair.x.number(static_cast<std::int64_t>(row) * pair.x.row_stride() + place);
    }
    TableFeature& column = schema.columns.emplace_back();
    column.place = std::ssize(schema.columns) - 1;
    column.name = concat("column ", column.place);
    const ColumnStatistics statistics = column_statistics(numbers);
    column.offset = offset_of(statistics);
    const std::string where = concat(pair.x_where, ": numbers of ", column.name);
    for (std::string& warning : warnings_of_losses(numbers, statistics, column.offset, where)) {
      remarks.warnings.push_back(std::move(warning));
    }
  }
  schema.label_place = std::ssize(schema.columns);
  schema.table_columns = schema.label_place + 1;
  return schema;
}

[[noreturn]] void refuse_number(const std::string& where, std::int64_t row, std::int64_t column,
                                double value) {
  fail(where, ": row ", row, ", column ", column, " is ", value,
       ", finite fp32 numbers expected; fill or remove the row");
}

void copy_numbers(const NpyArray& x, const std::string& where, std::span<const double> offsets,
                  float* out) {
  const std::vector<std::int64_t> places = x.places_in_row();
  const std::int64_t stride = x.row_stride();
  for (std::int64_t row = 0; row < x.extents[0]; ++row) {
    for (std::size_t column = 0; column < places.size(); ++column) {
      const double value = x.number(row * stride + places[column]);
      // Compared in double, because converting a larger value to float is undefined.
      if (!(std::abs(value) <= std::numeric_limits<float>::max())) {
        refuse_number(where, row, static_cast<std::int64_t>(column), value);
      }
      *out++ = static_cast<float>(value - offsets[column]);
    }
  }
}

// Fills in the features of all pairs, and the schema if numbers have offsets.
void copy_all_numbers(std::span<const ArrayPair> pairs, const TableSchema* known,
                      Dataset& dataset) {
  const auto features = static_cast<std::size_t>(dataset.features);
  std::vector<double> offsets(features, 0.0);
  std::shared_ptr<TableSchema> learned;
  if (known != nullptr) {
    offsets = offsets_of(*known, features);
    learned = std::make_shared<TableSchema>(*known);
  } else if (!pairs[0].x.element.fits_fp32) {
    learned = std::make_shared<TableSchema>(learn_offsets(pairs[0], dataset.remarks));
    offsets = offsets_of(*learned, features);
  }
  float* out = dataset.values.as<float>();
  for (const ArrayPair& pair : pairs) {
    copy_numbers(pair.x, pair.x_where, offsets, out);
    out += pair.x.size();
  }
  if (std::any_of(offsets.begin(), offsets.end(), [](double offset) { return offset != 0.0; })) {
    dataset.schema = std::move(learned);
  }
}

// `known`: classes, among which even the text of a missing label may be.
std::string label_of(const NpyArray& y, std::int64_t row, const std::string& where,
                     const std::vector<std::string>& known) {
  if (y.element.integer != nullptr) return y.integer(row);
  if (y.holds_texts()) {
    const std::optional<std::string> text = y.text(row);
    check(text.has_value(), where, ": the label of row ", row,
          " is no Unicode; save bytes of another kind as numpy.char.decode(y, 'latin-1')");
    check(!text->empty(), where, ": the label of row ", row, " is empty; fill or remove the row");
    if (is_missing_marker(*text) && std::find(known.begin(), known.end(), *text) == known.end()) {
      fail(where, ": the label of row ", row, " is \"", *text,
           "\", which stands for a missing one; fill or remove the row, or, if it is a class, save "
           "numpy.where(y.astype(str) == '",
           *text, "', 'class ", *text, "', y.astype(str))");
    }
    return *text;
  }
  constexpr double kExactLabels = 0x1p53;
  const double value = y.number(row);
  if (!(std::abs(value) < kExactLabels) || value != std::floor(value)) {
    fail(where, ": the label of row ", row, " is ", value, ", integers below 2^53 expected; ",
         !std::isfinite(value) ? "fill or remove the row"
         : known.empty()
             ? "number the classes: save numpy.unique(y, return_inverse=True)[1], or predict "
               "the numbers (--task regress)"
             : "save labels of the known classes");
  }
  return std::to_string(static_cast<std::int64_t>(value));
}

void add_labels(const ArrayPair& pair, const std::vector<std::string>& known,
                LabelEncoder& labels) {
  for (std::int64_t row = 0; row < rows_of_pair(pair); ++row) {
    labels.add(label_of(pair.y, row, pair.y_where, known));
  }
}

std::string place_of(std::span<const ArrayPair> pairs, std::int64_t row) {
  while (row >= rows_of_pair(pairs[0])) {
    row -= rows_of_pair(pairs[0]);
    pairs = pairs.subspan(1);
  }
  return concat(pairs[0].y_where, ", row ", row);
}

void copy_labels(Dataset& dataset, std::span<const ArrayPair> pairs, const TableSchema* schema) {
  std::vector<std::string> classes;  // of the training rows, where there are others too
  if (schema != nullptr) classes = schema->class_names;
  const auto place = [&](std::int64_t row) { return place_of(pairs, row); };
  const std::string advice = "save the array that holds the classes";
  if (classes.empty() && pairs.size() > 1) {
    LabelEncoder labels(pairs[0].y_where, advice);
    add_labels(pairs[0], {}, labels);
    Dataset training;
    labels.finish(training, {}, place);
    classes = std::move(training.class_names);
  }
  LabelEncoder labels(pairs.back().y_where, advice);
  for (const ArrayPair& pair : pairs) add_labels(pair, classes, labels);
  labels.finish(dataset, classes, place, schema != nullptr);
}

// Decides between classes and targets by the labels of the training rows. A model that knows
// classes has its schema beside it.
bool takes_targets_of(const ArrayPair& training, const TableSchema* schema, TaskKind task,
                      Remarks& remarks) {
  const NpyArray& y = training.y;
  if (task == TaskKind::kRegress) {
    check(!y.holds_texts(), training.y_where,
          ": the labels are texts and no numbers to predict; save y.astype('float64') if they are "
          "numbers, else ",
          schema != nullptr ? "another array, as the model predicts numbers"
                            : "train on classes (--task classify)");
    return true;
  }
  if (task == TaskKind::kClassify || schema != nullptr || y.holds_texts()) return false;
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < rows_of_pair(training); ++row) {
    if (const double number = y.number(row); std::isfinite(number)) numbers.push_back(number);
  }
  const bool measured = look_measured(numbers);
  std::string note = measured ? note_of_measured(training.y_where, numbers)
                              : note_of_classes(training.y_where, numbers);
  if (!note.empty()) remarks.notes.push_back(std::move(note));
  return measured;
}

void copy_targets(Dataset& dataset, std::span<const ArrayPair> pairs, bool to_score) {
  for (const ArrayPair& pair : pairs) {
    check(!pair.y.holds_texts(), pair.y_where, ": texts found, but the labels in ",
          pairs[0].y_where, " are numbers; save both alike");
    for (std::int64_t row = 0; row < rows_of_pair(pair); ++row) {
      const double target = pair.y.number(row);
      check(is_usable_target(target), pair.y_where, ": the label of row ", row, " is ", target,
            ", a number up to 3.4e38 expected; fill or remove the row");
      dataset.targets.push_back(target);
    }
  }
  check_targets(dataset, pairs.back().y_where, to_score,
                "save the array that holds the numbers to predict");
  if (to_score) return;
  std::string warning =
      warning_of_outliers(dataset.targets, [&](std::int64_t row) { return place_of(pairs, row); });
  if (!warning.empty()) dataset.remarks.warnings.push_back(std::move(warning));
}

// ---- Archives ----

// Names under which arrays are kept, whatever the case of their letters.
struct ArrayNames {
  std::string_view x, y, test_x, test_y;
};
constexpr ArrayNames kArrayNames[] = {
    {"x", "y", "", ""},
    {"x_train", "y_train", "x_test", "y_test"},
    {"data", "target", "", ""},
    {"data", "labels", "", ""},
    {"features", "labels", "", ""},
    {"images", "labels", "", ""},
    {"arr_0", "arr_1", "", ""},
};

std::string lower_case(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string joined(std::span<const std::string> entries) {
  std::string text;
  for (const std::string& entry : entries) text += (text.empty() ? "" : ", ") + entry;
  return text;
}

// The entry that holds the array of this name; nothing if there is none.
std::optional<std::string> find_array(const ZipArchive& archive, std::string_view name) {
  for (const std::string& entry : archive.names()) {
    if (lower_case(entry) == concat(name, ".npy")) return entry;
  }
  return std::nullopt;
}

// Fewer than two entries: no such arrays.
std::vector<std::string> find_arrays(const ZipArchive& archive) {
  for (const ArrayNames& names : kArrayNames) {
    std::vector<std::string> entries;
    for (std::string_view name : {names.x, names.y, names.test_x, names.test_y}) {
      const auto entry = name.empty() ? std::nullopt : find_array(archive, name);
      if (entry) entries.push_back(*entry);
    }
    if (entries.size() == (names.test_x.empty() ? 2 : 4)) return entries;
  }
  const std::string found = joined(archive.names());
  fail(archive.where(), ": no arrays of features and labels found by name (it holds ",
       found.empty() ? "nothing" : found, "); save numpy.savez(path, X=features, y=labels)");
}

// Throws Error unless all pairs have rows of the same shape and type.
void check_pairs(std::span<const ArrayPair> pairs) {
  const NpyArray& first = pairs[0].x;
  for (const ArrayPair& pair : pairs) {
    check_feature_array(pair.x, pair.x_where);
    check_label_array(pair);
    const NpyArray& x = pair.x;
    check(x.element.is_byte == first.element.is_byte &&
              std::equal(x.extents.begin() + 1, x.extents.end(), first.extents.begin() + 1,
                         first.extents.end()),
          pair.x_where, ": rows of another shape or type than in ", pairs[0].x_where,
          "; save both alike");
  }
}

bool has_offsets(const TableSchema* schema, std::size_t features) {
  if (schema == nullptr) return false;
  const std::vector<double> offsets = offsets_of(*schema, features);
  return std::any_of(offsets.begin(), offsets.end(), [](double offset) { return offset != 0.0; });
}

// Takes the values as they are, if they are those of a data set already.
bool borrow_values(const NpyArray& x, const std::string& where, const TableSchema* schema,
                   Dataset& dataset) {
  const bool as_they_are =
      !x.fortran_order &&
      (x.element.is_byte ||
       (x.element.is_native_fp32 &&
        !has_offsets(schema, static_cast<std::size_t>(x.row_stride())) &&
        reinterpret_cast<std::uintptr_t>(x.payload.data()) % alignof(float) == 0));
  if (!as_they_are) return false;
  const auto bytes = std::as_bytes(std::span(x.payload));
  dataset.borrow(x.extents[0], x.row_stride(),
                 x.element.is_byte ? Element::kByte : Element::kFloat32, bytes);
  if (x.element.is_byte) return true;
  const float* values = dataset.values.as<float>();
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(values[i]))
      refuse_number(where, i / x.row_stride(), i % x.row_stride(), values[i]);
  }
  return true;
}

void copy_values(std::span<const ArrayPair> pairs, const TableSchema* schema, Dataset& dataset) {
  const NpyArray& first = pairs[0].x;
  std::int64_t rows = 0;
  for (const ArrayPair& pair : pairs) rows += rows_of_pair(pair);
  dataset.allocate(rows, first.size() / first.extents[0],
                   first.element.is_byte ? Element::kByte : Element::kFloat32);
  if (!first.element.is_byte) return copy_all_numbers(pairs, schema, dataset);
  std::uint8_t* out = dataset.values.as<std::uint8_t>();
  for (const ArrayPair& pair : pairs) out = copy_bytes(pair.x, out);
}

}  // namespace

Dataset dataset_of_arrays(std::span<const ArrayPair> pairs, const std::string& name,
                          const TableSchema* schema, bool borrow, TaskKind task) {
  check_pairs(pairs);
  const NpyArray& first = pairs[0].x;
  Dataset dataset;
  dataset.name = name;
  if (first.extents.size() == 3) dataset.image = {first.extents[1], first.extents[2], 1};
  const bool borrowed =
      borrow && pairs.size() == 1 && borrow_values(first, pairs[0].x_where, schema, dataset);
  if (!borrowed) copy_values(pairs, schema, dataset);
  if (takes_targets_of(pairs[0], schema, task, dataset.remarks)) {
    copy_targets(dataset, pairs, schema != nullptr);
  } else {
    copy_labels(dataset, pairs, schema);
  }
  dataset.published_test_rows = dataset.rows - rows_of_pair(pairs[0]);
  return dataset;
}

Dataset parse_npy_pairs(std::span<const NpyPair> sources, const std::string& name,
                        const TableSchema* schema, TaskKind task) {
  std::vector<ArrayPair> pairs;
  for (const NpyPair& source : sources) {
    pairs.push_back({parse_npy(source.x, source.x_where), parse_npy(source.y, source.y_where),
                     source.x_where, source.y_where});
  }
  return dataset_of_arrays(pairs, name, schema, false, task);
}

Dataset read_npy_pair(const std::string& x_path, const std::string& y_path,
                      const TableSchema* schema, TaskKind task) {
  const std::string x = read_file(x_path);
  const std::string y = read_file(y_path);
  const std::array<NpyPair, 1> pairs = {NpyPair{x, y, x_path, y_path}};
  return parse_npy_pairs(pairs, std::filesystem::path(x_path).stem().string(), schema, task);
}

Dataset parse_npz(std::string_view bytes, const std::string& where, const TableSchema* schema,
                  TaskKind task) {
  const ZipArchive archive(bytes, where);
  const std::vector<std::string> taken = find_arrays(archive);
  std::vector<std::string> arrays, names;
  for (const std::string& entry : taken) {
    arrays.push_back(archive.read(entry));
    names.push_back(concat(where, ", ", entry));
  }
  std::vector<NpyPair> pairs;
  for (std::size_t i = 0; i + 1 < arrays.size(); i += 2) {
    pairs.push_back({arrays[i], arrays[i + 1], names[i], names[i + 1]});
  }
  Dataset dataset = parse_npy_pairs(pairs, where, schema, task);
  std::vector<std::string> left;
  for (const std::string& entry : archive.names()) {
    if (std::find(taken.begin(), taken.end(), entry) == taken.end()) left.push_back(entry);
  }
  if (!left.empty()) {
    dataset.remarks.notes.push_back(concat(where, ": ", joined(taken), " are read, ", joined(left),
                                           left.size() == 1 ? " is not" : " are not"));
  }
  return dataset;
}

Dataset read_npz(const std::string& path, const TableSchema* schema, TaskKind task) {
  Dataset dataset = parse_npz(read_file(path), path, schema, task);
  dataset.name = std::filesystem::path(path).stem().string();
  return dataset;
}

}  // namespace tritgrad
