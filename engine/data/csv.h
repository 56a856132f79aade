// Tables with one label column, of classes or of numbers to predict, as text
// (engine/data/csv_records.h says how it is written).
//
// A column holds words when most of its cells are none of numbers and markers of missing cells;
// names of columns, classes and words must be UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "engine/data/dataset.h"
#include "engine/data/table.h"
#include "engine/data/table_schema.h"

namespace tritgrad {

struct CsvOptions : TableOptions {
  enum class Header {
    kAuto,  // the first line holds names when none of its feature cells is a number
    kYes,
    kNo,
  };
  Header header = Header::kAuto;
};

// `where` names the source in messages and the data set.
DataTable parse_csv_table(std::string_view text, const std::string& where,
                          const CsvOptions& options = {});
Dataset parse_csv(std::string_view text, const std::string& where, const CsvOptions& options = {});
Dataset read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace tritgrad
