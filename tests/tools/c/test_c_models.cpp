// What the C interface tells of a model, and the files that it writes, are the command line's.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/c_handles.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_models {
namespace {

using Json = nlohmann::json;

constexpr const char* kSpec = R"({"model": "mlp:16", "recipe": "latent8", "epochs": 2})";

std::string bytes_of(tg_model* model) {
  std::size_t size = 0;
  const void* bytes = tg_model_bytes(model, &size);
  REQUIRE(bytes != nullptr);
  return {static_cast<const char*>(bytes), size};
}

// A run on digits, whose grey images every target can express.
struct DigitsRun {
  DataHandle data{tg_data_open(R"({"data": "digits"})")};
  RunHandle run{tg_run_new(data.handle, kSpec)};
};

}  // namespace

TEST_CASE("c models: a run's model has the bytes of the checkpoint that it saves, at any step") {
  const DigitsRun digits;
  const TempDir folder;
  const std::string path = folder / "m.safetensors";
  const auto check_model = [&] {
    const ModelHandle model{tg_run_model(digits.run.handle)};
    REQUIRE(model.handle != nullptr);
    REQUIRE(tg_run_save(digits.run.handle, path.c_str()) == TG_OK);
    const std::string bytes = bytes_of(model.handle);
    CHECK(bytes == read_text(path));
    const ModelHandle read{tg_model_open(path.c_str())};
    CHECK(bytes_of(read.handle) == bytes);
    const ModelHandle copied{tg_model_from_bytes(bytes.data(), bytes.size())};
    CHECK(bytes_of(copied.handle) == bytes);
    const std::string about = tg_model_describe(model.handle);
    CHECK(about == tg_model_describe(read.handle));
    CHECK(Json::parse(about).at("checkpoint_bytes") == bytes.size());
  };
  check_model();
  REQUIRE(tg_run_step(digits.run.handle) == TG_OK);
  check_model();
  REQUIRE(tg_run_all(digits.run.handle) == TG_OK);
  check_model();
  const std::string hash = Json::parse(tg_run_finish(digits.run.handle)).at("weights_sha256");
  const ModelHandle model{tg_run_model(digits.run.handle)};  // of a finished run
  CHECK(Json::parse(tg_model_describe(model.handle)).at("weights_sha256") == hash);
}

TEST_CASE("c models: a model outlives its run and data") {
  std::string alone, later;
  tg_model* model = nullptr;
  {
    const DigitsRun digits;
    model = tg_run_model(digits.run.handle);
    alone = tg_model_inspect(model, nullptr);
  }
  const ModelHandle kept{model};
  CHECK(tg_model_inspect(kept.handle, nullptr) == alone);
}

TEST_CASE("c models: inspection is the command line's, and describing has its bytes") {
  const DigitsRun digits;
  const TempDir folder;
  const std::string path = folder / "m.safetensors";
  REQUIRE(tg_run_save(digits.run.handle, path.c_str()) == TG_OK);
  const ModelHandle model{tg_run_model(digits.run.handle)};
  const Result shown = tritgrad::test::run("inspect " + path + " --json -");
  REQUIRE(shown.exit_code == 0);
  CHECK(shown.out == std::string(tg_model_inspect(model.handle, nullptr)) + "\n");
  const Json inspected = Json::parse(shown.out);
  const Json about = Json::parse(tg_model_describe(model.handle));
  CHECK(about.at("bytes_per_parameter") == inspected.at("bytes_per_parameter"));
  CHECK(about.at("parameters") == inspected.at("parameters"));
  for (const char* ending : {"h", "onnx", "js", "html", "npz", "safetensors"}) {
    const std::string options = std::string(R"({"export": ")") + ending + "\"}";
    const Json json = Json::parse(tg_model_inspect(model.handle, options.c_str()));
    // 64 x 16 + 16 x 10 weights
    CHECK(json.at("export").at("weights") == 1184);
  }
  const auto packed = [&](const char* trits) {
    const std::string options = std::string(R"({"export": "h", "trits": ")") + trits + "\"}";
    const Json json = Json::parse(tg_model_inspect(model.handle, options.c_str()));
    return json.at("export").at("weight_bytes").get<int>();
  };
  CHECK(packed("2bit") == 1184 / 4);
  CHECK(packed("int8") == 1184);
  CHECK(packed("base3") < packed("2bit"));
  check_c_error(tg_model_inspect(model.handle, R"({"export": "exe"})"), "names no kind of export");
  check_c_error(tg_model_inspect(model.handle, R"({"trits": "2bit"})"), "with an ending");
  check_c_error(tg_model_inspect(model.handle, R"({"export": "js", "trits": "2bit"})"),
                "does not read it");
}

