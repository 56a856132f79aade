// Arrays that a C program lends or has copied train to the same bits.
#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/memory/ledger.h"
#include "tests/support/c_handles.h"

namespace tritgrad::test::test_c_arrays {
namespace {

using Json = nlohmann::json;

// The hash of a short run on the data.
std::string trained_hash(tg_data* data) {
  const RunHandle run{tg_run_new(data, R"({"model": "mlp:8", "epochs": 2})")};
  REQUIRE(tg_run_all(run.handle) == TG_OK);
  return Json::parse(tg_run_finish(run.handle)).at("weights_sha256");
}

template <typename Number>
std::vector<Number> as_numbers(const CArrays& arrays) {
  std::vector<Number> numbers;
  for (const double value : arrays.values) numbers.push_back(static_cast<Number>(value));
  return numbers;
}

bool is_borrowed(tg_data* data) { return Json::parse(tg_data_describe(data)).at("borrowed"); }

}  // namespace

TEST_CASE("c arrays: what is lent is trained on where it is, to the same bits") {
  const CArrays digits("digits");  // whole numbers from 0 to 16
  const auto floats = as_numbers<float>(digits);
  const auto bytes = as_numbers<std::uint8_t>(digits);
  const auto open = [&](const void* values, tg_type type, const char* options) {
    return tg_data_from_arrays(values, type, digits.dataset.rows, 64, digits.labels.data(),
                               TG_INT64, options);
  };
  for (const auto& [values, type] :
       {std::pair<const void*, tg_type>{floats.data(), TG_FLOAT32}, {bytes.data(), TG_UINT8}}) {
    for (const char* image : {"", R"(, "image": [8, 8, 1])"}) {
      const std::string lent = std::string(R"({"borrow": true)") + image + "}";
      const std::string kept = std::string(R"({"borrow": false)") + image + "}";
      const DataHandle borrowed{open(values, type, lent.c_str())};
      const DataHandle copied{open(values, type, kept.c_str())};
      CHECK(is_borrowed(borrowed.handle));
      CHECK_FALSE(is_borrowed(copied.handle));
      CHECK(trained_hash(borrowed.handle) == trained_hash(copied.handle));
    }
  }
}

TEST_CASE("c arrays: what cannot be lent as it is is copied, and said") {
  const CArrays digits("digits");
  const DataHandle doubles{digits.open(R"({"borrow": true})")};
  CHECK_FALSE(is_borrowed(doubles.handle));
  // Floats that begin one byte behind the place of a float.
  const auto floats = as_numbers<float>(digits);
  std::vector<char> odd(floats.size() * sizeof(float) + 1);
  std::memcpy(odd.data() + 1, floats.data(), floats.size() * sizeof(float));
  const DataHandle unaligned{tg_data_from_arrays(odd.data() + 1, TG_FLOAT32, digits.dataset.rows,
                                                 64, digits.labels.data(), TG_INT64,
                                                 R"({"borrow": true})")};
  CHECK_FALSE(is_borrowed(unaligned.handle));
  CHECK(trained_hash(unaligned.handle) == trained_hash(doubles.handle));
}

TEST_CASE("c arrays: lent values are as finite as copied ones") {
  const float values[] = {0.0f, 1.0f, 2.0f, NAN};
  const std::int64_t labels[] = {0, 1, 0, 1};
  check_c_error(
      tg_data_from_arrays(values, TG_FLOAT32, 2, 2, labels, TG_INT64, R"({"borrow": true})"),
      "row 1, column 1 is nan");
  check_c_error(tg_data_from_arrays(values, TG_FLOAT32, 3, 1, labels, TG_INT64, R"({"borrow": 1})"),
                "'borrow' is 1, true or false expected");
}

TEST_CASE("c arrays: labels of 4 bytes and of one train to the bits of those of 8") {
  const CArrays digits("digits");
  const std::vector<std::int32_t> whole(digits.labels.begin(), digits.labels.end());
  const std::vector<std::uint8_t> bytes(digits.labels.begin(), digits.labels.end());
  const auto open = [&](const void* labels, tg_type type) {
    return tg_data_from_arrays(digits.values.data(), TG_FLOAT64, digits.dataset.rows, 64, labels,
                               type, nullptr);
  };
  const DataHandle expected{digits.open()};
  const DataHandle of_int32{open(whole.data(), TG_INT32)}, of_uint8{open(bytes.data(), TG_UINT8)};
  CHECK(trained_hash(of_int32.handle) == trained_hash(expected.handle));
  CHECK(trained_hash(of_uint8.handle) == trained_hash(expected.handle));
  check_c_error(open(digits.values.data(), TG_FLOAT64), "label_type 1 found, TG_INT64, TG_INT32");
  check_c_error(open(nullptr, TG_INT32), "labels: NULL found");
  check_c_error(tg_data_from_arrays(whole.data(), TG_INT32, 2, 2, whole.data(), TG_INT32, nullptr),
                "type 3 found, TG_FLOAT32");
}

TEST_CASE("c arrays: labels of 4 bytes name classes by their whole range") {
  const float values[] = {0.0f, 1.0f, 2.0f, 3.0f};
  const std::int32_t labels[] = {INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX};
  const DataHandle data{tg_data_from_arrays(values, TG_FLOAT32, 4, 1, labels, TG_INT32, nullptr)};
  REQUIRE(data.handle != nullptr);
  CHECK(Json::parse(tg_data_describe(data.handle)).at("classes") ==
        Json({"-2147483648", "2147483647"}));
}

}  // namespace tritgrad::test::test_c_arrays
