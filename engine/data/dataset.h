// A data set in memory: one row of features and one label, a class or a number, per example.
//
// Feature values are finite, or NaN where a table's cell is missing and the mean stands for it.
// Pixels stay one byte each, everything else is fp32. Both, labels, targets and lines are counted
// by the ledger as data; values that are borrowed are another's. Labels are 0 .. classes-1 in the
// order of class_names. Data for regression have targets instead, finite numbers in their own
// units, and neither labels nor names of classes. Rows of a text are the windows that follow each
// other in it, `features` tokens each, of which the labels are the tokens one further on; neither
// is kept beside the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/data/image_shape.h"
#include "engine/memory/buffer.h"
#include "engine/memory/data_vector.h"

namespace tritgrad {

enum class Element { kFloat32, kByte };

struct TableSchema;  // engine/data/table_schema.h
class TokenText;     // engine/data/token_text.h

// Remarks are what a person who reads data should be told, as sentences without a full stop.
struct Remarks {
  std::vector<std::string> notes;     // what was understood, of which a person may think otherwise
  std::vector<std::string> warnings;  // what is probably wrong
};

struct Dataset {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t features = 0;
  std::vector<std::string> feature_names;  // empty for images
  std::vector<std::string> class_names;
  DataVector<std::int32_t> labels;
  DataVector<double> targets;
  DataVector<std::int64_t> lines;  // of rows in the text of a table, from 1; else empty
  Element element = Element::kFloat32;
  Buffer values;                              // [rows x features], row-major
  ImageShape image;                           // of size `features`, or 0
  std::int64_t published_test_rows = 0;       // rows at the end that are the published test set
  bool has_missing = false;                   // some values are NaN
  std::shared_ptr<const TableSchema> schema;  // of a user's table, else null
  std::shared_ptr<const TokenText> text;      // of language models, else null
  Remarks remarks;

  // Sets rows, features, element and zeroed values. Throws when there is nothing to hold, when a
  // row number does not fit int32, or when the size overflows.
  void allocate(std::int64_t row_count, std::int64_t feature_count, Element type);
  // Does so with the values of somebody else, who keeps them, unchanged, for as long.
  void borrow(std::int64_t row_count, std::int64_t feature_count, Element type,
              std::span<const std::byte> bytes);

  // All features share one unit: one mean and one scale for all.
  bool is_image() const { return image.size() > 0; }
  // From 0 (black) to 255.
  bool has_byte_pixels() const { return is_image() && element == Element::kByte; }
  int classes() const { return static_cast<int>(class_names.size()); }
  bool is_regression() const { return !targets.empty(); }
  bool is_text() const { return text != nullptr; }
  // What a row has a label of: itself, or each token of a window.
  std::int64_t labels_per_row() const { return is_text() ? features : 1; }
  // What a model of the data has: a logit for each class or token, or one number.
  std::int64_t outputs() const;
  // Rows of each class.
  std::vector<std::int64_t> class_counts() const;
  // Where a row stands: "line 7" of a table's text, else "row 6 (counted from 0)", as NumPy counts.
  std::string place(std::int64_t row) const;
  // The features of one row, or columns [begin, end) of them, as fp32.
  void gather(std::int64_t row, float* out) const { gather(row, 0, features, out); }
  void gather(std::int64_t row, std::int64_t begin, std::int64_t end, float* out) const;
  // Asks for the memory of a row that will be read soon.
  void prefetch(std::int64_t row) const;

 private:
  std::int64_t set_sizes(std::int64_t row_count, std::int64_t feature_count, Element type);
};

}  // namespace tritgrad
