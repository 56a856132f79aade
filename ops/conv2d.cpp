#include "ops/conv2d.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "engine/memory/parallel.h"
#include "ops/columns.h"
#include "ops/images.h"
#include "ops/products/convolution_gradient.h"
#include "ops/products/float_convolution.h"
#include "ops/products/float_products.h"
#include "ops/products/integer_convolution.h"
#include "ops/products/integer_linear.h"
#include "ops/products/integer_weight_gradient.h"

namespace tritgrad {
namespace {

// Numbers in the patches of one part of the images: enough to share among threads, few enough to
// stay near them.
constexpr std::int64_t kPatchNumbers = 1 << 20;

struct Convolution {
  LinearOperands w;
  Patches patches;
  std::int64_t images;

  // Calls body(first, count) for parts of the images, one after the other.
  template <typename Body>
  void for_each_part(const Body& body) const {
    const std::int64_t rows = std::min(kPatchNumbers / patches.cols(), kMostIntegerRows);
    const std::int64_t part = std::max<std::int64_t>(1, rows / patches.count());
    for (std::int64_t first = 0; first < images; first += part) {
      body(first, std::min(part, images - first));
    }
  }
  // Calls body(image, line) for `height` lines of each of `count` images: those of patches, or of
  // pixels.
  template <typename Body>
  void for_each_line(std::int64_t count, std::int64_t height, const Body& body) const {
    const std::int64_t lines =
        std::max<std::int64_t>(1, kElementsPerUnit / (patches.width() * patches.cols()));
    parallel_ranges(count * height, lines, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) body(i / height, i % height);
    });
  }
  // Rows of y or its gradient that belong to `count` images from `first` on.
  Tensor rows(const Tensor& all, std::int64_t first, std::int64_t count) const {
    return {all.row(first * patches.count()), {count * patches.count(), all.cols()}};
  }
  // Those of x.
  Tensor pixel_rows(const Tensor& all, std::int64_t first, std::int64_t count) const {
    const std::int64_t pixels = patches.image.pixels();
    return {all.row(first * pixels), {count * pixels, all.cols()}};
  }
};

// Returns the patches of `count` images in x, in scratch.
Tensor unfold_images(Tape& tape, const Convolution& c, const Tensor& x, std::int64_t first,
                     std::int64_t count) {
  const std::int64_t of_image = c.patches.count();
  const Tensor patches = tape.scratch({count * of_image, c.patches.cols()});
  c.for_each_line(count, c.patches.height(), [&](std::int64_t image, std::int64_t line) {
    unfold_line(c.patches, line, x.row((first + image) * c.patches.image.pixels()),
                patches.row(image * of_image), patches.cols());
  });
  return patches;
}

// Does so for images that have been rounded once, the numbers of each to a row of x.
QuantizedRows unfold_images(Tape& tape, const Convolution& c, const QuantizedRows& x,
                            std::int64_t first, std::int64_t count) {
  const std::int64_t of_image = c.patches.count();
  const QuantizedRows patches = allocate_rows(tape, count * of_image, c.patches.cols(), false);
  c.for_each_line(count, c.patches.height(), [&](std::int64_t image, std::int64_t line) {
    unfold_line(c.patches, line, x.codes + (first + image) * x.ld,
                patches.codes + image * of_image * patches.ld, patches.ld);
    std::fill_n(patches.scales + image * of_image + line * c.patches.width(), c.patches.width(),
                x.scales[first + image]);
  });
  return patches;
}

// Adds up whatever lies over a pixel in dpatches, if anything does: dx becomes that, or it is added
// to dx.
void fold(const Convolution& c, const Tensor& dpatches, const GradientTarget& dx) {
  const ImageShape& shape = c.patches.image;
  const std::int64_t line_numbers = shape.width * shape.channels;
  const std::int64_t images = dpatches.rows() / c.patches.count();
  c.for_each_line(images, shape.height, [&](std::int64_t image, std::int64_t line) {
    float* out = dx.grad.row(image * shape.pixels());
    if (dx.fresh) std::fill_n(out + line * line_numbers, line_numbers, 0.0f);
    fold_line(c.patches, line, dpatches.row(image * c.patches.count()), out);
  });
}

// Makes y, through patches. `images` are x itself, or, for products in integers, rows that it has
// been rounded to.
template <typename Images>
void forward_by_patches(Tape& tape, const Convolution& c, const Images& images, const Tensor& y) {
  c.for_each_part([&](std::int64_t first, std::int64_t count) {
    const auto patches = unfold_images(tape, c, images, first, count);
    const Tensor y_part = c.rows(y, first, count);
    if constexpr (std::is_same_v<Images, QuantizedRows>) {
      integer_forward(tape, c.w, patches, y_part);
    } else {
      float_forward(tape, c.w, patches, y_part);
    }
    tape.scratch_reset();
  });
}

