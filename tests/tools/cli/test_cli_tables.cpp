// Files as people bring them: training, scoring other files, resuming, and what is said of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/random.h"
#include "tests/support/program.h"

namespace tritgrad::test::test_cli_tables {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

const std::string kTrain = "train --model mlp:16 --recipe fp32 --lr 0.02 --epochs 40 ";

std::string joined(const Lines& lines, const std::string& end = "\n") {
  std::string text;
  for (const std::string& line : lines) text += line + end;
  return text;
}

// A header line and 90 rows of one number, which the class follows from.
Lines table(const std::string& header, const std::function<std::string(int)>& label) {
  Lines lines = {header};
  for (int i = 0; i < 90; ++i) {
    lines.push_back(std::to_string((i % 3) * 3) + "." + std::to_string(i % 7) + "," + label(i % 3));
  }
  return lines;
}

// The first line and those below that hold the text.
Lines rows_with(const Lines& lines, const std::string& text) {
  Lines kept = {lines[0]};
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (contains(lines[i], text)) kept.push_back(lines[i]);
  }
  return kept;
}

Json json_of(const std::string& arguments) {
  const Result result = run(arguments + " --json -");
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

// Like the census table of UCI called Adult: the same columns, words, ?, one class in four.
std::string census(int rows) {
  const Lines work = {"Private", "Self-emp-not-inc", "Local-gov", "State-gov", "?"};
  const Lines school = {"HS-grad", "Some-college", "Bachelors", "Masters", "11th", "Doctorate"};
  const Lines status = {"Married-civ-spouse", "Never-married", "Divorced", "Widowed"};
  const Lines job = {"Exec-managerial", "Craft-repair", "Sales", "Other-service", "?"};
  const Lines kin = {"Husband", "Not-in-family", "Own-child", "Wife"};
  const Lines land = {"United-States", "Mexico", "?", "Germany", "India"};
  std::string text =
      "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,"
      "sex,capital-gain,capital-loss,hours-per-week,native-country,income\n";
  for (int row = 0; row < rows; ++row) {
    const RandomKey key{7, random_stream("census"), static_cast<std::uint32_t>(row)};
    std::uint64_t draws = 0;
    const auto below = [&](int n) {
      return static_cast<int>(random_below(key, draws++, static_cast<std::uint32_t>(n)));
    };
    const auto any = [&](const Lines& words) {
      return static_cast<std::size_t>(below(static_cast<int>(words.size())));
    };
    const int age = 17 + below(60), hours = 20 + below(45);
    const std::size_t s = any(school), m = any(status), j = any(job), w = any(work);
    const int years[] = {9, 10, 13, 14, 7, 16};
    const int gain = below(20) == 0 ? 7000 + below(9000) : 0;
    const int score = (m == 0 ? 12 : 0) + 2 * (years[s] - 9) + (j == 0 ? 5 : 0) + (age - 40) / 6 +
                      (hours - 40) / 5 + (gain > 0 ? 15 : 0) + below(7) - 3;
    text += std::to_string(age) + ", " + work[w] + ", " + std::to_string(12285 + below(900000)) +
            ", " + school[s] + ", " + std::to_string(years[s]) + ", " + status[m] + ", " + job[j] +
            ", " + kin[any(kin)] + ", " + (below(6) == 0 ? "Black" : "White") + ", " +
            (below(3) == 0 ? "Female" : "Male") + ", " + std::to_string(gain) + ", " +
            (below(25) == 0 ? "1902" : "0") + ", " + std::to_string(hours) + ", " +
            land[any(land)] + ", " + (score > 15 ? ">50K" : "<=50K") + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("cli tables: a class keeps its name in files that hold some classes only") {
  const TempDir folder;
  const Lines texts = table("x,y", [](int i) { return Lines{"10", "1E1", "A7"}[std::size_t(i)]; });
  const std::string model = folder / "m", eval = "eval " + model + " --data ";
  REQUIRE(
      run(kTrain + "--quiet --save " + model + " --data " + folder.write("t.csv", joined(texts)))
          .exit_code == 0);
  for (const char* label : {",10", ",1E1", ",A7"}) {
    const Json found = json_of(eval + folder.write("e.csv", joined(rows_with(texts, label))));
    CHECK(found["test_accuracy"] == 1.0);
    CHECK(found["rows"] == 30);
  }
  const Lines numbers = table("x,y", [](int i) { return std::to_string(i + 1); });
  REQUIRE(
      run(kTrain + "--quiet --save " + model + " --data " + folder.write("n.csv", joined(numbers)))
          .exit_code == 0);
  const Lines decimals = table("x,y", [](int i) { return std::to_string(i + 1) + ".0"; });
  CHECK(json_of(eval + folder.write("d.csv", joined(decimals) + "0.5,1.0\n"))["test_accuracy"] ==
        1.0);
  check_refused(eval + folder.write("x.csv", joined(decimals) + "5,x\n"),
                "x.csv, line 92: label \"x\" is none of the 3 classes of the model");
}

TEST_CASE("cli tables: whole numbers beyond 2^53 as labels, offsets, and line ends of CR") {
  const TempDir folder;
  const auto accuracy = [&](const std::string& text) {
    return json_of(kTrain + "--data " + folder.write("t.csv", text))["test_accuracy"];
  };
  CHECK(accuracy(joined(
            table("x,y", [](int i) { return "900719925474099" + std::to_string(i + 2); }))) == 1.0);
  Lines times = {"t,y"};
  for (int i = 0; i < 90; ++i) {
    times.push_back(i % 2 == 0 ? "1700000000,p" : "1700000010,q");
  }
  CHECK(accuracy(joined(times)) == 1.0);
  CHECK(accuracy(joined(times, "\r")) == 1.0);
}

TEST_CASE("cli tables: empty columns are left out, whatever becomes of missing cells") {
  const TempDir folder;
  const std::string model = folder / "m";
  const Lines whole = table("x,y", [](int i) { return Lines{"p", "q", "r"}[std::size_t(i)]; });
  Lines last = {whole[0] + ",z,"}, inner = {"w," + whole[0]};
  for (std::size_t i = 1; i < whole.size(); ++i) {
    last.push_back(whole[i] + ",,");
    inner.push_back("," + whole[i]);
  }
  const auto weights = [&](const Lines& lines, const std::string& options) {
    const Json json = json_of(kTrain + "--save " + model + " --quiet --data " +
                              folder.write("t.csv", joined(lines)) + options);
    return json["weights_sha256"].get<std::string>();
  };
  const std::string expected = weights(whole, "");
  for (const std::string missing : {"refuse", "mean", "mode", "drop"}) {
    CAPTURE(missing);
    CHECK(weights(last, " --missing " + missing) == expected);
    CHECK(weights(last, " --label y --missing " + missing) == expected);
    CHECK(weights(last, " --label y --drop z --missing " + missing) == expected);
    if (missing != "refuse") CHECK(weights(inner, " --missing " + missing) == expected);
  }
  // Both files are scored, and what was left out is said.
  const std::string trained = kTrain + "--save " + model + " --data ";
  const Result said = run(trained + folder.write("t.csv", joined(last)));
  CHECK(contains(said.err, "note: the last column is empty throughout and is left out\n"));
  CHECK(contains(said.err, "note: column 'z' is empty throughout and is left out\n"));
  CHECK(contains(said.out, "label 'y'; 1 column of numbers, 1 left out"));
  for (const Lines& lines : {whole, last, inner}) {
    const std::string other = folder.write("e.csv", joined(lines));
    CHECK(json_of("eval " + model + " --data " + other)["test_accuracy"] == 1.0);
  }
  const Result dropped = run(trained + folder.write("t.csv", joined(inner)) + " --missing drop");
  CHECK(contains(dropped.err, "note: column 'w' is empty throughout and is left out\n"));
  CHECK_FALSE(contains(dropped.err, "rows have missing cells"));
}

TEST_CASE("cli tables: words and fills survive checkpoint, score, and resume") {
  const TempDir folder;
  std::string rows = "id,job,x,code,y\n";
  for (int i = 0; i < 80; ++i) {
    const int j = i * 7 % 80;
    rows += "r" + std::to_string(i) + "," + Lines{"clerk", "baker", "?"}[std::size_t(j % 3)] + "," +
            (j % 5 == 0 ? "" : std::to_string(1700000000 + j)) + "," + std::to_string(j % 4) + "," +
            (j % 3 == 0 ? "p" : "q") + "\n";
  }
  const std::string data = folder.write("t.csv", rows), half = folder / "half",
                    whole = folder / "whole";
  const std::string train = kTrain + "--words code --data " + data + " --missing ";
  check_refused(train + "refuse", "--missing mean, mode or drop");
  for (const std::string missing : {"mean", "mode", "drop"}) {
    CAPTURE(missing);
    const Json trained = json_of(train + missing + " --save " + whole);
    CHECK(json_of("eval " + whole)["test_accuracy"] == trained["test_accuracy"]);
    CHECK(json_of("eval " + whole + " --data " + data)["test_accuracy"] ==
          trained["test_accuracy"]);
    REQUIRE(run(train + missing + " --stop-after 3 --quiet --save " + half).exit_code == 0);
    CHECK(json_of("train --resume " + half)["weights_sha256"] == trained["weights_sha256"]);
    check_refused("train --resume " + half + " --missing refuse", "contradicts");
  }
  const Result result = run(train + "mean");
  CHECK(contains(result.out,
                 "data           t: 80 rows, 9 features, 2 classes (p 27, q 53); label "
                 "'y'; 1 column of numbers, 2 of words, 2 with missing cells, 1 left "
                 "out; "));
  CHECK(contains(result.err, "note: column 'id' has a word of its own in each of the 80 rows"));
  CHECK(contains(result.err, "note: missing cells are filled by the mean"));
  const Json found = json_of(train + "mean");
  CHECK(contains(found["table"].get<std::string>(), "t: 80 rows, 9 features"));
  CHECK(found["remarks"].size() == 2);
  const Json inspected = json_of("inspect " + whole)["table"];
  CHECK(inspected["label"] == "y");
  CHECK(inspected["left_out"] == Json{"id"});
  CHECK(inspected["columns"][0]["words"] == Json{"baker", "clerk"});
  CHECK(contains(run("inspect " + whole).out, "label 'y'; 1 column of numbers, 2 of words"));
  const std::string strange = folder.write("s.csv", "job,x,code,y\nsmith,1700000001,7,p\n");
  CHECK(json_of("eval " + whole + " --data " + strange)["remarks"].size() == 2);
  check_refused("eval " + whole + " --drop x", "--drop: the model knows its columns");
  check_refused("train --data iris --missing mean", "--missing is for CSV files, which 'iris'");
}

TEST_CASE("cli tables: rows of the training file score as they do together") {
  const TempDir folder;
  Lines lines = {"job,x,z,y"};
  for (int i = 0; i < 60; ++i) {
    lines.push_back(Lines{"clerk", "baker", "smith"}[std::size_t(i % 3)] + "," +
                    std::to_string(1000000 + i * 7 % 11) + "," + (i % 4 == 0 ? "NA" : "1.5") + "," +
                    std::to_string((i * i + i / 7) % 2));
  }
  const std::string model = folder / "m";
  REQUIRE(run(kTrain + "--missing mean --quiet --save " + model + " --data " +
              folder.write("t.csv", joined(lines)))
              .exit_code == 0);
  const auto right = [&](const Lines& rows) {
    const Json found = json_of("eval " + model + " --data " + folder.write("e.csv", joined(rows)));
    CHECK(found["tested"] == "all rows");
    return std::lround(found["test_accuracy"].get<double>() * found["rows"].get<double>());
  };
  Lines twice = lines;  // so that these are not the training data
  twice.push_back(lines[1]);
  long sum = 0, of_first = 0;
  for (std::size_t begin = 1; begin < lines.size(); begin += 7) {
    Lines part = {lines[0]};
    for (std::size_t i = begin; i < std::min(begin + 7, lines.size()); ++i)
      part.push_back(lines[i]);
    sum += right(part);
    if (begin == 1) of_first = right({lines[0], lines[1]});
  }
  CHECK(right(twice) == sum + of_first);
}

TEST_CASE("cli tables: a table like UCI's Adult is learned in seconds by votes and latent8") {
  const TempDir folder;
  const std::string data = folder.write("adult.csv", census(3000));
  for (const std::string recipe : {"votes", "latent8"}) {
    CAPTURE(recipe);
    const std::string train = "train --data " + data + " --recipe " + recipe + " --model mlp:64,64";
    check_refused(train, "line ");
    const Json found = json_of(train + " --missing mean --epochs 20");
    CHECK(found["test_accuracy"] > 0.8);
    CHECK(found["seconds"] < 10.0);
  }
}

}  // namespace tritgrad::test::test_cli_tables
