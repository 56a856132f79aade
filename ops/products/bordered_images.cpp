#include "ops/products/bordered_images.h"

#include <algorithm>
#include <numeric>

#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "ops/products/quantized.h"

namespace tritgrad {
namespace {

// Costs of a number, in products of bytes.
constexpr std::int64_t kQuantizingImages = 32, kSummingWindows = 16;

void clear_border(const BorderedImages& x, std::int64_t index) {
  const std::int64_t side = x.border * x.image.channels;
  const std::int64_t height = x.image.height;
  std::fill_n(x.window(index, 0, 0), x.border * x.line_bytes(), std::int8_t{0});
  for (std::int64_t line = 0; line < height; ++line) {
    std::int8_t* own = x.line(index, line);
    std::fill(own - side, own, std::int8_t{0});
    std::fill_n(own + x.image.width * x.image.channels, side, std::int8_t{0});
  }
  std::fill_n(x.window(index, x.border + height, 0), x.border * x.line_bytes(), std::int8_t{0});
}

// Sums the windows of one image: pixels first, then along each line, then down. `pixels` holds a
// line with its border.
void sum_windows_of(const BorderedImages& x, std::int64_t index, std::int32_t* sums,
                    std::int32_t* pixels) {
  const std::int64_t size = 2 * x.border + 1, width = x.image.width;
  std::fill_n(sums, x.image.pixels(), 0);
  for (std::int64_t from = x.border; from < x.border + x.image.height; ++from) {
    kernels().products.sum_int8(pixels, x.window(index, from, 0), x.image.channels,
                                width + 2 * x.border, x.image.channels);
    for (std::int64_t i = 0; i < width; ++i) {
      pixels[i] = std::accumulate(pixels + i, pixels + i + size, 0);
    }
    const std::int64_t first = std::max<std::int64_t>(0, from - size + 1);
    for (std::int64_t line = first; line <= std::min(from, x.image.height - 1); ++line) {
      for (std::int64_t i = 0; i < width; ++i) sums[line * width + i] += pixels[i];
    }
  }
}

}  // namespace

BorderedImages allocate_images(Tape& tape, const ImageShape& image, std::int64_t images,
                               std::int64_t border, bool keep) {
  BorderedImages x{image, images, border, nullptr, nullptr};
  const std::int64_t bytes = images * x.image_bytes() + kBytesBehindImages;
  x.codes = keep ? tape.allocate<std::int8_t>(bytes) : tape.allocate_scratch<std::int8_t>(bytes);
  x.scales = keep ? tape.allocate<float>(images) : tape.allocate_scratch<float>(images);
  std::fill_n(x.codes + images * x.image_bytes(), kBytesBehindImages, std::int8_t{0});
  parallel_pieces(images, 1, x.image_bytes(),
                  [&](std::int64_t index, std::int64_t) { clear_border(x, index); });
  return x;
}

void quantize_images(const BorderedImages& q, const Tensor& x, const float* line_factors) {
  const std::int64_t line_numbers = q.image.width * q.image.channels;
  const auto quantize_image = [&](std::int64_t index) {
    const float* numbers = x.row(index * q.image.pixels());
    float largest = 0.0f;
    for (std::int64_t line = 0; line < q.image.height; ++line) {
      const float* from = numbers + line * line_numbers;
      largest = larger_magnitude(
          largest, line_factors == nullptr
                       ? kernels().reductions.max_abs(from, line_numbers)
                       : kernels().products.max_abs_product(from, line_factors, line_numbers));
    }
    q.scales[index] = scale_of(largest);
    for (std::int64_t line = 0; line < q.image.height; ++line) {
      kernels().products.quantize_int8(q.line(index, line), numbers + line * line_numbers,
                                       line_factors, inverse_scale(largest), line_numbers);
    }
  };
  parallel_pieces(q.images, 1, kQuantizingImages * q.image.size(),
                  [&](std::int64_t index, std::int64_t) { quantize_image(index); });
}

std::int32_t* sum_windows(Tape& tape, const BorderedImages& x) {
  auto* sums = tape.allocate_scratch<std::int32_t>(x.rows());
  const std::int64_t line_pixels = x.image.width + 2 * x.border;
  auto* pixels = tape.allocate_scratch<std::int32_t>(x.images * line_pixels);
  parallel_pieces(
      x.images, 1, kSummingWindows * x.image.size(), [&](std::int64_t index, std::int64_t) {
        sum_windows_of(x, index, sums + index * x.image.pixels(), pixels + index * line_pixels);
      });
  return sums;
}

}  // namespace tritgrad
