// Handles of the C interface that close themselves, and arrays as a C program would have them.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/open_dataset.h"
#include "tools/c/tritgrad.h"

namespace tritgrad::test {

// A handle is closed with the object, which can be moved into a list.
template <typename Handle, void (*kClose)(Handle*)>
struct OwnedHandle {
  explicit OwnedHandle(Handle* given) : handle(given) {}
  ~OwnedHandle() { kClose(handle); }
  OwnedHandle(const OwnedHandle&) = delete;
  OwnedHandle& operator=(const OwnedHandle&) = delete;

  Handle* handle;
};
using DataHandle = OwnedHandle<tg_data, tg_data_close>;
using RunHandle = OwnedHandle<tg_run, tg_run_close>;
using ModelHandle = OwnedHandle<tg_model, tg_model_close>;

// Rows of a built-in set.
struct CArrays {
  Dataset dataset;
  std::vector<double> values;
  std::vector<std::int64_t> labels;

  explicit CArrays(const char* name) : dataset(builtin_dataset(name)) {
    std::vector<float> row(static_cast<std::size_t>(dataset.features));
    for (std::int64_t i = 0; i < dataset.rows; ++i) {
      dataset.gather(i, row.data());
      values.insert(values.end(), row.begin(), row.end());
    }
    labels.assign(dataset.labels.begin(), dataset.labels.end());
  }
  tg_data* open(const char* options = nullptr) const {
    return tg_data_from_arrays(values.data(), TG_FLOAT64, dataset.rows, dataset.features,
                               labels.data(), TG_INT64, options);
  }
};

// The last call failed in this way, with a sentence that contains `part`.
inline void check_c_error(const void* handle, const char* part, tg_status status = TG_INVALID) {
  CHECK(handle == nullptr);
  CAPTURE(std::string(tg_error()));
  CHECK(std::string(tg_error()).find(part) != std::string::npos);
  CHECK(tg_error_status() == status);
}

}  // namespace tritgrad::test
