// What a program in C is told of a failure: of what kind it was, and a sentence that is text,
// however the arguments were.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/text.h"
#include "tests/support/c_handles.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_errors {
namespace {

std::string quoted_key(const std::string& key, const std::string& value) {
  return "{\"" + key + "\": \"" + value + "\"}";
}

void check_is_text(const std::string& sentence) {
  CAPTURE(sentence.substr(0, 200));
  CHECK(sentence.size() <= 1000);
  CHECK(is_utf8(sentence));
  CHECK(printable(sentence) == sentence);
}

}  // namespace

TEST_CASE("c errors: the kind of a failure is told of handles, texts and codes alike") {
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  const auto new_run = [&](const char* spec) { return tg_run_new(data.handle, spec); };
  check_c_error(new_run(R"({"resume": "/none"})"), "No such file", TG_NOT_FOUND);
  check_c_error(new_run(R"({"recipe": "none.toml"})"), "there is no such file", TG_NOT_FOUND);
  check_c_error(tg_data_open(R"({"data": "none.csv"})"), "no data set or file", TG_NOT_FOUND);
  check_c_error(tg_data_open(R"({"data": "none.npy,other.npy"})"), "none.npy", TG_NOT_FOUND);
  check_c_error(tg_model_open("/none/m"), "/none/m", TG_NOT_FOUND);
  check_c_error(new_run(R"({"epochs": 0})"), "whole number", TG_INVALID);
  const RunHandle run{new_run(R"({"model": "mlp:3", "epochs": 1})")};
  CHECK(tg_error_status() == TG_INVALID);  // success leaves the last failure as it was
  CHECK(tg_run_save(run.handle, "/none/m") == TG_NOT_FOUND);
  CHECK(tg_error_status() == TG_NOT_FOUND);
  CHECK(tg_run_save(run.handle, "/dev/null") == TG_INVALID);
  CHECK(tg_error_status() == TG_INVALID);
}

TEST_CASE("c errors: memory that is not there is told as such") {
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  // A second matrix of 2^46 floats, more bytes than the 2^47 that a process can address.
  check_c_error(tg_run_new(data.handle, R"({"model": "mlp:4194304,16777216", "recipe": "fp32"})"),
                "out of memory", TG_MEMORY);
}

TEST_CASE("c errors: a run that diverges says so") {
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  const RunHandle run{tg_run_new(
      data.handle,
      R"({"recipe": "fp32", "lr": 9e5, "model": "mlp:64,64,64,64:norm=none:activation=squared_relu"})")};
  CHECK(tg_run_all(run.handle) == TG_DIVERGED);
  CHECK(tg_error_status() == TG_DIVERGED);
}

TEST_CASE("c errors: a zero character within a text is refused, and does not end the sentence") {
  for (const char* key : {"data", "label", "missing", "header", "words"}) {
    CAPTURE(key);
    check_c_error(tg_data_open(quoted_key(key, "ab\\u0000cd").c_str()),
                  "is \"ab\\u0000cd\", a text without zero characters expected");
  }
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  check_c_error(tg_run_new(data.handle, R"({"set": ["weight.lr=1\u0000"]})"),
                "a text without zero characters expected");
  check_c_error(tg_data_open("{\"da\\u0000ta\": 1}"), "unknown key 'da?ta'; did you mean 'data'?");
}

TEST_CASE("c errors: control characters and broken UTF-8 of arguments reach no sentence") {
  check_c_error(tg_data_open(quoted_key("data", "a\\n\\u001b[31m\\u009b").c_str()),
                "no data set or file \"a??[31m?\"", TG_NOT_FOUND);
  check_is_text(tg_error());
  check_c_error(tg_model_open("/none\xff\n\x1b"), "/none\xEF\xBF\xBD??", TG_NOT_FOUND);
  check_is_text(tg_error());
  check_c_error(tg_data_open("\xff\xfe\x01"), "no JSON object");
  check_is_text(tg_error());
}

TEST_CASE("c errors: of a long value the beginning is told, and what to do") {
  for (const char* character : {"x", "\u00e9", "\U0001F600"}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += character;
    for (const std::string& shifted : {text, "y" + text, "yy" + text, "yyy" + text}) {
      check_c_error(tg_data_open(quoted_key("data", shifted).c_str()), "no data set or file \"",
                    TG_NOT_FOUND);
      check_is_text(tg_error());
      CHECK(std::string(tg_error()).ends_with("austen"));
      check_c_error(tg_model_open(shifted.c_str()), "; check the path",
                    TG_INVALID);  // a name that no file system takes
      check_is_text(tg_error());
    }
  }
  std::string array = R"({"data": [0)";
  for (int i = 0; i < 100000; ++i) array += ", 1";
  check_c_error(tg_data_open((array + "]}").c_str()), "..., a text expected");
  CHECK(std::string(tg_error()).size() < 300);
}

}  // namespace tritgrad::test::test_c_errors
