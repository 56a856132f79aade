// What a program in C is told of a failure: of what kind it was, and a sentence that is text,
// however the arguments were.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/text.h"
#include "tests/support/c_handles.h"
#include "tests/support/full_disk.h"
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

// Nothing ends the program, though a program in C has not heard of the signal by which the system
// would.
TEST_CASE("c errors: a limit on the size of files is told as a full disk is") {
  const TempDir folder;
  const std::string saved = folder / "m", header = folder / "m.h";
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  const RunHandle run{tg_run_new(data.handle, R"({"model": "mlp:3", "epochs": 1})")};
  REQUIRE(tg_run_all(run.handle) == TG_OK);
  const ModelHandle model{tg_run_model(run.handle)};
  const FullDisk full(512);
  CHECK(tg_run_save(run.handle, saved.c_str()) == TG_INVALID);
  CHECK(contains(tg_error(), "File too large"));
  CHECK(tg_model_export(model.handle, header.c_str(), nullptr) == nullptr);
  CHECK(contains(tg_error(), "File too large"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

// As tests/tools/cli/test_output_file.cpp tells of the command line.
TEST_CASE("c errors: an output that cannot be written is refused, and what is there stays") {
  const TempDir folder;
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  const RunHandle run{tg_run_new(data.handle, R"({"model": "mlp:3", "epochs": 1})")};
  REQUIRE(tg_run_all(run.handle) == TG_OK);
  const ModelHandle model{tg_run_model(run.handle)};
  struct Place {
    std::string name;
    tg_status status;
    const char *saved, *exported;  // parts of the sentences
  };
  const Place places[] = {
      {std::string(251, 'a') + ".h", TG_INVALID, "File name too long", "File name too long"},
      {std::string(254, 'a') + ".h", TG_INVALID, "File name too long", "File name too long"},
      {"missing/x.h", TG_NOT_FOUND, "there is no folder '", "there is no folder '"},
      {"there.h", TG_INVALID, "is not a regular file", "is no file that could be replaced"}};
  std::filesystem::create_directory(folder / "there.h");
  for (const Place& place : places) {
    const std::string path = folder / place.name;
    CAPTURE(path);
    CHECK(tg_run_save(run.handle, path.c_str()) == place.status);
    CHECK(contains(tg_error(), place.saved));
    check_c_error(tg_model_export(model.handle, path.c_str(), nullptr), place.exported,
                  place.status);
  }
  std::filesystem::remove(folder / "there.h");  // which is empty
  CHECK(std::filesystem::is_empty(folder.path()));
  // Results are worth more than their being kept.
  const std::string compare =
      R"({"model": "mlp:3", "epochs": 1, "recipes": ["votes"], "seeds": 1, )"
      R"("cache": ")" +
      folder.write("file", "") + R"("})";
  CHECK(tg_compare(data.handle, compare.c_str(), nullptr, nullptr) != nullptr);
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
