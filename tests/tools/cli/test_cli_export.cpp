// tritgrad export as a user sees it, and the program of docs/EXPORT.md.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "models/export/export_target.h"
#include "tests/support/c_compiler.h"
#include "tests/support/program.h"

namespace tritgrad::test::test_cli_export {
namespace {

using Json = nlohmann::json;

// Trains and returns the checkpoint.
std::string train(const TempDir& folder, const std::string& arguments) {
  const std::string checkpoint = folder / "m.safetensors";
  REQUIRE(run("train --quiet " + arguments + " --save " + checkpoint).exit_code == 0);
  return checkpoint;
}

// Refused, and nothing is left behind.
void check_no_file(const std::string& checkpoint, const std::string& to, const std::string& part) {
  check_refused("export " + checkpoint + " --to " + to, part);
  CHECK(!std::filesystem::exists(to));
  CHECK(!std::filesystem::exists(to + ".tritgrad-tmp"));
}

std::string rows_of_table(const std::string& header, const std::string& before) {
  std::string text = header + "\n";
  for (int i = 0; i < 60; ++i) {
    text += before + std::to_string(i % 2) + "," + std::to_string(i) + "," + std::to_string(i % 2) +
            "\n";
  }
  return text;
}

// The bytes of all tables of numbers of a header, as their types and lengths say.
std::int64_t bytes_of_tables(const std::string& header) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"float", 4}, {"double", 8}, {"int8_t", 1}, {"uint8_t", 1}, {"uint32_t", 4}};
  const std::string begins = "\nstatic const M_FLASH ";
  std::int64_t sum = 0;
  for (std::size_t at = 0; (at = header.find(begins, at)) != header.npos;) {
    at += begins.size();
    const std::string type = header.substr(at, header.find(' ', at) - at);
    for (const auto& [name, size] : sizes) {
      if (type == name) sum += size * std::stoll(header.substr(header.find('[', at) + 1));
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("cli export: the program of docs/EXPORT.md, compiled and run") {
  const TempDir folder;
  const std::string checkpoint = train(folder, "--data digits --model mlp:32 --recipe latent8");
  const std::string header = folder / "digits.h";
  const Result made = run("export " + checkpoint + " --to " + header);
  CAPTURE(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK(made.out.find("97.77 % before, 97.77 % after (359 rows of digits)") != std::string::npos);
  CHECK(made.out.find("differing rows 0 bit by bit, by the description that the file is") !=
        std::string::npos);

  const std::filesystem::path source = TRITGRAD_SOURCE_DIR;
  const std::string page = read_text(source / "docs/EXPORT.md");
  const std::string begins = "```c\n";
  const std::size_t first = page.find(begins) + begins.size();
  const std::string program =
      folder.write("program.c", page.substr(first, page.find("```", first) - first));
  for (const std::string& command : compile_commands(program, folder / "program")) {
    CAPTURE(command);
    REQUIRE(std::system(command.c_str()) == 0);
    const std::string out = folder / "out";
    const std::string digits = (source / "engine/data/digits.csv").string();
    REQUIRE(std::system(("tail -n +2 '" + digits + "' | '" + (folder / "program").string() +
                         "' >'" + out + "'")
                            .c_str()) == 0);
    const std::string said = read_text(out);
    CHECK(said.find(" of 1797 rows right\n") != std::string::npos);
    CHECK(std::stoi(said) > 1750);
  }
}

TEST_CASE("cli export: the report as JSON, of a run that is not finished and has dropout") {
  const TempDir folder;
  const std::string checkpoint = train(
      folder, "--data wdbc --model mlp:16:dropout=0.1 --recipe votes --epochs 5 --stop-after 3");
  const std::string to = folder / "2-cells.h";
  const Result result = run("export " + checkpoint + " --json - --to " + to);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json["finished"] == false);
  CHECK(json["bit_equal"] == true);
  CHECK(json["differing_rows"] == 0);
  CHECK(json["accuracy_before"] == json["accuracy_after"]);
  CHECK(json["weight_bytes"] == 16 * 6 + 2 * 4);
  const std::string header = read_text(to);
  CHECK(header.find("int model_2_cells_predict(") != std::string::npos);
  CHECK(header.find("(not finished)") != std::string::npos);
  const Result said = run("export " + checkpoint + " --to " + to);  // in the place of the old one
  CHECK(said.out.find("the run is not finished: step 3") != std::string::npos);
  CHECK(said.out.find("dropout is of training alone and left out") != std::string::npos);
}

TEST_CASE("cli export: what cannot be written is refused, and leaves nothing behind") {
  const TempDir folder;
  const std::string checkpoint = train(folder, "--data iris --model mlp:4 --epochs 1");
  check_no_file(checkpoint, folder / "m.hh", "did you mean '.h'?");
  check_no_file(checkpoint, folder / "m", "no ending to name the kind of export");
  check_no_file(checkpoint, folder / "none/m.h", "there is no folder");
  check_no_file(checkpoint, folder / "--.h", "no letter or digit");
  check_no_file(checkpoint + " --trits 3bit", folder / "m.h", "did you mean '2bit'?");
  check_no_file(checkpoint + " --data wdbc", folder / "m.h", "4 inputs but 'wdbc' has 30 features");
  check_refused("export " + checkpoint + " --to " + folder.write("notes.h", "/* my notes */\n"),
                "notes.h' is there and was not written by an export; delete it, or name another");
  CHECK(read_text(folder / "notes.h") == "/* my notes */\n");
  std::filesystem::create_directory(folder / "folder.h");
  check_refused("export " + checkpoint + " --to " + (folder / "folder.h").string(),
                "folder.h' is there and is no file that could be replaced");
  CHECK(std::filesystem::is_empty(folder / "folder.h"));
  check_no_file(folder.write("notes.safetensors", "my notes"), folder / "m.h", "notes.safetensors");
  check_no_file(folder / "none.safetensors", folder / "m.h", "none.safetensors");
}

TEST_CASE("cli export: one that is killed during its self-check leaves nothing behind") {
  const TempDir folder;
  // 359 rows of 4 million weights take the description longer than half a second.
  const std::string checkpoint =
      train(folder, "--data digits --model mlp:2048,2048 --recipe trits --stop-after 1");
  const std::string to = folder / "m.h", json = folder / "m.json";
  run("export " + checkpoint + " --threads 1 --to " + to + " --json " + json,
      "timeout --signal=KILL 0.5");
  CHECK(!std::filesystem::exists(to + ".tritgrad-tmp"));
  CHECK(!std::filesystem::exists(json + ".tritgrad-tmp"));
  check_refused("export " + checkpoint + " --to " + to + " --json " + to, "m.h");
}

TEST_CASE("cli export: inspect forecasts the bytes of an export before there is a model") {
  const TempDir folder;
  const std::string words = folder.write("w.csv", rows_of_table("a,b,y", "red") + "red1,,1\n");
  const std::string times = folder.write("t.csv", rows_of_table("a,b,y", "17000000000"));
  struct Case {
    std::string data, model, recipe, more;
  };
  const Case cases[] = {
      {"iris", "mlp:8", "latent8", ""},
      {"digits", "mlp:33,7:norm=layer", "votes", "--set 'weight.group=32'"},
      {"wdbc", "mlp:5:norm=none", "fp32", ""},
      {"digits", "conv:4,M", "master", ""},
      {"digits --resize 6", "conv:4,R,6/2,F9:dropout=0.1", "latent8", ""},
      {words + " --missing mean", "mlp:4:norm=rms", "shared4", ""},
      {times, "mlp:", "latent8", ""},
  };
  for (const Case& each : cases) {
    const std::string of = " --data " + each.data + " --model " + each.model + " --recipe " +
                           each.recipe + " " + each.more;
    CAPTURE(of);
    const std::string checkpoint = train(folder, of + " --epochs 1");
    for (const char* trits : {"base3", "2bit", "int8"}) {
      const std::string packed = std::string(" --json - --trits ") + trits;
      const Result forecast = run("inspect --export h" + of + packed);
      CAPTURE(forecast.err);
      REQUIRE(forecast.exit_code == 0);
      const Json before = Json::parse(forecast.out)["export"];
      const Result exported =
          run("export " + checkpoint + " --to " + (folder / "m.h").string() + packed);
      REQUIRE(exported.exit_code == 0);
      const Json after = Json::parse(exported.out);
      for (const char* key :
           {"table_bytes", "weight_bytes", "scale_bytes", "workspace_bytes", "weights"}) {
        CAPTURE(key);
        CHECK(before[key] == after[key]);
      }
      CHECK(before["trits"] == trits);
      CHECK(after["table_bytes"] == bytes_of_tables(read_text(folder / "m.h")));
    }
  }
}

TEST_CASE("cli export: inspect forecasts every target, and refuses what means nothing") {
  const TempDir folder;
  const std::string digits = " --data digits --model mlp:9 --recipe latent8 ";
  const std::string of_digits = train(folder, digits + "--epochs 1");
  for (const ExportTarget& target : export_targets()) {
    if (!target.takes(false)) continue;
    CAPTURE(target.ending);
    const std::string ending(target.ending);
    const Result forecast = run("inspect" + digits + "--json - --export " + ending);
    const Result exported =
        run("export " + of_digits + " --json - --to " + (folder / ("digits" + ending)).string());
    REQUIRE(forecast.exit_code == 0);
    REQUIRE(exported.exit_code == 0);
    const Json before = Json::parse(forecast.out)["export"], after = Json::parse(exported.out);
    CHECK(before["table_bytes"] == after["table_bytes"]);
    CHECK(before["weight_bytes"] == after["weight_bytes"]);
  }
  const std::string model = "inspect --model mlp:4 ";
  check_refused(model + "--data iris --export onnx --trits 2bit", "--trits: it is for .h");
  CHECK(run(model + "--data iris --export h").out.find("export as .h (C99, --trits base3):") !=
        std::string::npos);
  check_refused(model + "--data iris --export gguf", "--export: .gguf is for language models");
  check_refused("export " + of_digits + " --to " + (folder / "m.gguf").string(),
                "--to: .gguf is for language models");
  check_refused(model + "--data iris --export hh",
                "'hh' names no kind of export; did you mean '.h'?");
  check_refused(model + "--data iris --trits 2bit", "name an ending, or leave the option out");
  check_refused(model + "--export h", "name them by --data");
  check_refused(model + "--data iris --export h --dp votes", "two questions");
  check_refused(model + "--data iris --dp all", "leave out --data");
  check_refused("inspect " + of_digits + " --export h", "tritgrad export");
  check_refused("inspect " + of_digits + " --data iris", "knows its data; leave out --data");
}

TEST_CASE("cli export: ONNX, and options that are another target's") {
  const TempDir folder;
  const std::string checkpoint =
      train(folder, "--data digits --model mlp:32 --recipe latent8 --epochs 1");
  const std::string to = folder / "m.onnx";
  const Result result = run("export " + checkpoint + " --json - --to " + to);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json["weight_bytes"] == (32 * 64 + 10 * 32) / 4);
  CHECK(json["onnx_ops"] == "microsoft");
  CHECK(json["raw_inputs"] == false);
  CHECK(!json.contains("trits"));
  const std::string bytes = read_text(to);
  CHECK(bytes.size() == json["file_bytes"]);
  // In the place of the old one, by another process: the same bytes.
  REQUIRE(run("export " + checkpoint + " --to " + to).exit_code == 0);
  CHECK(read_text(to) == bytes);
  REQUIRE(run("export " + checkpoint + " --onnx-ops standard --raw-inputs --to " + to).exit_code ==
          0);
  CHECK(read_text(to).find("MatMulNBits") == std::string::npos);

  check_no_file(checkpoint + " --trits 2bit", folder / "n.onnx",
                "--trits: it is for .h, and .onnx does not read it; leave it out");
  check_no_file(checkpoint + " --raw-inputs", folder / "n.h",
                "--raw-inputs: it is for .onnx, and .h does not read it; leave it out");
  check_no_file(checkpoint + " --onnx-ops standard", folder / "n.h", "--onnx-ops: it is for .onnx");
  check_no_file(checkpoint + " --onnx-ops standart", folder / "n.onnx",
                "unknown set of operators 'standart'; did you mean 'standard'?");
}

TEST_CASE("cli export: the report promises bits of a file only where its readers compute them") {
  const TempDir folder;
  const std::string data = "--data iris --epochs 1 --model ";
  const std::string checkpoint = train(folder, data + "mlp:4 --recipe latent8");
  const auto report = [&](const std::string& to, const std::string& more = "") {
    const Result result = run("export " + checkpoint + " --to " + (folder / to).string() + more);
    REQUIRE(result.exit_code == 0);
    return result.out;
  };
  const std::string note = "what reads .safetensors computes these logits within rounding\n";
  CHECK(contains(report("pytorch.safetensors"), note));
  CHECK(contains(report("pytorch.safetensors"), "differing rows 0 bit by bit, by the description"));
  CHECK(Json::parse(report("pytorch.safetensors", " --json -"))["bit_equal"] == false);
  CHECK(!contains(report("m.onnx"), "within rounding"));
  CHECK(Json::parse(report("m.onnx", " --json -"))["bit_equal"] == true);
  REQUIRE(train(folder, data + "mlp:4:activation=tanh --recipe latent8") == checkpoint);
  CHECK(contains(report("m.onnx"), "what reads .onnx computes these logits within rounding\n"));
  CHECK(Json::parse(report("m.onnx", " --json -"))["bit_equal"] == false);
  CHECK(Json::parse(report("m.npz", " --json -"))["bit_equal"] == true);
  REQUIRE(train(folder, data + "mlp:4 --recipe fp32") == checkpoint);
  CHECK(contains(report("m.h"), " in class, by the description that the file is written from"));
  CHECK(!contains(report("m.h"), "within rounding"));
  CHECK(Json::parse(report("m.h", " --json -"))["bit_equal"] == false);
}

TEST_CASE("cli export: an export is no checkpoint, and neither replaces the other") {
  const TempDir folder;
  const std::string checkpoint = train(folder, "--data iris --model mlp:4 --epochs 1");
  const std::string to = folder / "pytorch.safetensors";
  REQUIRE(run("export " + checkpoint + " --to " + to).exit_code == 0);
  REQUIRE(run("export " + checkpoint + " --to " + to).exit_code == 0);  // in its own place
  const std::string part = "pytorch.safetensors': this is an export, which other programs read";
  check_refused("eval " + to, part);
  check_refused("export " + to + " --to " + (folder / "m.h").string(), part);
  check_refused("train --quiet --resume " + to, part);
  check_refused("train --quiet --data iris --epochs 1 --save " + to, "is no checkpoint");
  const std::string copy = folder.write("copy.safetensors", read_text(checkpoint));
  check_refused("export " + checkpoint + " --to " + copy, "was not written by an export");
  CHECK(read_text(copy) == read_text(checkpoint));
}

TEST_CASE("cli export: the bytes of arrays do not depend on where and when they are written") {
  const TempDir folder;
  const std::string checkpoint = train(folder, "--data iris --model mlp:4 --epochs 1");
  const std::string west = folder / "west.npz", east = folder / "east.npz";
  REQUIRE(run("export " + checkpoint + " --to " + west, "TZ=America/Anchorage").exit_code == 0);
  REQUIRE(run("export " + checkpoint + " --to " + east, "TZ=Pacific/Auckland").exit_code == 0);
  CHECK(read_text(west) == read_text(east));
}

TEST_CASE("cli export: a convolutional network") {
  const TempDir folder;
  const std::string checkpoint =
      train(folder, "--data digits --model conv:4,M --recipe latent8 --epochs 1");
  const Result result =
      run("export " + checkpoint + " --trits 2bit --json - --to " + (folder / "m.h").string());
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  CHECK(json["differing_rows"] == 0);
  CHECK(json["weight_bytes"] == 4 * 3 + 10 * 1);
}

TEST_CASE("cli export: a table of numbers with offsets") {
  const TempDir folder;
  const std::string numbers = folder.write("n.csv", rows_of_table("a,b,y", "17000000000"));
  const std::string checkpoint = train(folder, "--data " + numbers + " --model mlp:4 --epochs 2");
  const std::string to = folder / "m.h";
  REQUIRE(run("export " + checkpoint + " --to " + to).exit_code == 0);
  CHECK(read_text(to).find("m_predict(const double features[M_INPUTS]") != std::string::npos);
}

TEST_CASE("cli export: words and missing cells have names in C, and a function encodes them") {
  const TempDir folder;
  const std::string words = folder.write("w.csv", rows_of_table("a,b,y", "red") + "red1,,1\n");
  const std::string checkpoint = train(
      folder, "--data " + words + " --model mlp:4 --epochs 40 --missing mean --recipe latent8");
  const std::string to = folder / "m.h";
  const Result made = run("export " + checkpoint + " --to " + to);
  CAPTURE(made.err);
  REQUIRE(made.exit_code == 0);
  // The cells are those of rows_of_table(): the word says the class.
  const std::string program = folder.write("program.c",
                                           "#include <stdio.h>\n#include \"m.h\"\n"
                                           R"(
static m_workspace workspace;
int main(void) {
  float cells[M_CELLS], features[M_INPUTS];
  int row, right = 0;
  for (row = 0; row < 60; row++) {
    cells[M_CELL_a] = row % 2 ? M_IN_a_red1 : M_IN_a_red0;
    cells[M_CELL_b] = row < 50 ? (float)row : NAN;
    m_encode(cells, features);
    if (features[M_IN_a_red0] + features[M_IN_a_red1] != 1.0f) return 1;
    if (features[M_IN_b_is_missing] != (row < 50 ? 0.0f : 1.0f)) return 2;
    right += m_class_name(m_predict(features, &workspace))[0] == "01"[row % 2];
  }
  cells[M_CELL_a] = M_UNKNOWN_WORD;
  m_encode(cells, features);
  if (features[M_IN_a_red0] != 0.0f || features[M_IN_a_red1] != 0.0f) return 3;
  return right == 60 ? 0 : 4;
}
)");
  REQUIRE(!c_compilers().empty());
  for (const std::string& command : compile_commands(program, folder / "program")) {
    CAPTURE(command);
    REQUIRE(std::system(command.c_str()) == 0);
    CHECK(std::system((folder / "program").c_str()) == 0);
  }
}

}  // namespace tritgrad::test::test_cli_export
