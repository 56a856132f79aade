// Warnings on the command line: however quiet it is, and from the cache.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_warnings {
namespace {

using Json = nlohmann::json;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

const std::string kSmall = "--data iris --model mlp:8 --epochs 4 ";
const std::string kLost =
    "warning: recipe 'naive': rounding loses all updates of 'layers.0.weight'";
const std::string kNoFlip =
    "warning: recipe 'eco': no trit of 'layers.0.weight' and of 1 more "
    "flipped in 16 steps, so that the ternary weights end as they began; "
    "raise the learning rate or train longer\n";

}  // namespace

TEST_CASE("warnings: --quiet leaves them, and --json holds them") {
  const Result naive = run("train " + kSmall + "--recipe naive --lr 1e-6 --quiet");
  CHECK(naive.exit_code == 0);
  CHECK(naive.out.empty());
  CHECK(naive.err.starts_with(kLost));
  CHECK(count(naive.err, "\n") == 1);  // and not that nothing flipped either
  const Result eco = run("train " + kSmall + "--recipe eco --lr 1e-4 --quiet --json -");
  CHECK(eco.err == kNoFlip);
  const Json json = Json::parse(eco.out);
  REQUIRE(json["warnings"].size() == 1);
  CHECK(contains(kNoFlip, json["warnings"][0].get<std::string>()));
  const Result calm = run("train " + kSmall + "--recipe latent8 --quiet --json -");
  CHECK(calm.err.empty());
  CHECK(Json::parse(calm.out)["warnings"].empty());
}

TEST_CASE("warnings: compare repeats those of cached runs, and marks the recipes") {
  const TempDir folder;
  const std::string command =
      "compare " + kSmall + "--recipes latent8,naive,eco --lr 1e-4 --seeds 2 --cache " +
      (folder / "cache").string() + " --report " + (folder / "r.md").string();
  for (const char* quiet : {"", "", " --quiet"}) {  // the second finds all in the cache
    const Result result = run(command + quiet);
    REQUIRE(result.exit_code == 0);
    CHECK(count(result.err, kLost) == 2);
    CHECK(count(result.err, kNoFlip) == 2);
    const std::string page = read_text(folder / "r.md");
    for (const char* recipe : {"naive", "eco"}) {
      const std::string note = std::string("* ") + recipe + ", warned of in 2 of 2 seeds: ";
      CHECK(contains(page, "\\" + note));
      CHECK(contains(page, std::string("| ") + recipe + " \\* |"));
      if (*quiet == '\0') CHECK(contains(result.out, note));
    }
  }
}

}  // namespace tritgrad::test::test_warnings
