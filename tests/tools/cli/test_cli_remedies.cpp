// Advice that is followed works: each row is a command that is refused, what is said of it, and the
// commands or files that the sentence names, every one of which must then do.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/compressed.h"
#include "tests/support/npy_files.h"
#include "tests/support/program.h"
#include "tests/support/readers.h"

namespace tritgrad::test::test_cli_remedies {
namespace {

// Another table or, where that is empty, the same; and other options.
struct Remedy {
  std::string table, options;
};

struct Refusal {
  std::string table, options, message;
  std::vector<Remedy> remedies;
};

// Twelve rows that can be learned from.
const std::string kRows = [] {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += std::to_string(i % 5) + "," + std::to_string(i * 7 % 12) + "," + "pq"[i % 2] + "\n";
  }
  return text;
}();
const std::string kTable = "a,b,y\n" + kRows;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

// `command` ends in " --data ".
void check_remedies(const std::string& command, const std::vector<Refusal>& refusals) {
  const TempDir folder;
  for (const Refusal& each : refusals) {
    CAPTURE(each.table);
    check_refused(command + folder.write("t.csv", each.table) + " " + each.options, each.message);
    for (const Remedy& remedy : each.remedies) {
      const std::string& table = remedy.table.empty() ? each.table : remedy.table;
      CAPTURE(table);
      CAPTURE(remedy.options);
      const Result result = run(command + folder.write("t.csv", table) + " " + remedy.options);
      CHECK_MESSAGE(result.exit_code == 0, result.err);
    }
  }
}

const std::string kTrain = "train --model mlp:4 --epochs 1 --quiet --data ";

// The text as a program of the system writes it.
std::string through(const std::string& command, const std::string& bytes) {
  const TempDir folder;
  const std::string in = folder.write("in", bytes), out = folder / "out";
  REQUIRE(std::system((command + " <'" + in + "' >'" + out + "'").c_str()) == 0);
  return read_text(out);
}

bool is_there(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

}  // namespace

TEST_CASE("cli remedies: the text of a table") {
  const std::string bars = "sep=|\n" + replaced(kTable, ",", "|"), blanks = "a b y\n1 2 p\n";
  const auto separated = [](const std::string& separator) {
    return Remedy{replaced(kTable, ",", separator), ""};
  };
  const std::string latin = through("iconv -f UTF-8 -t ISO-8859-1", "Höhe,b,y\n" + kRows),
                    label = through("iconv -f UTF-8 -t ISO-8859-1", kTable + "1,2,grün\n"),
                    word = through("iconv -f UTF-8 -t ISO-8859-1",
                                   "a,y\nrot,p\nrot,p\ngrün,q\nrot,q\ngrün,q\n");
  const auto as_utf8 = [](const std::string& text) {
    return Remedy{through("iconv -f ISO-8859-1 -t UTF-8", text), ""};
  };
  check_remedies(
      kTrain,
      {{bars,
        "",
        "separate cells by comma, semicolon or tab",
        {separated(","), separated(";"), separated("\t")}},
       {blanks,
        "",
        "separate cells by comma, semicolon or tab",
        {separated(","), separated(";"), separated("\t")}},
       {kTable + "1,\"2,p\n", "", "add the missing \"", {{kTable + "1,\"2\",p\n", ""}}},
       {kTable + "1,2,\"the \"p\n",
        "",
        "write a quote inside a quoted cell as \"\"",
        {{kTable + "1,2,\"the \"\"p\"\n", ""}}},
       {"a,b,y\n" + replaced(kRows, "\n", ",\n"),
        "",
        "the line ends in a separator, remove it, or end the first line in one too",
        {{kTable, ""}, {"a,b,y,\n" + replaced(kRows, "\n", ",\n"), ""}}},
       {"A title\n" + kTable,
        "",
        "if the first line is a title and no row, remove it",
        {{kTable, ""}}},
       {kTable + "1,5,2,p\n",
        "",
        "quote cells that hold the separator, and write 1.5 for 1,5",
        {{kTable + "1.5,2,p\n", ""}}},
       {kTable + "1,2,p,q\n",
        "",
        "quote cells that hold the separator",
        {{kTable + "1,2,\"p,q\"\n", ""}}},
       {latin, "", "the name of column 0 is not UTF-8; save the file as UTF-8", {as_utf8(latin)}},
       {label, "", "the label is not UTF-8; save the file as UTF-8", {as_utf8(label)}},
       {word, "", "the cell is not UTF-8; save the file as UTF-8", {as_utf8(word)}},
       {"0,1,l\n" + kRows,
        "",
        "say whether the line holds names (--header yes) or data (--header no)",
        {{"", "--header yes"}, {"", "--header no"}}}});
}

TEST_CASE("cli remedies: columns and labels") {
  std::string kinds = "id,kind,x\n";  // 40 rows whose last column is measured
  for (int i = 0; i < 40; ++i) {
    kinds += "n" + std::to_string(i) + "," + "uv"[i % 2] + "," + std::to_string(i) + ".5\n";
  }
  const std::string same = "a,y,z\n1,p,k\n2,q,k\n1,p,k\n2,q,k\n1,p,k\n",
                    taken_out = "take it out, or name another label by --label";
  std::string words = "w,a,y\n";
  for (int i = 0; i < 140; ++i) {
    words += "w" + std::to_string(i / 2) + "," + std::to_string(i % 9) + "," + "pq"[i % 2] + "\n";
  }
  // Columns of which no cell is filled: a label that was asked for, and all but the label.
  const std::string no_label = replaced(kTable, "\n", ",\n"), no_feature = "a,b,y\n,,p\n,,q\n";
  const auto with_label = [](const std::string& text) { return kTable + "1,2," + text + "\n"; };
  check_remedies(
      kTrain,
      {{"y,a,y\n" + replaced(kRows, "p\n", "0\n"),
        "--label y",
        "two columns are called \"y\"; give the label column by number",
        {{"", "--label 2"}}},
       {kTable, "--label yy", "did you mean 'y'?", {{"", "--label y"}}},
       {kTable, "--drop bb", "did you mean 'b'?", {{"", "--drop b"}}},
       {kRows, "--label 3", "columns are numbers from 0 to 2", {{"", "--label 2"}}},
       {same,
        "",
        "at least two classes are needed; name the column that holds classes by --label",
        {{"", "--label y"}}},
       {kinds,
        "--task classify",
        "has 40 distinct values in 40 rows; name the column that holds classes by --label",
        {{"", "--label kind"}}},
       {kTable, "--drop a,y", taken_out, {{"", "--drop a"}}},
       {kTable, "--drop y", taken_out, {{"", "--drop y --label b"}}},
       {kTable, "--columns b,y", taken_out, {{"", "--columns b"}, {"", "--columns b,y --label a"}}},
       {kTable, "--drop a,b", "name features by --columns", {{"", "--columns a"}}},
       {words,
        "",
        "leave it out (--drop w), or allow more (--max-categories 70)",
        {{"", "--drop w"}, {"", "--max-categories 70"}}},
       {"a,b,y,z" + no_label.substr(6),
        "--label z",
        "no row has a label, as column 'z' is empty throughout; name the column that holds classes "
        "by --label",
        {{"", "--label y"}, {"", ""}}},
       {replaced(kTable, ",p", ",NA"),
        "--label y --missing drop",
        "at least two classes are needed; name the column that holds classes by --label",
        {{"", "--label a --missing drop"}}},
       {replaced(replaced(kTable, ",p", ",NA"), ",q", ",None"),
        "--missing drop",
        "name the column that holds classes by --label, or, if what stands there are classes, say "
        "--words y",
        {{"", "--label a --missing drop"}, {"", "--words y"}}},
       {no_feature,
        "--missing drop",
        "every column is empty throughout; nothing can be learned",
        {{kTable, "--missing drop"}}},
       {with_label(""),
        "",
        "the label is empty; fill or remove the row, or leave such rows out by --missing drop",
        {{with_label("p"), ""}, {kTable, ""}, {"", "--missing drop"}}},
       {with_label("None"),
        "",
        "fill or remove the row, or leave such rows out by --missing drop, or, if it is a class, "
        "say --words y",
        {{with_label("p"), ""}, {kTable, ""}, {"", "--missing drop"}, {"", "--words y"}}},
       {replaced(kTable, ",p", ",1") + "1,2,inf\n",
        "",
        "the label is \"inf\"; fill or remove the row",
        {{with_label("p"), ""}, {kTable, ""}}}});
}

TEST_CASE("cli remedies: cells") {
  const auto with_cell = [](const std::string& cell) { return kTable + "1," + cell + ",p\n"; };
  const std::string complete =
      "fill or remove the row, or say what becomes of missing cells: --missing mean, mode or drop";
  const std::vector<Remedy> ways = {{with_cell("3"), ""},
                                    {kTable, ""},
                                    {"", "--missing mean"},
                                    {"", "--missing mode"},
                                    {"", "--missing drop"}};
  std::string full_of_holes = "a,b,y\n";
  for (int i = 0; i < 12; ++i) {
    full_of_holes += i < 9 ? "," + std::to_string(i) : std::to_string(i) + ",";
    full_of_holes += std::string(",") + "pq"[i % 2] + "\n";
  }
  // Rows lack their label where they have both cells.
  const std::string no_whole_row = replaced(full_of_holes, "0,p\n", "0,\n") + "1,2,\n";
  check_remedies(
      kTrain,
      {{with_cell("x"),
        "",
        "mend or remove the row, leave the column out (--drop b), or take all its cells for words "
        "(--words b)",
        {{with_cell("3"), ""}, {kTable, ""}, {"", "--drop b"}, {"", "--words b"}}},
       {with_cell("1e39"),
        "",
        "numbers up to 3.4e38 expected; mend or remove the row, leave the column out (--drop b)",
        {{with_cell("1e38"), ""}, {kTable, ""}, {"", "--drop b"}}},
       {"a,2,y\n" + kRows,
        "",
        "if the first line holds names, say that there is a header (--header yes); else mend or "
        "remove the row, leave the column out (--drop 0), or take all its cells for words (--words "
        "0)",
        {{"", "--header yes"},
         {"1,2,p\n" + kRows, ""},
         {kRows, ""},
         {"", "--header no --drop 0"},
         {"", "--header no --words 0"}}},
       {with_cell(""), "", "the cell is empty, numbers expected; " + complete, ways},
       {with_cell("?"), "", "\"?\" stands for a missing cell, numbers expected; " + complete, ways},
       {"a,y\nu,p\nv,q\n?,p\nu,q\nv,p\nu,q\n",
        "",
        "\"?\" stands for a missing cell, words expected; " + complete,
        {{"", "--missing mean"}, {"", "--missing mode"}, {"", "--missing drop"}}},
       {with_cell(""),
        "--missing median",
        "refuse, mean, mode or drop expected",
        {{"", "--missing mean"}, {"", "--missing mode"}, {"", "--missing drop"}}},
       {full_of_holes,
        "--missing drop",
        "leave the emptiest columns out by --drop, or fill them by --missing mean or mode",
        {{"", "--missing drop --drop a"}, {"", "--missing mean"}, {"", "--missing mode"}}},
       {no_whole_row,
        "--missing drop",
        "each of the 13 rows has a missing cell; leave the emptiest columns out by --drop\n",
        {{"", "--missing drop --drop a"}}}});
}

TEST_CASE("cli remedies: numbers as people write them") {
  const std::string semicolons = replaced(kTable, ",", ";");
  const auto written = [&](const std::string& cell, const std::string& message,
                           const std::string& mended) {
    return Refusal{
        semicolons + "1;" + cell + ";p\n",
        "",
        message,
        {{semicolons + "1;" + mended + ";p\n", ""}, {"", "--drop b"}, {"", "--words b"}}};
  };
  check_remedies(
      kTrain, {written("1,5", "it has a decimal comma; write a decimal point, or", "1.5"),
               written("1,234", "write a decimal point, and no separators of thousands", "1.234"),
               written("1,234,567", "it has separators of thousands; remove them", "1234567"),
               written("1.234,5", "write a decimal point alone", "1234.5"),
               written("1 000", "it holds a space; remove it", "1000"),
               written("1'000", "it has separators of thousands; remove them", "1000"),
               written("1\u00A0000", "no-break space (U+00A0); remove it", "1000"),
               written("1\u202F000", "narrow no-break space (U+202F); remove it", "1000"),
               written("1\u2009000", "thin space (U+2009); remove it", "1000"),
               written("\u22125", "write - instead", "-5"),
               written("50%", "it ends in a percent sign; remove it", "50")});
}

TEST_CASE("cli remedies: a table that a model is scored on") {
  const TempDir folder;
  const std::string model = folder / "m";
  const std::string table = "job," + replaced(kTable, "\n", "\nclerk,");
  REQUIRE(
      run(kTrain + folder.write("t.csv", table.substr(0, table.size() - 6)) + " --save " + model)
          .exit_code == 0);
  const std::string head = "job,a,b,y\n", rows = "clerk,1,2,p\nclerk,2,3,q\n";
  const std::string advice =
      "mend or remove the row, or name the column that holds classes by --label";
  check_remedies(
      "eval " + model + " --data ",
      {{"job,b,y\nclerk,2,p\n",
        "",
        "; add or rename it",
        {{head + rows, ""}, {"b,job,y,a\n2,clerk,p,1\n", ""}}},
       {"job,a,b,b,y\nclerk,1,2,3,p\n",
        "",
        "rename one of them",
        {{"job,a,b,c,y\nclerk,1,2,3,p\n", ""}}},
       {head + rows, "--label a", "name another by --label", {{"", "--label y"}}},
       {head + "clerk,,2,p\n",
        "",
        "fill or remove the row, or say what becomes of missing cells: --missing mean or drop",
        {{head + rows, ""},
         {"", "--missing mean"},
         {head + rows + "clerk,,2,p\n", "--missing drop"}}},
       {head + "clerk,,2,p\n",
        "--missing mode",
        "say --missing mean or drop",
        {{"", "--missing mean"}, {head + rows + "clerk,,2,p\n", "--missing drop"}}},
       {head + rows + "clerk,1,2,r\n",
        "",
        "line 4: label \"r\" is none of the 2 classes of the model; known: p, q; " + advice,
        {{head + rows + "clerk,1,2,q\n", ""}, {head + rows, ""}}},
       {"job,a,b,y,new\nclerk,1,2,r,q\n", "", advice, {{"", "--label new"}}},
       {head + rows + "clerk,1,2,NA\n",
        "",
        "the label \"NA\" stands for a missing cell; fill or remove the row, or leave such rows "
        "out "
        "by --missing drop",
        {{head + rows + "clerk,1,2,q\n", ""}, {head + rows, ""}, {"", "--missing drop"}}},
       {head + "clerk,,2,p\nclerk,,3,q\n",
        "--missing drop",
        "each of the 2 rows has a missing cell; fill them by --missing mean",
        {{"", "--missing mean"}}},
       {head + "clerk,1,2,\n",
        "",
        "no row has a label, as column 'y' is empty throughout; name the column that holds classes "
        "by --label",
        {{"job,a,b,y,new\nclerk,1,2,,q\n", "--label new"}}},
       {head + "clerk,x,2,p\n",
        "",
        "\"x\" is not a number, numbers expected; mend or remove the row",
        {{head + rows, ""}}},
       {head + "clerk,\"1,5\",2,p\n",
        "",
        "write a decimal point, or remove the row",
        {{head + "clerk,1.5,2,p\n", ""}, {head + rows, ""}}},
       {head + rows, "--drop a", "leave the option out", {{"", ""}}},
       {head + rows, "--words a", "leave the option out", {{"", ""}}},
       {head + rows, "--columns a", "leave the option out", {{"", ""}}},
       {head + rows, "--max-categories 9", "leave the option out", {{"", ""}}}});
}

TEST_CASE("cli remedies: options") {
  const TempDir folder;
  const std::string lone = kTable + "1,2,r\n", pair = lone + "3,4,r\n",
                    file = folder.write("file", ""), cache = folder.path().string();
  check_remedies(
      kTrain, {{kTable, "--seed 1 --seed=2", "--seed: given twice; leave one", {{"", "--seed 2"}}},
               {kTable, "--label y --label y", "--label: given twice", {{"", "--label y"}}},
               {"a,y\n1,p\n2,q\n", "", "leaves a part empty; give more rows", {{kTable, ""}}},
               {kTable, "--pixels sqrt", "leave sqrt out", {{"", ""}}},
               {kTable, "--augment flip", "leave it out for data of this kind", {{"", ""}}},
               {kTable, "--cache " + file, "name a folder", {{"", "--cache " + cache}}},
               {kTable, "--header maybe", "expected auto, yes or no", {{"", "--header yes"}}},
               {pair,
                "--folds 5",
                "class \"r\" of t has only 2 rows; use 2 folds at most (--folds 2)",
                {{"", "--folds 2"}}},
               {lone,
                "--folds 7",
                "class \"r\" of t has only 1 row; leave that class out and use 6 folds at most "
                "(--folds 6), or train without folds",
                {{kTable, "--folds 6"}, {"", ""}}}});
  const std::string train = "train --model mlp:4 --epochs 1 --quiet --data ",
                    table = folder.write("t.csv", kTable);
  for (const char* option : {"--label y", "--header yes", "--missing mean", "--words a"}) {
    CAPTURE(option);
    check_refused(train + "iris " + option, "or name a file by --data");
    CHECK(run(train + "iris").exit_code == 0);
    CHECK(run(train + table + " " + option).exit_code == 0);
  }
  // A list may be given in parts, and a configuration file be overridden.
  const std::string config = folder.write("run.toml", "seed = 1\nlabel = \"a\"\n");
  CHECK(run(train + table + " --config " + config +
            " --seed 2 --label y --set weight.lr=0.1 --set "
            "weight.threshold=9 --recipe votes")
            .exit_code == 0);
}

TEST_CASE("cli remedies: a file that is no table is unpacked or converted as the message says") {
  const TempDir folder;
  const auto reads = [&](const std::string& bytes) {
    CHECK(run(kTrain + folder.write("mended.csv", bytes)).exit_code == 0);
  };
  // The command in the message, run as it stands.
  const auto follows = [&](const std::string& bytes, const std::string& command) {
    CAPTURE(command);
    check_refused(kTrain + folder.write("t.csv", bytes), command);
    reads(through(command, bytes));
  };
  for (const std::string order : {"UTF-16LE", "UTF-16BE"}) {
    follows(through("iconv -f UTF-8 -t " + order, kTable), "iconv -f " + order + " -t UTF-8");
  }
  for (const std::string order : {"UTF-32LE", "UTF-32BE"}) {
    const std::string mark = through("iconv -f UTF-8 -t " + order, "\xEF\xBB\xBF" + kTable);
    check_refused(kTrain + folder.write("t.csv", mark), "in UTF-32; save it as UTF-8");
    reads(through("iconv -f UTF-32 -t UTF-8", mark));
  }
  follows(gzip(gzip(kTable)), "gunzip -k");
  for (const auto& [packer, command] : {std::pair("bzip2", "bunzip2 -k"),
                                        std::pair("xz", "unxz -k"), std::pair("zstd", "unzstd")}) {
    if (is_there(packer)) {
      follows(through(std::string(packer) + " -c", kTable), command);
    } else {
      skip_or_fail(packer);
    }
  }
  const std::string zip = zip_file({{"t.csv", kTable}}, true);
  check_refused(kTrain + folder.write("t.csv", zip), "unpack it, or save the table as CSV");
  check_refused(kTrain + folder.write("t.csv", "PAR1\x15..."), "save the table as CSV");
  reads(kTable);
}

TEST_CASE("cli remedies: arrays under names of other kinds") {
  const TempDir folder;
  const std::string here = from_folder(folder.path()),
                    train = "train --model mlp:4 --epochs 1 --quiet ";
  const std::string x = npy_array<float>("<f4", "(8, 2)",
                                         {1, 2, 3, 4, 5, 6, 7, 8, 1, 4, 2, 5, 3, 6, 7, 1}),
                    y = npy_array<std::int64_t>("<i8", "(8,)", {0, 1, 0, 1, 1, 0, 1, 0});
  for (const std::string name : {"x.npy", "x.csv", "d.csv", "d.npz", "y.npy"}) {
    const bool is_archive = name.starts_with("d");
    folder.write(name, is_archive        ? zip_file({{"X.npy", x}, {"y.npy", y}}, true)
                       : name == "y.npy" ? y
                                         : x);
  }
  check_refused(train + "--data x.npy", "give both arrays as x.npy,y.npy", here);
  check_refused(train + "--data x.npy,", "give both arrays as x.npy,y.npy", here);
  check_refused(train + "--data x.csv", "give features and labels as x.npy,y.npy", here);
  CHECK(run(train + "--data x.npy,y.npy", here).exit_code == 0);
  check_refused(train + "--data d.csv", "must be a file whose name ends in .npz", here);
  CHECK(run(train + "--data d.npz", here).exit_code == 0);
}

TEST_CASE("cli remedies: a model of arrays is scored on a table without names, by place") {
  const TempDir folder;
  const std::string here = from_folder(folder.path());
  std::vector<float> numbers;
  std::vector<std::int64_t> labels;
  std::string table, label_first;
  for (int i = 0; i < 40; ++i) {
    // The class follows from the second column alone.
    const std::string a = std::to_string(i * 3 % 7), b = std::to_string(i * 5 % 11),
                      y = std::to_string(i * 5 % 11 / 6);
    numbers.insert(numbers.end(), {std::stof(a), std::stof(b)});
    labels.push_back(std::stoi(y));
    table += a + "," + b + "," + y + "\n";
    label_first += y + "," + a + "," + b + "\n";
  }
  folder.write("x.npy", npy_array("<f4", "(40, 2)", numbers));
  folder.write("y.npy", npy_array("<i8", "(40,)", labels));
  folder.write("t.csv", table);
  folder.write("f.csv", label_first);
  REQUIRE(run("train --model mlp:16 --recipe fp32 --lr 0.02 --epochs 60 --quiet --data x.npy,y.npy "
              "--save m",
              here)
              .exit_code == 0);
  for (const std::string data : {"t.csv", "f.csv --label 0"}) {
    CAPTURE(data);
    CHECK(contains(run("eval m --data " + data, here).out, "accuracy 100.00 % (all 40 rows)"));
  }
  // The seventh row, which is in line 7 of the table and, behind an empty line, in line 8.
  labels[6] = 7;
  folder.write("y.npy", npy_array("<i8", "(40,)", labels));
  std::size_t at = 0;
  for (int row = 0; row < 7; ++row) at = table.find('\n', at + 1);
  table[at - 1] = '7';
  folder.write("t.csv", table);
  folder.write("g.csv", "\n" + table);
  const std::string unknown = ": label \"7\" is none of the 2 classes of the model";
  check_refused("eval m --data x.npy,y.npy", "y.npy, row 6" + unknown, here);
  check_refused("eval m --data t.csv", "t.csv, line 7" + unknown, here);
  check_refused("eval m --data g.csv", "g.csv, line 8" + unknown, here);
}

TEST_CASE("cli remedies: a model of pictures is scored on a table of their pixels") {
  const TempDir folder;
  const std::string model = folder / "m", digits = TRITGRAD_SOURCE_DIR "/engine/data/digits.csv";
  for (const std::string spec : {"mlp:8", "conv:4,M,8"}) {
    CAPTURE(spec);
    REQUIRE(run("train --epochs 1 --quiet --data digits --model " + spec + " --save " + model)
                .exit_code == 0);
    const Result own = run("eval " + model + " --json -");
    const Result table = run("eval " + model + " --json - --data " + digits);
    CHECK(contains(table.err,
                   "note: the 64 features of 'digits' are taken for images of 8 x 8 x 1 pixels"));
    const auto scores = [](const std::string& json) {  // up to what was remarked
      return json.substr(json.find("\"test_accuracy\""), 60);
    };
    CHECK(scores(own.out) == scores(table.out));
    CHECK(run("train --quiet --epochs 2 --resume " + model + " --data " + digits).exit_code == 0);
    check_refused("eval " + model + " --data iris",
                  "its model has 64 inputs but 'iris' has 4 features");
  }
}

}  // namespace tritgrad::test::test_cli_remedies