TEST_CASE("c models: every export has the bytes and the report of the command line") {
  const DigitsRun digits;
  REQUIRE(tg_run_all(digits.run.handle) == TG_OK);
  const TempDir folder;
  const std::string saved = folder / "m.safetensors";
  REQUIRE(tg_run_save(digits.run.handle, saved.c_str()) == TG_OK);
  const ModelHandle model{tg_model_open(saved.c_str())};
  struct Case {
    const char *ending, *arguments, *options;
  };
  for (const Case& each :
       {Case{"h", "", nullptr}, Case{"h", "--trits 2bit", R"({"trits": "2bit"})"},
        Case{"onnx", "", "{}"},
        Case{"onnx", "--onnx-ops standard --raw-inputs",
             R"({"onnx_ops": "standard", "raw_inputs": true})"},
        Case{"js", "", nullptr}, Case{"html", "--data digits", R"({"data": "digits"})"},
        Case{"npz", "", nullptr}, Case{"safetensors", "", nullptr}}) {
    CAPTURE(each.ending);
    const std::string path = folder / (std::string("x.") + each.ending);
    const Result written =
        tritgrad::test::run("export " + saved + " --to " + path + " --json - " + each.arguments);
    REQUIRE(written.exit_code == 0);
    const std::string expected = read_text(path);
    std::filesystem::remove(path);
    const char* report = tg_model_export(model.handle, path.c_str(), each.options);
    CAPTURE(std::string(tg_error()));
    REQUIRE(report != nullptr);
    CHECK(std::string(report) + "\n" == written.out);
    CHECK((read_text(path) == expected));
    REQUIRE(tg_model_export(model.handle, path.c_str(), each.options) != nullptr);  // replaces it
  }
}

TEST_CASE("c models: exports that the command line refuses are refused with its sentences") {
  const DigitsRun digits;
  const TempDir folder;
  const ModelHandle model{tg_run_model(digits.run.handle)};
  const auto refused = [&](const std::string& name, const char* options, const char* part,
                           tg_status status = TG_INVALID) {
    const std::string path = folder / name;
    check_c_error(tg_model_export(model.handle, path.c_str(), options), part, status);
  };
  refused("x.exe", nullptr, "names no kind of export");
  refused("x", nullptr, "has no ending");
  refused("x.js", R"({"trits": "2bit"})", "--trits: it is for .h");
  refused("x.h", R"({"trits": "3bit"})", "did you mean '2bit'?");
  refused("x.h", R"({"trit": "2bit"})", "did you mean 'trits'?");
  refused("x.h", R"({"data": "wine"})", "has 13 features");
  refused("none/x.h", nullptr, "there is no folder", TG_NOT_FOUND);
  folder.write("own.h", "#define MINE 1\n");
  refused("own.h", nullptr, "was not written by an export");
  CHECK(read_text(folder / "own.h") == "#define MINE 1\n");
  check_c_error(tg_model_export(nullptr, "x.h", nullptr), "model: NULL found");
  check_c_error(tg_model_export(model.handle, nullptr, nullptr), "path: NULL found");
  check_c_error(tg_model_bytes(model.handle, nullptr), "size: NULL found");
  check_c_error(tg_run_model(nullptr), "run: NULL found");
  check_c_error(tg_model_inspect(nullptr, nullptr), "model: NULL found");
}

TEST_CASE("c models: recipes are listed with their bytes") {
  const Json recipes = Json::parse(tg_recipes());
  CHECK(recipes.size() > 20);
  for (const Json& recipe : recipes) {
    if (recipe.at("name") == "fp32") {
      CHECK(recipe.at("format") == "fp32");
      CHECK(recipe.at("rule") == "adamw");
      // Weights, two moments and a kept gradient of 4 bytes; vectors are a little more.
      CHECK(recipe.at("bytes_per_parameter").at("total").get<double>() ==
            doctest::Approx(16.0).epsilon(0.01));
    }
  }
}

}  // namespace tritgrad::test::test_c_models