// Adds dW, where it is wanted, and makes dx, where that has memory. `y` is read in integers.
template <typename Images>
void backward_by_patches(Tape& tape, const Convolution& c, const Images& images, const Tensor& y,
                         const Tensor& dy, bool wants_dw, const GradientTarget& dx) {
  constexpr bool kIntegers = std::is_same_v<Images, QuantizedRows>;
  c.for_each_part([&](std::int64_t first, std::int64_t count) {
    const Tensor dy_part = c.rows(dy, first, count);
    if (wants_dw) {
      const auto patches = unfold_images(tape, c, images, first, count);
      if constexpr (kIntegers) {
        integer_backward_weight(tape, c.w, patches, c.rows(y, first, count), dy_part, Share::kPart);
      } else {
        float_backward_weight(tape, c.w, patches, dy_part);
      }
      tape.scratch_reset();
    }
    if (!dx.grad) return;
    const Tensor dpatches = tape.scratch({dy_part.rows(), c.patches.cols()});
    if constexpr (kIntegers) {
      integer_backward_input(tape, c.w, {dpatches, true}, dy_part);
    } else {
      float_backward_input(tape, c.w, {dpatches, true}, dy_part);
    }
    fold(c, dpatches, {c.pixel_rows(dx.grad, first, count), dx.fresh});
    tape.scratch_reset();
  });
}

GradientTarget target_where_wanted(Tape& tape, const Var& x) {
  return x.wants_grad() ? tape.target(x) : GradientTarget{};
}

// In floats: each product where images lie, or, where that is not to be had, through patches.
Var convolve(Tape& tape, const Var& x, const Convolution& c) {
  const Var y = tape.variable({c.images * c.patches.count(), c.w.outputs});
  const FloatConvolution direct{c.w, c.patches, c.images};
  if (!direct.forward(tape, x.value, y.value)) forward_by_patches(tape, c, x.value, y.value);
  tape.record(y, {x}, {c.w.weight, c.w.scale}, [&tape, c, direct, x, y] {
    const Tensor dy = tape.grad_of(y);
    GradientTarget dx = target_where_wanted(tape, x);
    const bool wants_dw = !direct.backward_weight(tape, x.value, dy);
    if (dx.grad && direct.backward_input(tape, dx, dy)) dx.grad = {};
    if (wants_dw || dx.grad) backward_by_patches(tape, c, x.value, y.value, dy, wants_dw, dx);
  });
  return y;
}

// In integers, through patches of images that x has been rounded to.
Var convolve(Tape& tape, const Var& x, const Convolution& c, const QuantizedRows& images) {
  const Var y = tape.variable({c.images * c.patches.count(), c.w.outputs});
  forward_by_patches(tape, c, images, y.value);
  tape.record(y, {y}, {c.w.weight, c.w.scale}, [&tape, c, x, y, images] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = target_where_wanted(tape, x);
    backward_by_patches(tape, c, images, y.value, dy, true, dx);
  });
  return y;
}

// ---- in integers, without patches ----

// y of images that have been rounded, and its backward step.
struct ImageConvolution {
  LinearOperands w;
  std::int64_t size;
  BorderedImages x;

  void forward(Tape& tape, const Tensor& y) const {
    const float* scales = decode_scales(tape, w);
    const WindowPanels panels = pack_windows(tape, w, size);
    convolve_images(tape, x, panels, [&](const WindowSums& s) {
      std::array<float, kStretch> factors;
      std::fill_n(factors.data(), s.pixels, x.scales[s.image]);
      kernels().products.rescale_sums_by(y.row(row_of(s)) + s.first, y.cols(), s.sums,
                                         kPanelColumns, s.corrections, factors.data(),
                                         scales + s.first, s.pixels, s.n);
    });
    tape.scratch_reset();
  }

  void backward_input(Tape& tape, const GradientTarget& dx, const Tensor& dy) const {
    const BorderedImages z = allocate_images(tape, {x.image.height, x.image.width, w.outputs},
                                             x.images, x.border, false);
    float* line_scales = tape.allocate_scratch<float>(x.image.width * w.outputs);
    w.scale->storage().decode_rows(0, w.outputs, line_scales);
    for (std::int64_t i = 1; i < x.image.width; ++i) {
      std::copy_n(line_scales, w.outputs, line_scales + i * w.outputs);
    }
    quantize_images(z, dy, line_scales);
    const WindowPanels panels = pack_mirrored_windows(tape, w, size);
    convolve_images(tape, z, panels,
                    [&](const WindowSums& s) { add_to(dx, s, z.scales[s.image]); });
    tape.scratch_reset();
  }

