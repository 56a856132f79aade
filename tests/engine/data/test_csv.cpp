#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/csv.h"
#include "tests/support/parsed_csv.h"

namespace tritgrad::test::test_csv {
namespace {

TEST_CASE("csv: header, numbers and text labels") {
  const Dataset data = parse("a,b,kind\n1,2.5,dog\n-3e2,+.5,cat\n");
  CHECK(data.rows == 2);
  CHECK(data.features == 2);
  CHECK(data.feature_names == Names{"a", "b"});
  CHECK(data.class_names == Names{"cat", "dog"});
  CHECK(data.labels == Labels{1, 0});
  CHECK(values(data) == std::vector<float>{1, 2.5f, -300, .5f});
  CHECK(data.class_counts() == std::vector<std::int64_t>{1, 1});
}

TEST_CASE("csv: liberties of the format change nothing") {
  const std::vector<float> expected = {1, 2, 3, 4};
  for (const char* text :
       {"1,2,x\n3,4,y\n", "1,2,x\n3,4,y", "1,2,x\r\n3,4,y\r\n\r\n", "\n1,2,x\n\n3,4,y\n \n",
        "1;2;x\n3;4;y\n", "1\t2\tx\n3\t4\ty\n", "\"1\", 2 ,\"x\"\n 3,\"4\" ,y\n",
        ("\xEF\xBB\xBF"
         "1,2,x\n3,4,y\n"),
        "1,2,x\r\n3,4,y\r"}) {
    CAPTURE(text);
    const Dataset data = parse(text);
    CHECK(values(data) == expected);
    CHECK(data.class_names == Names{"x", "y"});
    CHECK(data.feature_names == Names{"column 0", "column 1"});
  }
}

TEST_CASE("csv: quotes protect separators, quotes and line ends, and lines are still counted") {
  const Dataset data = parse("\"a \"\"b\"\"\",\"two\nlines\",l\n1,2,\"x,y\"\n3,4,z\n");
  CHECK(data.feature_names == Names{"a \"b\"", "two\nlines"});
  CHECK(data.class_names == Names{"x,y", "z"});
  CHECK(contains(refused("a,\"two\nlines\",l\n1,2,x\n1,oops,x\n"), "line 4, two?lines"));
  CHECK(contains(refused("a,b\n1,\"x\n2,y\n"), "line 2: a quoted cell is never closed"));
  CHECK(contains(refused("1,\"x\"y\n"), "text follows a closing quote"));
}

TEST_CASE("csv: numeric labels are sorted as numbers") {
  CHECK(parse("5,10\n5,9\n5,-1\n").class_names == Names{"-1", "9", "10"});
  CHECK(parse("5,1\n5,2\n5,1.0\n5,01\n").labels == Labels{0, 1, 0, 0});
  CHECK(parse("5,0\n5,-0\n5,1\n").classes() == 2);
  CHECK(parse("x,l\n5,10\n5,9\n5,b\n").class_names == Names{"10", "9", "b"});
}

TEST_CASE("csv: the header is recognised, and can be declared") {
  CsvOptions yes, no;
  yes.header = CsvOptions::Header::kYes;
  no.header = CsvOptions::Header::kNo;
  CHECK(parse(",b,l\n0,1,x\n1,2,y\n").rows == 2);  // an unnamed index column
  CHECK(parse("1,2,x\n3,4,y\n5,6,z\n", yes).rows == 2);
  CHECK(parse("1,2,x\n3,4,y\n5,6,z\n", yes).feature_names == Names{"1", "2"});
  CHECK(contains(refused("a,b,l\n1,2,x\n3,4,y\n", no), "line 1, column 0: \"a\" is not a number"));
  // Half a header is no header, but the message says what to do about it.
  CHECK(contains(refused("a,2,l\n1,2,x\n3,4,y\n"), "say that there is a header"));
}

TEST_CASE("csv: a first line that counts the columns is a row, and a note says so") {
  const std::string text = "0,1,2\n5,6,2\n7,8,1\n8,8,1\n";
  const Dataset data = parse(text);
  CHECK(data.rows == 4);
  REQUIRE(data.remarks.notes.size() == 1);
  CHECK(data.remarks.notes[0] ==
        "the first line, 0 to 2, is read as a row, though it may number the columns, as pandas "
        "does; if so, say --header yes");
  CsvOptions options;
  options.header = CsvOptions::Header::kNo;
  CHECK(parse(text, options).remarks.notes.empty());
  options.header = CsvOptions::Header::kYes;
  CHECK(parse(text, options).rows == 3);
  CHECK(parse(text, options).remarks.notes.empty());
  for (const char* other : {"0,1,3\n5,6,3\n7,8,1\n", "1,2,3\n5,6,3\n7,8,1\n", "0,1\n5,1\n7,2\n"}) {
    CAPTURE(other);
    CHECK(parse(other).remarks.notes.empty());
  }
}

TEST_CASE("csv: a first line of numbers whose label is its own may be a header, and is refused") {
  const std::string text = "0,1,l\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n";
  CHECK(contains(refused(text), "t.csv: the label of the first line, \"l\", is that of no other"));
  CHECK(contains(refused("0,1,2\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n"), "first line, \"2\", is that"));
  CsvOptions options;
  options.header = CsvOptions::Header::kYes;
  CHECK(parse(text, options).rows == 4);
  options.header = CsvOptions::Header::kNo;
  CHECK(parse(text, options).rows == 5);
  // Another label that stands alone makes one in the first line nothing special.
  CHECK(parse("1,2,a\n3,4,b\n5,6,c\n7,8,c\n").rows == 4);
}

TEST_CASE("csv: the label column by name and by number") {
  const std::string text = "kind,a,c\nx,1,2\ny,3,4\n";
  for (const char* label : {"kind", "0", "-3"}) {
    CAPTURE(label);
    CsvOptions options;
    options.label = label;
    const Dataset data = parse(text, options);
    CHECK(data.class_names == Names{"x", "y"});
    CHECK(data.feature_names == Names{"a", "c"});
    CHECK(values(data) == std::vector<float>{1, 2, 3, 4});
  }
  CsvOptions options;
  options.label = "knid";
  CHECK(contains(refused(text, options), "did you mean 'kind'?"));
  options.label = "3";
  CHECK(contains(refused(text, options),
                 "no label column \"3\" among the 3 columns; columns are numbers from 0 to 2"));
  options.label = "kind";
  options.header = CsvOptions::Header::kNo;
  CHECK(contains(refused(text, options), "without a header, columns are numbers from 0 to 2"));
  options.header = CsvOptions::Header::kAuto;
  options.label = "a";
  CHECK(contains(refused("a,a,b\n1,2,3\n", options), "two columns are called \"a\""));
}

TEST_CASE("csv: explicit classes") {
  CsvOptions options;
  options.class_names = {"yes", "no"};
  CHECK(parse("1,no\n2,yes\n", options).labels == Labels{1, 0});
  CHECK(contains(refused("1,no\n2,yess\n", options),
                 "t.csv, line 2: label \"yess\" is none of the 2 known classes"));
}

TEST_CASE("csv: refusals name the line and the column") {
  CHECK(contains(refused(""), "the file is empty"));
  CHECK(contains(refused("\n \r\n"), "the file is empty"));
  CHECK(contains(refused("a,b,l\n"), "only a header line"));
  CHECK(contains(refused("a\n1\n"), "only one column"));
  CHECK(contains(refused("a,b,l\n1,2,x\n1,2\n"), "t.csv, line 3: 2 cells found, 3 expected"));
  CHECK(contains(refused("a,b,l\n1,2,x\n1,2,3,y\n"), "line 3: 4 cells found, 3 expected"));
  CHECK(contains(refused("a,b,l\n1,2,x\n1\n"), "line 3: 1 cell found, 3 expected"));
  CHECK(contains(refused("a,b,l\n1,2,x\n1,?,y\n"),
                 "line 3, b: \"?\" stands for a missing cell, numbers expected; fill or remove the "
                 "row, or say what becomes of missing cells: --missing mean, mode or drop"));
  CHECK(contains(refused("a,b,l\n1,,x\n"), "line 2, b: the cell is empty"));
  CHECK(contains(refused("a,b,l\n1,2,x\n1,nan,y\n"), "b: \"nan\" stands for a missing cell"));
  for (const char* cell : {"inf", "-inf", "1e39", "1e999"}) {
    CAPTURE(cell);
    CHECK(contains(refused(std::string("a,b,l\n1,2,x\n1,") + cell + ",y\n"),
                   "line 3, b: \"" + std::string(cell) + "\" is not a finite"));
  }
  CHECK(contains(refused("a,l\n1,x\n2,x\n"), "all 2 rows have the label \"x\""));
  CHECK(contains(refused("a,l\n1,x\n2,\n"), "line 3: the label is empty"));
  CHECK(contains(refused("a,l\n1,0\n2,inf\n"), "line 3: the label is \"inf\""));
}

TEST_CASE("csv: names that are not UTF-8 are refused, with line and column") {
  CHECK(contains(refused("\n\nH\xF6he,b,l\n1,2,x\n1,2,y\n"),
                 "t.csv, line 3: the name of column 0 is not UTF-8; save the file as UTF-8"));
  CHECK(contains(refused("a,b,kla\xDF\n1,2,x\n1,2,y\n"), "line 1: the name of column 2 is not"));
  CHECK(contains(refused("a,l\n1,x\n2,gr\xFCn\n"), "line 3: the label is not UTF-8"));
  const Dataset data = parse("H\u00F6he,\u9AD8\u3055,\U0001F600,l\n1,2,3,x\n1,2,3,gr\u00FCn\n");
  CHECK(data.feature_names == Names{"H\u00F6he", "\u9AD8\u3055", "\U0001F600"});
  CHECK(data.class_names == Names{"gr\u00FCn", "x"});
}

TEST_CASE("csv: numbers at the edges of fp32") {
  CHECK(values(parse("3.4028234e38,x\n1e-42,y\n")) == std::vector<float>{3.4028234e38f, 1e-42f});
  CHECK(values(parse("5,x\n5,y\n")) == std::vector<float>{5, 5});  // a constant column is fine
}

TEST_CASE("csv: more columns or classes than any table has are refused") {
  CHECK(contains(refused(std::string(1 << 19, ',')), "is this a table?"));
  std::string measured;
  for (int i = 0; i <= 65536; ++i) measured += "1," + std::to_string(i) + "\n";
  CsvOptions classify;
  classify.task = TaskKind::kClassify;
  CHECK(contains(refused(measured, classify), "more than 65536 distinct values"));
}

TEST_CASE("csv: a label that stands for a missing cell is none, unless it is said to be a class") {
  for (const std::string marker : {"NA", "None", "null", "?", "nan"}) {
    CAPTURE(marker);
    const std::string text = "a,l\n1,x\n2," + marker + "\n3,y\n";
    CHECK(
        contains(refused(text), "t.csv, line 3: the label \"" + marker +
                                    "\" stands for a missing cell; fill or remove the row, or "
                                    "leave such rows out by --missing drop, or, if it is a class, "
                                    "say --words l"));
    CHECK(contains(refused("1,x\n2," + marker + "\n3,y\n"), "say --words 1"));
    CsvOptions drop, words;
    drop.missing = MissingCells::kDrop;
    words.words = {"l"};
    CHECK(parse(text, drop).class_names == Names{"x", "y"});
    const Dataset declared = parse(text, words);
    CHECK(declared.classes() == 3);
    // A model that has the class knows it in every other file.
    CsvOptions of_model;
    of_model.schema = declared.schema.get();
    CHECK(parse("a,l\n2," + marker + "\n", of_model).labels == Labels{declared.labels[1]});
    const Dataset trained = parse("a,l\n1,x\n3,y\n");
    of_model.schema = trained.schema.get();
    CHECK(contains(refused(text, of_model), "leave such rows out by --missing drop"));
    CHECK_FALSE(contains(refused(text, of_model), "--words"));
  }
  CHECK(parse("a,l\n1,None\n2,x\n3,None\n",
              [] {
                CsvOptions options;
                options.words = {"l"};
                return options;
              }())
            .class_counts() == std::vector<std::int64_t>{2, 1});
}

TEST_CASE("csv: files") {
  const TempDir dir;
  const Dataset data = read_csv(dir.write("pets.csv", "1,x\n2,y\n"));
  CHECK(data.name == "pets");
  CHECK(contains(refusal([&] { read_csv(dir.path().string() + "/none.csv"); }),
                 "there is no such file"));
  CHECK(contains(refusal([&] { read_csv(dir.path().string()); }), "not a regular file"));
}

TEST_CASE("csv: a table cut off at any byte is read or refused, never worse") {
  const std::string text = "a,\"b\",l\r\n1,\"2\",x\r\n3,4,\"y\"\r\n";
  for (std::size_t n = 0; n < text.size(); ++n) {
    CAPTURE(n);
    const std::string message = refused(text.substr(0, n));
    CHECK((message.empty() || contains(message, "t.csv")));
  }
}

}  // namespace
}  // namespace tritgrad::test::test_csv
