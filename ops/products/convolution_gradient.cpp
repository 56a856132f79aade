#include "ops/products/convolution_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/kernels/codecs.h"
#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "ops/products/trit_panels.h"

namespace tritgrad {
namespace {

// Bytes of packed codes that are multiplied before the next ones: they stay in the second cache.
constexpr std::int64_t kPackedBytes = 1 << 18;
constexpr std::int64_t kLeastRows = 16;  // of dW that are worth packing x for

// What the windows of `count` images from `first` on have in one panel of their lines.
struct PackedImages {
  std::int64_t first, count;
  std::int64_t panel;
  std::uint8_t* bytes;  // PixelProduct::panel_bytes() of each image
};

// dy^T x of a part of the images, and how it is made.
struct PixelProduct {
  const LinearOperands& w;
  std::int64_t size;
  const BorderedImages& x;
  const DepthCodes& dy;
  int offset;                 // of x's bytes in panels: 128 or 0
  std::int32_t* sums;         // [panels][lines of the window][outputs][kPanelColumns]
  std::int32_t* corrections;  // [lines of the window][outputs]

  std::int64_t run() const { return size * x.image.channels; }  // of a line of the window
  std::int64_t panels() const { return (run() + kPanelColumns - 1) / kPanelColumns; }
  std::int64_t groups_of_line() const { return dy.line_bytes() / 4; }
  std::int64_t panel_bytes() const {  // of one image
    return x.image.height * groups_of_line() * 4 * kPanelColumns;
  }
  std::int32_t* at(std::int64_t panel, std::int64_t line, std::int64_t output) const {
    return sums + ((panel * size + line) * w.outputs + output) * kPanelColumns;
  }
  // Lines of dy whose windows have their line i inside the image: [first, last).
  std::int64_t first_line(std::int64_t i) const { return std::max<std::int64_t>(0, x.border - i); }
  std::int64_t last_line(std::int64_t i) const {
    return std::min(x.image.height, x.image.height + x.border - i);
  }

  std::int64_t columns_of(std::int64_t panel) const {
    return std::min(kPanelColumns, run() - panel * kPanelColumns);
  }

  void pack(const PackedImages& packed) const {
    for (std::int64_t i = 0; i < packed.count; ++i) {
      for (std::int64_t line = 0; line < x.image.height; ++line) {
        kernels().products.pack_down(
            packed.bytes + i * panel_bytes() + line * groups_of_line() * 4 * kPanelColumns,
            x.window(packed.first + i, line + x.border, 0) + packed.panel * kPanelColumns,
            x.image.channels, x.image.width, columns_of(packed.panel), offset);
      }
    }
  }

  void clear(std::int64_t panel, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = 0; i < size; ++i) {
      std::fill_n(at(panel, i, begin), (end - begin) * kPanelColumns, 0);
    }
  }

  // Adds the products of packed images with outputs [begin, end) of dy.
  void add(const PackedImages& packed, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t first = first_line(i), lines = last_line(i) - first;
      if (lines <= 0) continue;
      const PanelDepth depth(lines * groups_of_line(), packed.count, dy.image.channels * dy.ld,
                             panel_bytes());
      kernels().products.multiply_panel(
          at(packed.panel, i, begin), kPanelColumns, dy.at(packed.first, begin, first), dy.ld,
          end - begin, columns_of(packed.panel),
          packed.bytes + (first + i - x.border) * groups_of_line() * 4 * kPanelColumns, depth,
          offset == 0 ? PanelRange::kSevenBits : PanelRange::kBytes, /*add=*/true, {});
    }
  }

  // Makes all sums of images [first_image, last_image), of whole panels as far as threads allow.
  void multiply(Tape& tape, std::int64_t first_image, std::int64_t last_image) const {
    const std::int64_t together = std::max<std::int64_t>(1, kPackedBytes / panel_bytes());
    const std::int64_t shares = thread_count();
    auto* bytes = tape.allocate_scratch<std::uint8_t>(shares * together * panel_bytes());
    parallel_for(shares, [&](std::int64_t share) {
      const std::int64_t rows = panels() * w.outputs;
      const std::int64_t last = rows * (share + 1) / shares;
      for (std::int64_t row = rows * share / shares; row < last;) {
        const std::int64_t panel = row / w.outputs, begin = row % w.outputs;
        const std::int64_t end = std::min(w.outputs, begin + last - row);
        clear(panel, begin, end);
        for (std::int64_t image = first_image; image < last_image; image += together) {
          const PackedImages packed{image, std::min(together, last_image - image), panel,
                                    bytes + share * together * panel_bytes()};
          pack(packed);
          add(packed, begin, end);
        }
        row += end - begin;
      }
    });
  }

  // Sums dy over the lines that each line of the window has met: what the offset has added.
  void correct(std::int64_t first_image, std::int64_t last_image) const {
    std::fill_n(corrections, size * w.outputs, 0);
    if (offset == 0) return;
    parallel_pieces(w.outputs, kLeastRows, 8 * x.rows(), [&](std::int64_t begin, std::int64_t end) {
      std::array<std::int32_t, kLeastRows> image_sums;
      for (std::int64_t image = first_image; image < last_image; ++image) {
        for (std::int64_t i = 0; i < size; ++i) {
          const std::int64_t first = first_line(i), lines = last_line(i) - first;
          if (lines <= 0) continue;
          kernels().products.sum_int8(image_sums.data(), dy.at(image, begin, first), dy.ld,
                                      end - begin, lines * dy.line_bytes());
          for (std::int64_t o = begin; o < end; ++o) {
            corrections[i * w.outputs + o] +=
                offset * image_sums[static_cast<std::size_t>(o - begin)];
          }
        }
      }
    });
  }

