#include "ops/conv_norm.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "ops/conv_norm_bands.h"
#include "ops/conv_norm_gradient.h"
#include "ops/products/fine_convolution.h"
#include "ops/products/integer_linear.h"

namespace tritgrad {
namespace {

// ---- forward (ops/conv_norm_gradient.cpp goes back) ----

// Convolves all images; adds up their levels in sums and squares [images x channels].
void convolve(Tape& tape, const ConvNorm& c, std::int64_t* sums, std::int64_t* squares) {
  const int shift = shift_for(c.w.inputs);
  const std::int64_t n = c.channels();
  std::fill_n(sums, c.z.images * n, 0);
  std::fill_n(squares, c.z.images * n, 0);
  for (std::int64_t i = 0; i < c.z.images; ++i) {
    c.z.factors[i] = c.x.images.scales[i] * static_cast<float>(1 << shift);
    start_range(c.z, i);
  }
  const WindowPanels panels = pack_windows(tape, c.w, c.size);
  convolve_images(tape, c.x.images, panels, [&](const WindowSums& s) {
    narrow_stretch(c.z, s, shift);
    const std::int64_t at = s.image * n + s.first;
    kernels().layers.add_level_sums(
        sums + at, squares + at, c.z.line(s.image, s.line, s.column) + s.first, n, s.pixels, s.n);
  });
}

// Sets the statistics from the sums, which are exact; images are joined in order, in double.
void measure(Tape& tape, const ConvNorm& c, const std::int64_t* sums, const std::int64_t* squares) {
  const float* scales = decode_scales(tape, c.w);
  const auto count = static_cast<double>(c.z.images * c.image().pixels());
  float* means = tape.allocate_scratch<float>(c.channels());
  for (std::int64_t j = 0; j < c.channels(); ++j) {
    double sum = 0.0, square = 0.0;
    for (std::int64_t i = 0; i < c.z.images; ++i) {
      const auto factor = static_cast<double>(c.z.factors[i]);
      const std::int64_t at = i * c.channels() + j;
      sum += factor * static_cast<double>(sums[at]);
      square += factor * factor * static_cast<double>(squares[at]);
    }
    const double mean = sum / count, scale = static_cast<double>(scales[j]);
    const double own = square / count - mean * mean;
    const double variance = scale * scale * (own < 0.0 ? 0.0 : own);  // NaN stays
    const double eps = static_cast<double>(kBatchNormEps);
    const double inverse_std = 1.0 / std::sqrt(variance + eps);
    c.batch.mean[j] = static_cast<float>(mean);
    c.batch.inverse_std[j] = static_cast<float>(scale * inverse_std);
    c.batch.unbiased[j] = static_cast<float>(variance * count / (count - 1.0));
    c.factor[j] = c.batch.gain[j] * static_cast<float>(inverse_std);
    c.eps_share[j] = static_cast<float>(eps / (variance + eps));
    c.falls[j] =
        c.batch.inverse_std[j] * c.batch.gain[j] < 0.0f ? std::int16_t{-1} : std::int16_t{0};
    means[j] = static_cast<float>(scale * mean);
  }
  if (!tape.recording()) return;
  c.p.running_mean->move_average(means);
  c.p.running_var->move_average(c.batch.unbiased);
}

// Finds the range of those levels of an image that the output depends on.
void find_used_range(const ConvNorm& c, std::int64_t image, std::int16_t* least,
                     std::int16_t* most) {
  const std::int64_t n = c.channels(), at = image * n;
  const bool all = c.dropped_lines() + c.dropped_columns() == 0;
  std::copy_n(all ? c.z.least + at : c.z.most + at, n, least);
  std::copy_n(all ? c.z.most + at : c.z.least + at, n, most);
  for (std::int64_t line = 0; !all && line < c.image().height - c.dropped_lines(); ++line) {
    kernels().layers.widen_level_range(least, most, c.z.line(image, line), n,
                                       c.image().width - c.dropped_columns(), n);
  }
}

// Returns the largest number that the norm makes of an image. It goes up or down with z.
float largest_of(const ConvNorm& c, std::int64_t image, const BandScratch& s) {
  const std::int64_t n = c.channels();
  std::int16_t* least = s.pooled;
  std::int16_t* most = s.winners;
  find_used_range(c, image, least, most);
  float largest = 0.0f;
  for (const std::int16_t* levels : {least, most}) {
    kernels().layers.levels_to_float(s.z, levels, c.z.factors[image], n);
    kernels().layers.batch_norm(s.u, n, s.z, n, c.columns(), 1, n);
    largest = larger_magnitude(largest, kernels().reductions.max_abs(s.u, n));
  }
  return largest;
}

void normalize_image(const ConvNorm& c, const BorderedImages& y, std::int64_t image,
                     const BandScratch& s) {
  const float largest = largest_of(c, image, s);
  const std::int64_t line_numbers = c.out().width * c.channels();
  y.scales[image] = scale_of(largest);
  c.for_each_band([&](std::int64_t first, std::int64_t lines) {
    normalize_band(c, image, first, lines, s);
    for (std::int64_t i = 0; i < lines; ++i) {
      kernels().products.quantize_int8(y.line(image, first + i), s.u + i * line_numbers, nullptr,
                                       inverse_scale(largest), line_numbers);
    }
  });
}

void normalize_image(const ConvNorm& c, const Tensor& y, std::int64_t image, const BandScratch& s) {
  c.for_each_band([&](std::int64_t first, std::int64_t lines) {
    normalize_band(c, image, first, lines, s);
    std::copy_n(s.u, lines * c.out().width * c.channels(),
                y.row((image * c.out().height + first) * c.out().width));
  });
}

ImageLevels allocate_levels(Tape& tape, const ImageShape& image, std::int64_t images) {
  const std::int64_t n = images * image.channels;
  return {image,
          images,
          nullptr,
          tape.allocate<float>(images),
          tape.allocate<std::int16_t>(n),
          tape.allocate<std::int16_t>(n)};
}

ConvNorm allocate_conv_norm(Tape& tape, const ImageVar& x, Window window, const LinearOperands& w,
                            const BatchNormParameters& p, Pool pool) {
  const ImageShape image{x.images.image.height, x.images.image.width, w.outputs};
  ConvNorm c{w,
             window.size,
             x,
             p,
             pool == Pool::kYes,
             allocate_levels(tape, image, x.images.images),
             allocate_statistics(tape, p, Rectify::kYes, 1),
             tape.allocate<float>(w.outputs),
             tape.allocate<float>(w.outputs),
             tape.allocate<std::int16_t>(w.outputs)};
  c.z.levels = tape.allocate<std::int16_t>(c.z.images * image.size());
  return c;
}

// Does forward up to the norm.
ConvNorm convolve_and_measure(Tape& tape, const ImageVar& x, Window window, const LinearOperands& w,
                              const BatchNormParameters& p, Pool pool) {
  const ConvNorm c = allocate_conv_norm(tape, x, window, w, p, pool);
  const std::int64_t n = c.z.images * c.channels();
  auto* sums = tape.allocate_scratch<std::int64_t>(n);
  auto* squares = tape.allocate_scratch<std::int64_t>(n);
  convolve(tape, c, sums, squares);
  measure(tape, c, sums, squares);
  return c;
}

// ---- the ops ----

std::int64_t most_outputs(Window window) { return kLongestFineSum / (window.size * window.size); }

LinearOperands check_operands(const ImageVar& x, Window window, Parameter& weight, Parameter* scale,
                              const BatchNormParameters& norm, Pool pool) {
  const LinearOperands w = linear_operands("conv_norm", weight, scale);
  check(goes_in_images(weight, scale, Compute::kInt8, window), "conv_norm: '", weight.name(),
        "' is not multiplied in integers with one scale a row, or has more than ",
        most_outputs(window), " outputs; use conv2d");
  check(x.images.border == window.size / 2 &&
            w.inputs == window.size * window.size * x.images.image.channels,
        "conv_norm: '", weight.name(), "' has shape ", weight.shape().str(), " but windows of ",
        window.size, " x ", window.size, " pixels of ", x.images.image.channels, " channels have ",
        window.size * window.size * x.images.image.channels, " numbers");
  check_integers("conv_norm", w);
  const Shape z{x.images.rows(), w.outputs};
  check_batch_norm(z, norm);
  check_batch(z);
  check(pool == Pool::kNo || pooled(x.images.image).size() > 0, "conv_norm: images have ",
        x.images.image.height, " x ", x.images.image.width,
        " pixels, at least 2 x 2 needed; pool less often");
  return w;
}

// Makes an activation whose gradient will be levels, none of which are there yet.
ImageVar allocate_image_var(Tape& tape, const ImageShape& image, std::int64_t images,
                            std::int64_t border) {
  const std::int64_t floats = (image.size() + 1) / 2;
  ImageVar y{tape.without_value({images, floats}),
             allocate_images(tape, image, images, border, true),
             allocate_levels(tape, image, images)};
  std::fill_n(y.gradient.factors, images, 0.0f);
  std::fill_n(y.gradient.least, images * image.channels, std::int16_t{0});
  std::fill_n(y.gradient.most, images * image.channels, std::int16_t{0});
  return y;
}

}  // namespace

bool goes_in_images(const Parameter& weight, const Parameter* scale, Compute compute,
                    Window window) {
  return in_integers(weight, scale, compute) && scale->shape().cols() == 1 &&
         weight.shape().rows() <= most_outputs(window);
}

ImageVar quantize_images(Tape& tape, const Tensor& x, const ImageShape& image, Window window) {
  check(image.size() > 0 && x.cols() == image.size(), "quantize_images: x has shape ",
        x.shape.str(), " but images of ", image.height, " x ", image.width, " pixels of ",
        image.channels, " channels have ", image.size(), " numbers");
  const BorderedImages images = allocate_images(tape, image, x.rows(), window.size / 2, true);
  quantize_images(images, {x.data, {x.rows() * image.pixels(), image.channels}}, nullptr);
  return {{}, images, {}};
}

ImageVar conv_norm(Tape& tape, const ImageVar& x, Window window, Parameter& weight,
                   Parameter* scale, const BatchNormParameters& norm, Pool pool) {
  const LinearOperands w = check_operands(x, window, weight, scale, norm, pool);
  const ConvNorm c = convolve_and_measure(tape, x, window, w, norm, pool);
  ImageVar y = allocate_image_var(tape, c.out(), c.z.images, window.size / 2);
  y.images.rectified = true;
  for_each_image(tape, c, [&](std::int64_t image, const BandScratch& s) {
    normalize_image(c, y.images, image, s);
  });
  tape.scratch_reset();
  tape.record(y.var, {}, {norm.gain, norm.bias, w.weight, w.scale}, [&tape, c, y] {
    ImageLevels dy = y.gradient;
    dy.levels = reinterpret_cast<std::int16_t*>(tape.grad_of(y.var).data);
    conv_norm_backward(tape, c, dy, {});
  });
  return y;
}

Var conv_norm_floats(Tape& tape, const ImageVar& x, Window window, Parameter& weight,
                     Parameter* scale, const BatchNormParameters& norm, Pool pool) {
  const LinearOperands w = check_operands(x, window, weight, scale, norm, pool);
  const ConvNorm c = convolve_and_measure(tape, x, window, w, norm, pool);
  const Var y = tape.variable({c.z.images * c.out().pixels(), c.channels()});
  for_each_image(tape, c, [&](std::int64_t image, const BandScratch& s) {
    normalize_image(c, y.value, image, s);
  });
  tape.scratch_reset();
  tape.record(y, {}, {norm.gain, norm.bias, w.weight, w.scale},
              [&tape, c, y] { conv_norm_backward(tape, c, {}, tape.grad_of(y)); });
  return y;
}

}  // namespace tritgrad
