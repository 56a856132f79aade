// A language model writes on through the C interface as it does on the command line.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/c_handles.h"
#include "tests/support/program.h"

namespace tritgrad::test::test_c_generate {
namespace {

constexpr const char* kModel = "llama:1,32:heads=2:ff=64:context=32";

// A model of a text, trained for a moment.
struct Writer {
  TempDir folder;
  std::string checkpoint = folder / "lm.safetensors";

  Writer() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "All people are born free and equal. ";
    const std::string path = folder.write("text.txt", text);
    REQUIRE(run("train --data text:" + path + " --model " + kModel +
                " --recipe latent8-lm --epoch-tokens 2048 --epochs 1 --quiet --save " + checkpoint)
                .exit_code == 0);
  }
};

const Writer& writer() {
  static const Writer one;
  return one;
}

int append(const char* bytes, std::size_t size, void* context) {
  static_cast<std::string*>(context)->append(bytes, size);
  return 0;
}

}  // namespace

TEST_CASE("c generate: the bytes are those of the command line") {
  const ModelHandle model{tg_model_open(writer().checkpoint.c_str())};
  std::string text = "All ";
  const char* options =
      R"({"length": 40, "temperature": 0.7, "top_k": 20, "top_p": 0.9, "seed": 3})";
  REQUIRE(tg_model_generate(model.handle, "All ", 4, options, append, &text) == TG_OK);
  const Result printed =
      run("generate " + writer().checkpoint +
          " --prompt 'All ' --length 40 --temperature 0.7 --top-k 20 --top-p 0.9 --seed 3 --quiet");
  CHECK(printed.out == text + "\n");
}

TEST_CASE("c generate: a writer ends the text") {
  const ModelHandle model{tg_model_open(writer().checkpoint.c_str())};
  int calls = 0;
  const auto third = [](const char*, std::size_t size, void* context) {
    CHECK(size == 1);  // a token of bytes
    return static_cast<int>(++*static_cast<int*>(context) == 3);
  };
  CHECK(tg_model_generate(model.handle, "All ", 4, nullptr, third, &calls) == TG_OK);
  CHECK(calls == 3);
}

TEST_CASE("c generate: a language model takes no rows") {
  const ModelHandle model{tg_model_open(writer().checkpoint.c_str())};
  const float row[32] = {};
  std::int64_t code = 0;
  CHECK(tg_model_check_rows(model.handle, row, TG_FLOAT32, 1, 1, nullptr, nullptr) == TG_INVALID);
  CHECK(std::string(tg_error()) ==
        "the model reads texts, and rows are none; ask it for text by tg_model_generate()");
  CHECK(tg_model_predict(model.handle, row, TG_FLOAT32, 1, 32, &code, nullptr, nullptr) ==
        TG_INVALID);
}

TEST_CASE("c generate: what cannot be written is refused") {
  const ModelHandle model{tg_model_open(writer().checkpoint.c_str())};
  std::string text;
  const auto refused = [&](const char* prompt, std::size_t size, const char* options,
                           const char* part) {
    CHECK(tg_model_generate(model.handle, prompt, size, options, append, &text) == TG_INVALID);
    check_c_error(nullptr, part);
    CHECK(text.empty());
  };
  refused("", 0, nullptr, "the prompt is empty");
  refused(nullptr, 4, nullptr, "prompt: NULL found");
  refused("All ", 4, R"({"length": 0})", "'length' is 0");
  refused("All ", 4, R"({"temperature": -1})", "temperature");
  refused("All ", 4, R"({"tempreature": 1})", "temperature");
  refused("a prompt that has more than 32 tokens", 38, nullptr, "at most 32");
  CHECK(tg_model_generate(model.handle, "x", 1, nullptr, nullptr, nullptr) == TG_INVALID);
  check_c_error(nullptr, "writer: NULL found");
  const DataHandle iris{tg_data_open(R"({"data": "iris"})")};
  const RunHandle run{tg_run_new(iris.handle, R"({"model": "mlp:3", "epochs": 1})")};
  const ModelHandle classes{tg_run_model(run.handle)};
  CHECK(tg_model_generate(classes.handle, "x", 1, nullptr, append, &text) == TG_INVALID);
  check_c_error(nullptr, "give the checkpoint of a language model");
}

}  // namespace tritgrad::test::test_c_generate