  // Reads a row of dW, each number times the factor.
  void read_row(std::int64_t output, float factor, float* row) const {
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t panel = 0; panel < panels(); ++panel) {
        const std::int64_t first = panel * kPanelColumns;
        kernels().products.rescale_sums(row + i * run() + first, w.inputs, at(panel, i, output),
                                        kPanelColumns, corrections + i * w.outputs + output,
                                        &factor, 1, std::min(kPanelColumns, run() - first));
      }
    }
  }
};

// Returns the sum of trit times dW along a row.
float sum_with_trits(const LinearOperands& w, std::int64_t output, const float* row) {
  double sum = 0.0;
  for_each_block(output, output + 1, w.inputs, [&](const Block& block) {
    std::array<std::int8_t, kBlock> trits;
    decode_trits(w.weight->storage(), block, trits.data());
    for (std::int64_t i = 0; i < block.n; ++i) {
      sum += double{row[block.col + i]} * trits[static_cast<std::size_t>(i)];
    }
  });
  return static_cast<float>(sum);
}

// Adds the product of a part of the images to the gradients. d E of a row whose E is 0 comes from
// dW, as no y tells it.
void add_product(Tape& tape, const PixelProduct& product, const float* scales,
                 std::int64_t pixels) {
  const LinearOperands& w = product.w;
  const float most = 127.0f * 127.0f * static_cast<float>(pixels);
  float bound = 0.0f;
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    bound = larger_magnitude(bound, most * product.dy.scales[o] * std::abs(scales[o]));
  }
  const Tensor dweight = tape.gradient(
      *w.weight, std::isfinite(bound) ? bound : std::numeric_limits<float>::infinity());
  const Tensor dscale = tape.gradient(*w.scale);
  float* rows = tape.allocate_scratch<float>(w.outputs * w.inputs);
  parallel_pieces(w.outputs, 1, 8 * w.inputs, [&](std::int64_t o, std::int64_t) {
    float* row = rows + o * w.inputs;
    product.read_row(o, product.dy.scales[o], row);
    if (scales[o] == 0.0f) dscale.data[o] += sum_with_trits(w, o, row);
    kernels().reductions.add_scaled(dweight.row(o), row, scales[o], w.inputs);
  });
}

// The most pixels of which sums fit 32 bits.
std::int64_t most_pixels(int offset) {
  return std::numeric_limits<std::int32_t>::max() / ((offset + 127) * 127);
}

int offset_of(const BorderedImages& x) {
  if (x.rectified) return 0;
  const double negative = parallel_sum(x.images, 1, [&](std::int64_t begin, std::int64_t end) {
    return kernels().products.any_negative(x.window(begin, 0, 0), (end - begin) * x.image_bytes())
               ? 1.0
               : 0.0;
  });
  return negative > 0.0 ? 128 : 0;
}

}  // namespace

DepthCodes allocate_depth_codes(Tape& tape, const ImageShape& image, std::int64_t images) {
  DepthCodes codes{image, images, 0, nullptr, nullptr, nullptr};
  codes.ld = codes.line_bytes() * image.height;
  if (codes.ld % 1024 == 0) codes.ld += kCacheLine;
  codes.codes = tape.allocate_scratch<std::int8_t>(images * image.channels * codes.ld);
  codes.scales = tape.allocate_scratch<float>(image.channels);
  codes.inverse = tape.allocate_scratch<float>(image.channels);
  return codes;
}

void DepthCodes::set_scales(const float* largest) const {
  for (std::int64_t o = 0; o < image.channels; ++o) {
    float most = 0.0f;
    for (std::int64_t i = 0; i < images; ++i) {
      most = larger_magnitude(most, largest[i * image.channels + o]);
    }
    scales[o] = scale_of(most);
    inverse[o] = inverse_scale(most);
  }
}

// The kernel transposes up to 64 pixels at once, and the rest of a line costs it as much as they
// do: lines without a gap between them are given to it as one.
void DepthCodes::quantize_lines(std::int64_t index, std::int64_t first, std::int64_t lines,
                                const float* dy, float scale) const {
  constexpr std::int64_t kPixels = 256;
  std::array<float, kPixels> factors;
  factors.fill(scale);
  const bool joined = image.width == line_bytes();
  const std::int64_t pixels = joined ? lines * image.width : image.width;
  for (std::int64_t line = 0; line < (joined ? 1 : lines); ++line) {
    for (std::int64_t i = 0; i < pixels; i += kPixels) {
      kernels().products.quantize_columns(
          at(index, 0, first + line) + i, ld, dy + (line * image.width + i) * image.channels,
          image.channels, factors.data(), inverse, std::min(kPixels, pixels - i), image.channels);
    }
  }
}

void convolution_backward_weight(Tape& tape, const LinearOperands& w, std::int64_t size,
                                 const BorderedImages& x, const DepthCodes& dy,
                                 const double* dy_y) {
  const float* scales = decode_scales(tape, w);
  const Tensor dscale = tape.gradient(*w.scale);
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    if (scales[o] != 0.0f) dscale.data[o] += static_cast<float>(dy_y[o] / double{scales[o]});
  }
  PixelProduct product{w, size, x, dy, offset_of(x), nullptr, nullptr};
  product.sums =
      tape.allocate_scratch<std::int32_t>(product.panels() * size * w.outputs * kPanelColumns);
  product.corrections = tape.allocate_scratch<std::int32_t>(size * w.outputs);
  const std::int64_t part =
      std::max<std::int64_t>(1, most_pixels(product.offset) / x.image.pixels());
  for (std::int64_t first = 0; first < x.images; first += part) {
    const std::int64_t last = std::min(x.images, first + part);
    product.multiply(tape, first, last);
    product.correct(first, last);
    add_product(tape, product, scales, (last - first) * x.image.pixels());
  }
}

}  // namespace tritgrad
