// Images on the command line: made smaller by --resize, which models, exports and resumed runs
// know, and augmented.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_cli_images {
namespace {

using Json = nlohmann::json;

Json report_of(const std::string& arguments) {
  const Result result = run(arguments + " --json -");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

}  // namespace

TEST_CASE("cli images: --resize is part of the model, its scores, its exports and its next steps") {
  const TempDir folder;
  const std::string model = folder / "m.safetensors";
  const std::string train =
      "train --data digits --resize 4 --model conv:6,R,F12 --recipe latent8 --epochs 2 ";
  const Json whole = report_of(train);
  CHECK(whole["resize"] == 4);
  const Json half = report_of(train + "--stop-after 20 --save " + model);
  CHECK(half["weights_sha256"] != whole["weights_sha256"]);
  const Json resumed = report_of("train --resume " + model);
  CHECK(resumed["weights_sha256"] == whole["weights_sha256"]);
  CHECK(report_of("eval " + model)["test_accuracy"] == whole["test_accuracy"]);
  const std::string header = folder / "m.h";
  REQUIRE(run("export " + model + " --to " + header).exit_code == 0);
  CHECK(contains(read_text(header), "M_INPUTS = 16"));
  CHECK(report_of("inspect --data digits --resize 4 --model conv:6,R,F12 --recipe latent8 --export "
                  "h")["export"]["weights"] == 6 * 9 + 2 * 6 * 54 + 12 * 96 + 10 * 12);

  // Rows of a table are the smaller images already.
  std::string row;
  for (int i = 0; i < 16; ++i) row += std::to_string(i % 7) + ",";
  const std::string table = folder.write("t.csv", row + "3\n" + row + "4\n");
  CHECK(report_of("eval " + model + " --data " + table)["rows"] == 2);

  check_refused("train --quiet --resume " + model + " --resize 5",
                "--resize: '5' contradicts the checkpoint");
  const std::string plain = folder / "plain.safetensors";
  report_of("train --data digits --epochs 1 --model mlp:4 --save " + plain);
  check_refused("train --quiet --resume " + plain + " --resize 4",
                "which was trained without the option; leave the option out");
  check_refused("inspect --model mlp:64-4-10 --resize 4", "--resize is for images of --data");
  check_refused("inspect --resize 4 " + model, "a checkpoint knows its size");
  CHECK(contains(run(train).out, "made smaller to 4 x 4 pixels"));
  check_refused("eval " + model + " --resize 4", "the model knows the size of its images");
  CHECK(!report_of("train --data digits --epochs 1 --model mlp:4").contains("resize"));
}

TEST_CASE("cli images: images that cannot be made so small, and data without any, are refused") {
  check_refused("train --quiet --data digits --resize 9",
                "--resize: the images of 'digits' have 8 x 8 pixels, and 9 x 9 were asked for");
  check_refused("train --quiet --data iris --resize 2", "'iris' holds no images");
  CHECK(run("train --quiet --data digits --resize 0").exit_code != 0);
}

TEST_CASE("cli images: crop is shift by another name, with the same bits and the same file") {
  const std::string train =
      "train --data digits --model conv:4,M --recipe latent8 --epochs 1 --augment ";
  const Json crop = report_of(train + "crop=2,flip"), shift = report_of(train + "shift=2,flip");
  CHECK(crop["weights_sha256"] == shift["weights_sha256"]);
  CHECK(crop["augment"] == "shift=2,flip");
}

}  // namespace tritgrad::test::test_cli_images
