// Tables as people have them: words, missing cells, large numbers, and other files of a model.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/csv.h"
#include "engine/data/table_schema.h"
#include "tests/support/parsed_csv.h"

namespace tritgrad::test::test_table_schema {
namespace {

// With -1 in the place of NaN, which equals nothing.
std::vector<float> with_holes(const Dataset& data) {
  std::vector<float> all = values(data);
  for (float& x : all) x = std::isnan(x) ? -1.0f : x;
  return all;
}

CsvOptions with(MissingCells missing) {
  CsvOptions options;
  options.missing = missing;
  return options;
}

CsvOptions of_model(const Dataset& trained, MissingCells missing = MissingCells::kRefuse) {
  CsvOptions options = with(missing);
  options.schema = trained.schema.get();
  return options;
}

bool says(const std::vector<std::string>& sentences, std::string_view part) {
  for (const std::string& each : sentences) {
    if (contains(each, part)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("table: a column of words is a feature for each word, in alphabetical order") {
  const Dataset data = parse("job,age,y\nclerk,30,a\nbaker,40,b\nclerk,50,a\n");
  CHECK(data.feature_names == Names{"job=baker", "job=clerk", "age"});
  CHECK(values(data) == std::vector<float>{0, 1, 30, 1, 0, 40, 0, 1, 50});
  CHECK(data.schema->label == "y");
  CHECK(data.schema->summary() == "label 'y'; 1 column of numbers, 1 of words");
  // Codes are words where somebody says so.
  CsvOptions options;
  options.words = {"age"};
  CHECK(parse("job,age,y\nclerk,30,a\nbaker,4,b\n", options).feature_names ==
        Names{"job=baker", "job=clerk", "age=30", "age=4"});
}

TEST_CASE("table: a word among numbers is a mistake, and what is said to do about it works") {
  const std::string text = "a,b,y\n1,5,p\n2,x,q\n3,6,p\n";
  const std::string message = refused(text);
  CHECK(contains(message,
                 "t.csv, line 3, b: \"x\" is not a number, numbers expected; mend or "
                 "remove the row, leave the column out (--drop b), or take all its cells "
                 "for words (--words b)"));
  CsvOptions drop, words;
  drop.drop = {"b"};
  words.words = {"b"};
  CHECK(parse(text, drop).feature_names == Names{"a"});
  CHECK(parse(text, words).feature_names == Names{"a", "b=5", "b=6", "b=x"});
}

TEST_CASE("table: too many words are refused with their count, and both remedies work") {
  std::string text = "id,a,y\n";
  for (int i = 0; i < 140; ++i) {
    text += "w" + std::to_string(i / 2) + "," + std::to_string(i) + "," + "pq"[i % 2] + "\n";
  }
  const std::string message = refused(text);
  CHECK(contains(message,
                 "column 'id' holds 70 different words (such as \"w0\"), more than the 64 "
                 "that --max-categories allows; leave it out (--drop id), or allow more "
                 "(--max-categories 70)"));
  CsvOptions drop, more;
  drop.drop = {"id"};
  more.max_categories = 70;
  CHECK(parse(text, drop).features == 1);
  CHECK(parse(text, more).features == 71);
  more.max_categories = 69;
  CHECK(contains(refused(text, more), "more than the 69"));
}

TEST_CASE("table: columns are chosen by name or number") {
  const std::string text = "a,b,c,y\n1,2,3,p\n4,5,6,q\n";
  CsvOptions options;
  options.columns = {"c", "0"};
  CHECK(parse(text, options).feature_names == Names{"a", "c"});
  CHECK(parse(text, options).schema->left_out == Names{"b"});
  options.drop = {"c"};
  CHECK(values(parse(text, options)) == std::vector<float>{1, 4});
  options.columns = {"d"};
  CHECK(contains(refused(text, options), "no column \"d\" among the 4 columns"));
  options.columns = {"y"};
  CHECK(contains(refused(text, options), "--columns names \"y\", which is the label column"));
  options.columns = {"a"};
  options.drop = {"a"};
  CHECK(contains(refused(text, options), "no column is left to learn from"));
  // A column that is left out may hold anything.
  options = {};
  options.drop = {"b"};
  CHECK(parse("a,b,y\n1,,p\n2,inf,q\n3,oops,q\n", options).features == 1);
}

TEST_CASE("table: columns that only tell rows apart are left out, and said to be") {
  std::string named = ",name,a,y\n", numbered, measured = "t,y\n";
  for (int i = 0; i < 12; ++i) {
    const std::string number = std::to_string(i), label(1, "pq"[i % 2]);
    named += number + ",n" + number + "," + std::to_string(i % 5) + "," + label + "\n";
    numbered += std::to_string(i + 1) + "," + std::to_string(i % 5) + "," + label + "\n";
    measured += number + "," + label + "\n";
  }
  const Dataset pandas = parse(named);
  CHECK(pandas.feature_names == Names{"a"});
  CHECK(pandas.schema->left_out == Names{"column 0", "name"});
  CHECK(says(pandas.remarks.notes, "column 'column 0' counts the rows and is left out"));
  CHECK(says(pandas.remarks.notes, "'name' has a word of its own in each of the 12 rows"));
  CsvOptions options;
  options.columns = {"0", "a"};
  CHECK(parse(named, options).features == 2);
  const Dataset nameless = parse(numbered);
  CHECK(nameless.feature_names == Names{"column 1"});
  // Scored again, from the same file or from rows of it, the column is not read either.
  CHECK(values(parse(numbered, of_model(nameless))) == values(nameless));
  CHECK(values(parse("7,3,p\n", of_model(nameless))) == std::vector<float>{3});
  // Where there is nothing else, it is kept.
  CsvOptions without = {};
  without.drop = {"1"};
  CHECK(parse(numbered, without).feature_names == Names{"column 0"});
  // A named column of rising numbers may be a measurement.
  CHECK(parse(measured).features == 1);
}

TEST_CASE("table: missing cells are refused, and each way that is named works") {
  const std::string text = "a,job,y\n1,x,p\n,x,q\n4,?,p\n4,z,q\n";
  CHECK(contains(refused(text),
                 "t.csv, line 3, a: the cell is empty, numbers expected; fill or "
                 "remove the row, or say what becomes of missing cells: --missing "
                 "mean, mode or drop"));
  const Dataset mean = parse(text, with(MissingCells::kMean));
  CHECK(mean.feature_names == Names{"a", "a is missing", "job=x", "job=z", "job is missing"});
  CHECK(mean.has_missing);
  CHECK(with_holes(mean) ==
        std::vector<float>{1, 0, 1, 0, 0, -1, 1, 1, 0, 0, 4, 0, -1, -1, 1, 4, 0, 0, 1, 0});
  CHECK(
      says(mean.remarks.notes, "filled by the mean, and one more feature says where: a (1), job"));
  const Dataset mode = parse(text, with(MissingCells::kMode));
  CHECK_FALSE(mode.has_missing);
  CHECK(values(mode) == std::vector<float>{1, 1, 0, 4, 1, 0, 4, 1, 0, 4, 0, 1});
  const Dataset drop = parse(text, with(MissingCells::kDrop));
  CHECK(values(drop) == std::vector<float>{1, 1, 0, 4, 0, 1});
  CHECK(drop.labels == Labels{0, 1});
  CHECK(says(drop.remarks.notes, "2 of 4 rows have missing cells"));
  CHECK(drop.place(1) == "line 5");  // as the text has it, whatever was left out
  // Where no row is whole, both ways out that are named work.
  const std::string holes = "a,b,y\n,1,p\n,2,q\n3,,p\n";
  CHECK(contains(refused(holes, with(MissingCells::kDrop)),
                 "each of the 3 rows has a missing cell; leave the emptiest columns out by --drop, "
                 "or fill them by --missing mean or mode"));
  CsvOptions fewer = with(MissingCells::kDrop);
  fewer.drop = {"a"};
  CHECK(parse(holes, fewer).rows == 2);
  CHECK(parse(holes, with(MissingCells::kMode)).rows == 3);
  CHECK(says(parse("a,b,y\n,1,p\n,2,q\n", with(MissingCells::kMean)).remarks.notes,
             "column 'a' is empty throughout and is left out"));
  CHECK(contains(refusal([] { parse_missing("median"); }), "refuse, mean, mode or drop expected"));
}

TEST_CASE("table: markers of missing cells are those of pandas and UCI, and no names") {
  for (const std::string marker : {"?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None",
                                   "<NA>", "#N/A", "1.#QNAN", "-1.#IND", ""}) {
    CAPTURE(marker);
    const std::string text = marker + "," + marker + ",A\n1,2,B\n3,4,A\n5,6,B\n";
    const Dataset data = parse(text, with(MissingCells::kDrop));
    CHECK(values(data) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(data.feature_names == Names{"column 0", "column 1"});
    CHECK(contains(refused(text), "t.csv, line 1, column 0: "));
    CHECK(parse(text, with(MissingCells::kMean)).rows == 4);
  }
  // Glass has a column of sodium.
  CHECK(parse("Na,Mg,y\n1,2,p\n3,4,q\n").feature_names == Names{"Na", "Mg"});
}

TEST_CASE("table: a first line of words is told from names") {
  CHECK(parse("red,big,p\nblue,big,q\nred,small,q\nblue,big,p\n").rows == 4);
  CHECK(parse("colour,size,y\nred,big,p\nblue,big,q\nred,small,q\n").rows == 3);
  CHECK(parse("red,size,y\nred,1,p\nblue,2,q\nred,3,q\n").feature_names[0] == "red=blue");
}

TEST_CASE("table: numbers that people write are named as what they are") {
  const auto said = [](const std::string& cell, const std::string& what) {
    CAPTURE(cell);
    const std::string text = "a;b;y\n1;" + cell + ";p\n2;3;q\n";
    CHECK(contains(refused(text), "t.csv, line 2, b: \"" + cell + "\" is not a number, " + what));
    // Both ways out that are named at the end work.
    CsvOptions drop, words;
    drop.drop = words.words = {"b"};
    CHECK(parse(text, drop).features == 1);
    CHECK(parse(text, words).features == 3);
  };
  said("1,5", "it has a decimal comma; write a decimal point, or leave the column out (--drop b)");
  said("1,234", "its comma may be one of decimals or of thousands");
  said("1,234,567", "it has separators of thousands; remove them");
  said("1,234.5", "it has separators of thousands; remove them");
  said("1.234,5", "it has a decimal comma and separators of thousands");
  said("1'000", "it has separators of thousands");
  said("1 000", "it holds a space");
  said("1\u00A0000", "it holds a no-break space (U+00A0)");
  said("\u22125", "its minus sign is U+2212; write - instead");
  said("50%", "it ends in a percent sign");
  CHECK(contains(refused("a,y\n1.#QNAN,p\n2,q\n"), "\"1.#QNAN\" stands for a missing cell"));
  // A whole column of them is one of numbers, too.
  CHECK(contains(refused("a;y\n1,5;p\n2,5;q\n3,5;q\n"), "line 2, a: \"1,5\" is not a number"));
}

TEST_CASE("table: lines end in LF, CRLF or CR, and a first line may name the separator") {
  const std::vector<float> expected = {1, 2};
  for (const char* text :
       {"a,y\n1,p\n2,q\n", "a,y\r\n1,p\r\n2,q\r\n", "a,y\r1,p\r2,q\r", "a,y\r\r1,p\r2,q",
        "sep=;\r\na;y\r\n1;p\r\n2;q\r\n", "sep=,\na,y\n1,p\n2,q"}) {
    CAPTURE(text);
    CHECK(values(parse(text)) == expected);
  }
  CHECK(contains(refused("a,y\r1,p\r2,q,r\r"), "line 3: 3 cells found"));
  CHECK(contains(refused("sep=|\na|y\n"), "line 1: the first line declares the separator '|'"));
}

TEST_CASE("table: lines that end in a separator have no further column") {
  const Dataset named = parse("a,b,y,\n1,2,p,\n3,4,q,\n");
  CHECK(named.feature_names == Names{"a", "b"});
  CHECK(says(named.remarks.notes, "the last column is empty throughout and is left out"));
  CHECK(parse("1;2;p;;\n3;4;q;;\n").features == 2);
  CHECK(contains(refused("a,y\n1,p,\n2,q,\n"),
                 "line 2: 3 cells found, 2 expected as in the first "
                 "line; the line ends in a separator, remove it, or "
                 "end the first line in one too"));
  CHECK(parse("a,y,\n1,p,\n2,q,\n").features == 1);
  CHECK(parse("a,y\n1,p\n2,q\n").features == 1);
}

TEST_CASE("table: another number of cells is explained where its reason can be told") {
  CHECK(contains(refused("My title\na,y\n1,p\n2,q\n"),
                 "line 2: 2 cells found, 1 expected as in the first line; if the first line is a "
                 "title and no row, remove it"));
  CHECK(parse("a,y\n1,p\n2,q\n").rows == 2);
  CHECK(
      contains(refused("a,y\n1,p\n1,5,q\n"),
               "line 3: 3 cells found, 2 expected as in the first line; quote cells that hold the "
               "separator, and write 1.5 for 1,5"));
  CHECK(parse("a,y\n1,p\n1.5,q\n").rows == 2);
  CHECK(contains(refused("a,y\n1,p\n1e39,q\n"), "numbers up to 3.4e38 expected"));
}

TEST_CASE("table: whole numbers that doubles cannot tell apart are warned of") {
  const auto warns = [](const std::string& text) {
    return says(parse(text).remarks.warnings, "beyond 2^53 and differ in digits");
  };
  CHECK(warns("t,x,y\n1700000000000000000,1,p\n1700000000000000100,2,q\n"));
  CHECK_FALSE(warns("t,x,y\n1700000000000000,1,p\n1700000000000100,2,q\n"));
  CHECK_FALSE(warns("t,x,y\n1e20,1,p\n3e20,2,q\n"));
  // "Subtract what they have in common before the file is written."
  CHECK(parse("t,x,y\n0,1,p\n100,2,q\n").remarks.warnings.empty());
}

TEST_CASE("table: a column of the model that stands twice in another file is refused") {
  const Dataset model = parse("a,b,y\n1,2,p\n3,4,q\n");
  CHECK(contains(refused("b,a,b,y\n1,2,3,p\n", of_model(model)),
                 "two columns are called 'b', which the model reads; rename one of them"));
}

TEST_CASE("table: cells that are filled when a model is scored are told") {
  const Dataset model = parse("a,b,y\n1,2,p\n3,4,q\n");
  CsvOptions options = of_model(model);
  options.missing = MissingCells::kMean;
  CHECK(says(parse("a,b,y\n1,,p\n3,?,q\n", options).remarks.notes,
             "missing cells are filled by the mean: b (2)"));
}

TEST_CASE("table: a name that two columns have is warned of") {
  CHECK(says(parse("x,x,y\n1,2,p\n3,4,q\n").remarks.warnings, "two columns are called 'x'"));
  CHECK(parse("x,z,y\n1,2,p\n3,4,q\n").remarks.warnings.empty());
  // "Options tell them apart by numbers from 0."
  CsvOptions options;
  options.drop = {"0"};
  CHECK(values(parse("x,x,y\n1,2,p\n3,4,q\n", options)) == std::vector<float>{2, 4});
}

TEST_CASE("table: a label column that was not named is doubted where the first may be it") {
  const Dataset doubtful = parse("kind,a,b\nx,1,0\ny,2,1\nx,3,0\n");
  CHECK(says(doubtful.remarks.notes,
             "the last column, 'b', is taken for the label; if that is the "
             "first, 'kind', say --label kind"));
  CsvOptions options;
  options.label = "kind";
  CHECK(parse("kind,a,b\nx,1,0\ny,2,1\nx,3,0\n", options).class_names == Names{"x", "y"});
  CHECK(parse("kind,a,b\nx,1,0\ny,2,1\nx,3,0\n", options).remarks.notes.empty());
  CHECK(parse("kind,a,b\nx,1,p\ny,2,q\nx,3,p\n").remarks.notes.empty());
  CHECK(parse("a,b,y\n1.5,1,0\n2,2,1\n3,3,0\n").remarks.notes.empty());
}

TEST_CASE("table: large numbers keep what tells them apart") {
  const Dataset data = parse("t,y\n1700000000,p\n1700000010,q\n1700000000,p\n");
  const auto found = values(data);
  CHECK(found[1] - found[0] == 10.0f);
  CHECK(data.schema->columns[0].offset != 0.0);
  CHECK(data.remarks.warnings.empty());
  // A row that is scored has the same offset, though alone it is constant.
  CHECK(values(parse("t,y\n1700000010,q\n", of_model(data))) == std::vector<float>{found[1]});
  CHECK(
      says(parse("t,y\n0,p\n1000000000,q\n1000000010,p\n").remarks.warnings,
           "numbers of column 't' that differ become the same in fp32; subtract what they have in "
           "common, or split the column"));
  CHECK(parse("high,low,y\n0,0,p\n1,0,q\n1,10,p\n").remarks.warnings.empty());
  CHECK(says(parse("t,y\n100000000,p\n100000001,q\n100100000,p\n").remarks.warnings, "subtract"));
  CHECK(parse("t,y\n0,p\n1,q\n100000,p\n").remarks.warnings.empty());
}

TEST_CASE("table: what the training said of words is known of every other file") {
  CsvOptions options;
  options.words = {"code"};
  const Dataset data = parse("code,y\n7,p\n8,q\n", options);
  options.schema = data.schema.get();
  CHECK(values(parse("8,q\n", options)) == std::vector<float>{0, 1});
}

TEST_CASE("table: classes are what the training file calls them, in every file") {
  const Dataset texts = parse("x,y\n1,10\n2,1E1\n3,A7\n");
  CHECK(texts.class_names == Names{"10", "1E1", "A7"});
  CHECK(parse("x,y\n1,1E1\n2,1E1\n", of_model(texts)).labels == Labels{1, 1});
  const Dataset numbers = parse("x,y\n1,1\n2,2\n3,3\n");
  CHECK(parse("x,y\n1,3.0\n2,1.0\n", of_model(numbers)).labels == Labels{2, 0});
  // A label of no class is refused with its line.
  CHECK(
      contains(refused("x,y\n1,3.0\n2,x\n3,01\n", of_model(numbers)),
               "t.csv, line 3: label \"x\" is none of the 3 classes of the model; known: 1, 2, 3; "
               "mend or remove the row, or name the column that holds classes by --label"));
  CHECK(parse("x,y\n1,3.0\n3,01\n", of_model(numbers)).labels == Labels{2, 0});
  CHECK(parse("x,y\n1,01\n2,02\n", of_model(parse("x,y\n1,01\n2,02\n"))).class_names ==
        Names{"01", "02"});
}

TEST_CASE("table: whole numbers that doubles merge are told apart by their texts") {
  CHECK(parse("x,y\n1,9007199254740993\n2,9007199254740992\n3,9007199254740994\n").class_names ==
        Names{"9007199254740992", "9007199254740993", "9007199254740994"});
  CHECK(parse("x,y\n1,-9007199254740993\n2,-9007199254740992\n3,1\n").class_names ==
        Names{"-9007199254740993", "-9007199254740992", "1"});
  const Dataset data = parse("x,y\n1,9007199254740992\n2,9007199254740993\n");
  CHECK(parse("x,y\n1,9007199254740993\n", of_model(data)).labels == Labels{1});
}

TEST_CASE("table: a model finds its columns by name, else by place") {
  const Dataset data = parse("job,age,y\nclerk,30,a\nbaker,40,b\n");
  const std::vector<float> rows = {0, 1, 30, 1, 0, 40};
  CHECK(values(parse("age,more,y,job\n30,1,a,clerk\n40,2,b,baker\n", of_model(data))) == rows);
  const Dataset renamed = parse("work,years,kind\nclerk,30,a\nbaker,40,b\n", of_model(data));
  CHECK(values(renamed) == rows);
  CHECK(says(renamed.remarks.warnings, "other names than the model's (job, age)"));
  CHECK(values(parse("clerk,30,a\nbaker,40,b\n", of_model(data))) == rows);
  CHECK(values(parse("clerk,30,a\n", of_model(data))) == std::vector<float>{0, 1, 30});
  CHECK(contains(refused("job,y\nclerk,a\n", of_model(data)), "the model's column age is not"));
  CHECK(contains(refused("a,y\nclerk,a\n", of_model(data)),
                 "1 column of features found, but the "
                 "model has 2, called job, age"));
  // Names that stand twice, or not at all, are no help; places are.
  const Dataset twice = parse("a,a,y\n1,2,p\n3,4,q\n"), nameless = parse(",b,y\n1,2,p\n3,4,q\n");
  CHECK(values(parse("a,a,y\n5,6,p\n", of_model(twice))) == std::vector<float>{5, 6});
  CHECK(values(parse(",b,y\n5,6,p\n", of_model(nameless))) == std::vector<float>{5, 6});
  // Columns of a model that has no names, such as of arrays, are all but the label.
  TableSchema nameless_all = *parse("1,2,p\n3,4,q\n").schema;
  nameless_all.table_columns = 0;
  for (TableFeature& column : nameless_all.columns) column.name.clear();
  CsvOptions first;
  first.schema = &nameless_all;
  first.label = "0";
  CHECK(values(parse("q,5,6\n", first)) == std::vector<float>{5, 6});
  const Dataset unknown = parse("job,age,y\nsmith,30,a\nbaker,40,b\n", of_model(data));
  CHECK(values(unknown) == std::vector<float>{0, 0, 30, 1, 0, 40});
  CHECK(says(unknown.remarks.warnings,
             "1 of 2 cells of column 'job' holds words that the model does "
             "not know, such as \"smith\""));
  // What is missing is filled as the model learned it, or refused.
  CHECK(contains(refused("job,age,y\n,30,a\n", of_model(data)), "line 2, job: the cell is empty"));
  CHECK(with_holes(parse("job,age,y\n,,a\n", of_model(data, MissingCells::kMean))) ==
        std::vector<float>{-1, -1, -1});
  CHECK(contains(refused("job,age,y\n,30,a\n", of_model(data, MissingCells::kMode)),
                 "no most frequent value of column 'job'; say --missing mean or drop"));
  // The most frequent is offered by those who have learned it alone.
  CHECK(contains(refused("job,age,y\n,30,a\n", of_model(data)), "--missing mean or drop"));
  const Dataset filled = parse("job,age,y\nclerk,30,a\nbaker,40,b\n", with(MissingCells::kMode));
  CHECK(contains(refused("job,age,y\n,30,a\n", of_model(filled)), "--missing mean, mode or drop"));
  CHECK(values(parse("job,age,y\n,30,a\n", of_model(filled, MissingCells::kMode))) ==
        std::vector<float>{1, 0, 30});
}

TEST_CASE("table: a schema survives as JSON") {
  CsvOptions options = with(MissingCells::kMode);
  options.drop = {"b"};
  for (const MissingCells missing : {MissingCells::kMode, MissingCells::kMean}) {
    options.missing = missing;
    const Dataset data =
        parse("job,t,b,y\nclerk,1700000000,1,p\n?,1700000010,2,q\nx,,3,p\n", options);
    TableSchema schema = schema_from_json(to_json(*data.schema), "here");
    schema.class_names = data.class_names;
    CHECK(schema == *data.schema);
  }
  for (const char* text : {"", "[]", "{}", R"({"header":true,"columns":3})"}) {
    CHECK(contains(refusal([&] { schema_from_json(text, "here"); }), "here is no description"));
  }
}

TEST_CASE("table: names and words must be UTF-8, and no control character is shown") {
  CHECK(contains(refused("a,y\n\xE4,p\n\xE4,q\n"), "line 2: a, the cell is not UTF-8"));
  const std::string message = refused("a,y\n1,p\x1B[31m\u009B\n2,p\x1B[31m\u009B\n");
  CHECK(contains(message, "the label \"p?[31m?\""));
  CHECK(contains(refused("a,y\n1,p\n2\x1B[2J,q\n"), "\"2?[2J\" is not a number"));
}

}  // namespace tritgrad::test::test_table_schema