  void backward_weight(Tape& tape, const Tensor& y, const Tensor& dy) const {
    const std::int64_t width = x.image.width;
    const DepthCodes codes =
        allocate_depth_codes(tape, {x.image.height, width, w.outputs}, x.images);
    float* largest = tape.allocate_scratch<float>(x.images * w.outputs);
    float* line_factors = tape.allocate_scratch<float>(x.images * width);
    double* dy_y = tape.allocate_scratch<double>(x.images * w.outputs);
    std::fill_n(largest, x.images * w.outputs, 0.0f);
    std::fill_n(dy_y, x.images * w.outputs, 0.0);
    const auto for_each_image = [&](const auto& body) {
      parallel_ranges(x.images, kElementsPerUnit / (x.image.pixels() * w.outputs),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i) body(i, i * x.image.pixels());
                      });
    };
    for_each_image([&](std::int64_t image, std::int64_t first) {
      float* factors = line_factors + image * width;
      std::fill_n(factors, width, x.scales[image]);
      for (std::int64_t row = first; row < first + x.image.pixels(); row += width) {
        kernels().products.raise_max_abs(largest + image * w.outputs, dy.row(row), w.outputs,
                                         factors, width, w.outputs);
        kernels().reductions.add_products(dy_y + image * w.outputs, dy.row(row), y.row(row),
                                          w.outputs, width, w.outputs);
      }
    });
    for (std::int64_t i = w.outputs; i < x.images * w.outputs; ++i) dy_y[i % w.outputs] += dy_y[i];
    codes.set_scales(largest);
    for_each_image([&](std::int64_t image, std::int64_t first) {
      codes.quantize_lines(image, 0, x.image.height, dy.row(first), x.scales[image]);
    });
    convolution_backward_weight(tape, w, size, x, codes, dy_y);
    tape.scratch_reset();
  }

 private:
  std::int64_t row_of(const WindowSums& s) const {
    return (s.image * x.image.height + s.line) * x.image.width + s.column;
  }

  // Writes or adds what one stretch of the convolution of dy is to dx.
  void add_to(const GradientTarget& dx, const WindowSums& s, float scale) const {
    std::array<float, kStretch> factors;
    std::fill_n(factors.data(), s.pixels, scale);
    float* out = dx.grad.row(row_of(s)) + s.first;
    const std::int64_t ld = dx.grad.cols();
    if (dx.fresh) {
      return kernels().products.rescale_sums(out, ld, s.sums, kPanelColumns, s.corrections,
                                             factors.data(), s.pixels, s.n);
    }
    std::array<float, kStretch * kPanelColumns> share;
    kernels().products.rescale_sums(share.data(), kPanelColumns, s.sums, kPanelColumns,
                                    s.corrections, factors.data(), s.pixels, s.n);
    for (std::int64_t i = 0; i < s.pixels; ++i) {
      kernels().reductions.add_scaled(out + i * ld, share.data() + i * kPanelColumns, 1.0f, s.n);
    }
  }
};

Var convolve_images(Tape& tape, const Var& x, const ImageConvolution& c) {
  const Var y = tape.variable({x.value.rows(), c.w.outputs});
  c.forward(tape, y.value);
  tape.record(y, {y}, {c.w.weight, c.w.scale}, [&tape, c, x, y] {
    const Tensor dy = tape.grad_of(y);
    if (x.wants_grad()) c.backward_input(tape, tape.target(x), dy);
    c.backward_weight(tape, y.value, dy);
  });
  return y;
}

}  // namespace

Var conv2d(Tape& tape, const Var& x, const ImageShape& image, Window window, Parameter& weight,
           Parameter* scale, Compute compute) {
  const Patches patches{image, window.size, window.stride};
  const LinearOperands w = linear_operands("conv2d", weight, scale);
  check(window.size > 0 && window.size % 2 == 1, "conv2d: windows of ", window.size, " x ",
        window.size, " pixels; the size must be odd");
  check(window.stride > 0, "conv2d: a stride of ", window.stride,
        " pixels; it must be a positive number");
  const std::int64_t image_count = count_images("conv2d", x, image);
  check(w.inputs == patches.cols(), "conv2d: windows of ", window.size, " x ", window.size,
        " pixels of ", image.channels, " channels have ", patches.cols(), " numbers but '",
        weight.name(), "' has shape ", weight.shape().str(), "; the last axis must have as many");
  const Convolution c{w, patches, image_count};
  if (!in_integers(*w.weight, w.scale, compute)) return convolve(tape, x, c);
  check_integers("conv2d", w);
  check(image.pixels() <= kMostIntegerRows, "conv2d: images have ", image.height, " x ",
        image.width, " pixels; in int8 at most ", kMostIntegerRows, "; use --compute fp32");
  if (w.groups == 1 && window.stride == 1) {
    const BorderedImages images =
        allocate_images(tape, image, c.images, window.size / 2, tape.recording());
    quantize_images(images, x.value, nullptr);
    return convolve_images(tape, x, {w, window.size, images});
  }
  const QuantizedRows images = allocate_rows(tape, c.images, image.size(), true);
  quantize_rows(images, Tensor{x.value.data, {c.images, image.size()}}, nullptr);
  return convolve(tape, x, c, images);
}

}  // namespace tritgrad
