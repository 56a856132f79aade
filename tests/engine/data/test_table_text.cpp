#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "engine/data/csv.h"
#include "engine/data/table_text.h"
#include "tests/support/compressed.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_table_text {
namespace {

const std::string kTable = "größe,y\n1,rot\n2,\xF0\x9F\x8D\x8F\n";

std::string refused(const std::string& bytes) {
  return refusal([&] { decode_table_text(bytes, "t.csv"); });
}

// The text in UTF-16, by the program of the system's C library.
std::string converted(const std::string& text, const std::string& from, const std::string& to) {
  const TempDir folder;
  const std::string in = folder.write("in", text), out = folder / "out";
  const std::string command = "iconv -f " + from + " -t " + to + " '" + in + "' >'" + out + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  return read_text(out);
}

TEST_CASE("table text: UTF-8 stays as it is") {
  for (const std::string& text : {kTable, std::string(), "\xEF\xBB\xBF" + kTable,
                                  std::string("a,b\r1,2\r"), std::string("\xE9")}) {
    CHECK(decode_table_text(text, "t.csv") == text);
  }
}

TEST_CASE("table text: gzip is unpacked, in several members too") {
  CHECK(decode_table_text(gzip(kTable), "t.csv") == kTable);
  CHECK(decode_table_text(gzip("a,b\n") + gzip("1,2\n"), "t.csv") == "a,b\n1,2\n");
  std::string large;
  for (int i = 0; i < 300000; ++i) large += std::to_string(i) + "," + std::to_string(i % 7) + "\n";
  CHECK(decode_table_text(gzip(large), "t.csv") == large);
  const std::string whole = gzip(kTable);
  for (std::size_t n = 2; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK(contains(refused(whole.substr(0, n)), "t.csv: the gzip stream ends too early"));
  }
  CHECK(contains(refused(whole + "z"), "1 trailing byte after the gzip stream"));
  CHECK(contains(refused(gzip(whole)), "compressed twice; unpack it once"));
}

TEST_CASE("table text: a small file cannot fill the machine") {
  const std::string zeros(64 << 20, '0');
  const std::string packed = gzip(zeros);
  REQUIRE(packed.size() < 100000);
  CHECK(contains(refused(packed), "is not plausible; unpack the file to use it anyway"));
  CHECK(decode_table_text(zeros, "t.csv").size() == zeros.size());
}

TEST_CASE("table text: UTF-16 is converted where its byte order mark says so") {
  const std::string little = converted(kTable, "UTF-8", "UTF-16LE");
  const std::string big = converted(kTable, "UTF-8", "UTF-16BE");
  CHECK(decode_table_text("\xFF\xFE" + little, "t.csv") == kTable);
  CHECK(decode_table_text("\xFE\xFF" + big, "t.csv") == kTable);
  CHECK(decode_table_text(gzip("\xFF\xFE" + little), "t.csv") == kTable);
  CHECK(contains(refused("\xFF\xFE" + little + "a"), "odd number of bytes"));
  CHECK(contains(refused("\xFF\xFE\x01\xD8zz"), "half of a character of UTF-16 is missing"));
  const Dataset data =
      parse_csv(decode_table_text("\xFF\xFE" + little, "t.csv"), "t.csv", CsvOptions());
  CHECK(data.feature_names == std::vector<std::string>{"größe"});
}

TEST_CASE("table text: UTF-16 without a mark is named, and what the message says converts it") {
  for (const char* order : {"UTF-16LE", "UTF-16BE"}) {
    const std::string bytes = converted(kTable, "UTF-8", order);
    CHECK(contains(refused(bytes), "t.csv: the file looks like UTF-16 without a byte order mark"));
    CHECK(contains(refused(bytes), std::string("iconv -f ") + order + " -t UTF-8"));
    CHECK(converted(bytes, order, "UTF-8") == kTable);
  }
  CHECK(refused(std::string("1,2\0,3\n4,5,6\n", 13)).empty());  // not every NUL
}

TEST_CASE("table text: other formats are named") {
  CHECK(contains(refused("PK\x03\x04..."), "t.csv: the file is a zip archive or a spreadsheet"));
  CHECK(contains(refused("BZh91AY"), "compressed by bzip2; unpack it first (bunzip2 -k)"));
  CHECK(contains(refused("\xFD\x37zXZ..."), "compressed by xz; unpack it first (unxz -k)"));
  CHECK(contains(refused("\x28\xB5\x2F\xFD..."), "compressed by zstd"));
  CHECK(contains(refused("PAR1\x15..."), "in Parquet; save the table as CSV"));
  CHECK(contains(refused("\x93NUMPY\x01"), "give features and labels as x.npy,y.npy"));
  CHECK(contains(refused(std::string("\xFF\xFE\0\0a\0\0\0", 8)), "in UTF-32; save it as UTF-8"));
  CHECK(contains(refused(gzip("PK\x03\x04...")), "zip archive"));
  for (const char* names : {"PK,l\n1,x\n2,y\n", "PAR1,PAR2\n1,2\n", "BZhang,y\n1,2\n"}) {
    CHECK(refused(names).empty());
  }
}

TEST_CASE("table text: sources have names") {
  CHECK(table_name("-") == "stdin");
  CHECK(table_name("/dev/stdin") == "stdin");
  CHECK(table_name("/dev/fd/63") == "pipe");
  CHECK(table_name("folder/t.csv") == "t");
  CHECK(table_name("folder/t.csv.gz") == "t");
  CHECK(table_source("-") == "standard input");
}

TEST_CASE("table text: a compressed file is read as the file that it was") {
  const TempDir folder;
  const Dataset plain = read_csv(folder.write("t.csv", kTable));
  const Dataset packed = read_csv(folder.write("t.csv.gz", gzip(kTable)));
  CHECK(packed.name == "t");
  CHECK(packed.class_names == plain.class_names);
  CHECK(packed.labels == plain.labels);
}

}  // namespace
}  // namespace tritgrad::test::test_table_text
