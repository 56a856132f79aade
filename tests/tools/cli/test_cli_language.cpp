// Language models as a user sees them: train, eval, generate and export of a text.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace tritgrad::test::test_cli_language {
namespace {

constexpr const char* kModel = " --model llama:1,32:heads=2:ff=64:context=32 ";

// A folder with a text and a model of it that was trained for a moment.
struct SmallModel {
  TempDir folder;
  std::string text, checkpoint = folder / "lm.safetensors";

  SmallModel() {
    std::string sentences;
    for (int i = 0; i < 200; ++i) sentences += "All people are born free and equal. ";
    text = folder.write("text.txt", sentences);
    REQUIRE(train("--epochs 1").exit_code == 0);
  }
  Result train(const std::string& more) const {
    return run("train --data text:" + text + kModel + "--recipe latent8-lm --epoch-tokens 2048 " +
               "--save " + checkpoint + " " + more);
  }
};

const SmallModel& small() {
  static const SmallModel model;
  return model;
}

std::string generate(const std::string& more) {
  return "generate " + small().checkpoint + " " + more;
}

}  // namespace

TEST_CASE("cli language: training and eval say bits a byte, and the same") {
  const Result trained = small().train("--epochs 1 --json -");
  REQUIRE(trained.exit_code == 0);
  const auto result = nlohmann::json::parse(trained.out);
  CHECK(result.at("metric") == "bits_per_byte");
  CHECK(result.at("steps") == 1);
  const Result evaluated = run("eval " + small().checkpoint + " --json -");
  const auto score = nlohmann::json::parse(evaluated.out);
  CHECK(score.at("test_bits_per_byte") == result.at("test_bits_per_byte"));
  CHECK(score.at("test_nats_per_token") == result.at("test_nats_per_token"));
  const std::string said = run("eval " + small().checkpoint).out;
  CHECK(contains(said, " nats a token, perplexity "));
  CHECK(contains(said, " test windows)"));
}

TEST_CASE("cli language: recipes of language models train tables too") {
  CHECK(run("train --data iris --model mlp:8 --epochs 1 --recipe latent8-lm --quiet").exit_code ==
        0);
}

TEST_CASE("cli language: compare counts the tokens of a second and the bytes of ternary weights") {
  const Result result = run("compare --data text:" + small().text + kModel +
                            "--recipes fp32-lm,latent8-lm --seeds 1 --epochs 1 --epoch-tokens 2048 "
                            "--title 'A title' --cache " +
                            (small().folder / "cache").string() + " --json -");
  REQUIRE(result.exit_code == 0);
  const auto comparison = nlohmann::json::parse(result.out).at("comparisons").at(0);
  CHECK(comparison.at("title") == "A title");
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const auto& recipe = comparison.at("recipes").at(i);
    const auto& time = comparison.at("runs").at(i).at("time");
    CHECK(recipe.at("tokens_per_s").get<double>() ==
          doctest::Approx(2048 /
                          (time.at("batches").get<double>() + time.at("steps").get<double>())));
  }
  // Weight, two moments, gradient; and the count of steps of each matrix of 1024 elements or more.
  const double dense = comparison.at("recipes").at(0).at("bytes_per_weight");
  CHECK(dense >= 16.0);
  CHECK(dense <= 16.0 + 8.0 / 1024);
  const auto& ternary = comparison.at("recipes").at(1);
  const double bytes = ternary.at("bytes_per_weight");
  // A byte, and of each row and column the means and the scale with its moments: of the smallest
  // rows, of 32, 4 + 4 + 4 + 8 bytes for 32 weights at most.
  CHECK(bytes > 1.0);
  CHECK(bytes <= 1.0 + 20.0 / 32.0);
  CHECK(bytes < ternary.at("bytes_per_parameter").get<double>());
}

