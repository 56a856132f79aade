#include "tools/cli/convert_cifar.h"

#include <png.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/data/cifar.h"
#include "engine/files/atomic_file.h"
#include "engine/files/read_file.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixels = kCifarImage.pixels();
constexpr std::size_t kRowBytes = kCifarImage.size();
constexpr int kBatches = 5;

// libpng's state of one picture; freed also when a check fails half way.
struct Picture {
  png_image image{};
  Picture() { image.version = PNG_IMAGE_VERSION; }
  ~Picture() { png_image_free(&image); }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;
};

std::vector<std::uint8_t> read_rows(const fs::path& png, std::size_t rows) {
  Picture picture;
  png_image& image = picture.image;
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
    return nlohmann::json::parse(read_file(json.string())).get<std::vector<std::uint8_t>>();
  } catch (const nlohmann::json::exception& error) {
    fail(json.string(), ": is no list of labels: ", error.what());
  }
}

}  // namespace

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