TEST_CASE(
    "cli language: --recompute trains the same weights, and a resumed run may begin with it") {
  const std::string path = small().folder / "again.safetensors";
  const auto hash_of = [&](const std::string& more) {
    const Result result = run("train --quiet --data text:" + small().text + kModel +
                              "--recipe latent8-lm --epoch-tokens 2048 --json - " + more);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out).at("weights_sha256").get<std::string>();
  };
  const std::string expected = hash_of("--epochs 2");
  CHECK(hash_of("--epochs 2 --recompute") == expected);
  hash_of("--epochs 2 --stop-after 1 --save " + path);
  const std::string resumed = "train --quiet --json - --resume " + path + " ";
  const Result result = run(resumed + "--recompute");
  REQUIRE(result.exit_code == 0);
  CHECK(nlohmann::json::parse(result.out).at("weights_sha256") == expected);
  CHECK(contains(run("train --help").out, "--recompute"));
  check_refused("train --data iris --model mlp:4 --recompute",
                "--recompute: model 'mlp:4' keeps what its layers make");
}

TEST_CASE("cli language: generate writes the prompt and so many tokens, the same for a seed") {
  const Result first = run(generate("--prompt 'All people ' --length 20 --seed 5"));
  CHECK(first.exit_code == 0);
  CHECK(first.out.starts_with("All people "));
  CHECK(contains(first.err, "20 tokens, "));
  CHECK(contains(first.err, "memory delivers"));
  const Result second =
      run(generate("--prompt 'All people ' --length 20 --seed 5 --threads 1 --quiet"));
  CHECK(second.out == first.out);
  CHECK(second.err.empty());
  CHECK(contains(run(generate("--length 20")).err, "the prompt is empty"));  // standard input is
}

TEST_CASE("cli language: what generate cannot do is refused") {
  check_refused(generate("--prompt ''"), "--prompt: is empty; give a value");
  check_refused(generate("--prompt '" + std::string(33, 'x') + "'"),
                "the prompt has 33 tokens, but the model looks at 32 together; give at most 32");
  check_refused(generate("--prompt x --temperature -1"),
                "temperature -1 found, 0 or more expected");
  check_refused(generate("--prompt x --top-p 2"), "top-p 2 found");
  check_refused(generate("--prompt x --top-k -1"), "--top-k: '-1' found, a whole number from 0");
  check_refused(generate("--prompt x --seed -1"), "--seed: '-1' found, a whole number from 0");
  const std::string rows = small().folder / "rows.safetensors";
  REQUIRE(run("train --data iris --model mlp:4 --epochs 1 --quiet --save " + rows).exit_code == 0);
  check_refused("generate " + rows + " --prompt x", "its model reads rows of features");
  check_refused("generate /no/such --prompt x", "/no/such");
  check_refused("eval " + small().checkpoint + " --data iris", "its model reads text");
  check_refused("eval " + rows + " --data text:" + small().text, "a text is for language models");
}

TEST_CASE("cli language: what cannot be trained or exported is refused, and says what would do") {
  const std::string data = "train --data text:" + small().text;
  check_refused(data, "a text is for language models; give one, as in --model llama:4,256");
  check_refused(data + " --model llama:1,30:heads=4", "heads that do are 1, 3, 5, 15");
  check_refused(data + " --model llama:1,32:context=4000", "two windows of the model's context");
  check_refused(data + " --model llama:1,32:context=16 --folds 2", "leave --folds out");
  check_refused(std::string("train --data iris") + kModel, "give a text, as in --data text:FILE");
  check_refused(std::string("train --data text:/no/such") + kModel, "no such file or folder");
  check_refused(data + kModel + "--tokens words", "words");
  const std::string& text = small().text;
  check_refused("train --data " + text + kModel, "give --data text:" + text + ", or use");
  check_refused("train --data " + text,
                "only one column found, at least one feature and a label needed; separate cells by "
                "comma, semicolon or tab; if it is a text for a language model, give --data text:" +
                    text);
  const std::string folder = std::filesystem::path(text).parent_path();
  check_refused("train --data " + folder + kModel, "give --data text:" + folder);
  check_refused("eval " + small().checkpoint + " --data " + text, "give --data text:" + text);
  const std::string to = small().folder / "lm.gguf";
  check_refused("export " + small().checkpoint + " --to " + to,
                "rows into blocks of 256, but the width is 32; train with width 256");
  check_refused("export " + small().checkpoint + " --to " + (small().folder / "lm.h").string(),
                "name an ending of .gguf");
  CHECK(!std::filesystem::exists(to));
  CHECK(run("export " + small().checkpoint + " --type f32 --to " + to).exit_code == 0);
  CHECK(read_text(to).starts_with("GGUF"));
}

}  // namespace tritgrad::test::test_cli_language
