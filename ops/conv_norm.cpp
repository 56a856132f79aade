#include "ops/conv_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "engine/memory/prefetch.h"
#include "ops/columns.h"
#include "ops/norm_columns.h"
#include "ops/pool.h"
#include "ops/products/convolution_gradient.h"
#include "ops/products/fine_convolution.h"
#include "ops/products/integer_linear.h"

namespace tritgrad {
namespace {

// Floats of a band of lines, a few of which stay in the caches.
constexpr std::int64_t kBandFloats = 8192;
constexpr std::int64_t kLevelBytes = sizeof(std::int16_t);

// What backward needs of forward. All arrays are in the tape's arena.
struct ConvNorm {
  LinearOperands w;
  std::int64_t size;  // of the window
  ImageVar x;
  BatchNormParameters p;
  bool pools;
  ImageLevels z;         // of sums times scales of images, without those of rows
  NormStatistics batch;  // mean of z; inverse_std is E / the standard deviation of E z
  float* factor;         // gain / the standard deviation of E z
  float* squashed;       // eps / (variance + eps)
  std::int16_t* turns;   // -1 where a larger z gives a smaller norm, 0 elsewhere

  const ImageShape& image() const { return z.image; }
  std::int64_t channels() const { return z.image.channels; }
  ImageShape out() const { return pools ? pooled(z.image) : z.image; }
  // Lines and columns of z that the output does not depend on: pooling drops odd ones.
  std::int64_t dropped_lines() const { return pools ? z.image.height % 2 : 0; }
  std::int64_t dropped_columns() const { return pools ? z.image.width % 2 : 0; }
  NormColumns columns() const { return batch.from(0); }
  // Lines of the output in a band.
  std::int64_t band_lines() const {
    const std::int64_t floats = z.image.width * channels() * (pools ? 2 : 1);
    return std::max<std::int64_t>(1, kBandFloats / floats);
  }

  // Calls body(first, lines) for bands of the output's lines.
  template <typename Body>
  void for_each_band(const Body& body) const {
    for (std::int64_t first = 0; first < out().height; first += band_lines()) {
      body(first, std::min(band_lines(), out().height - first));
    }
  }
};

// What the passes over one image keep of a band.
struct BandScratch {
  std::int16_t* pooled;
  std::int16_t* winners;
  float* z;      // of the output's pixels
  float* u;      // the norm of them
  float* dy;     // the gradient of them
  float* all_z;  // of all pixels of the band
  float* all_dy;

  BandScratch(Tape& tape, const ConvNorm& c) {
    const std::int64_t line = c.image().width * c.channels();
    const std::int64_t n = c.band_lines() * line, all = (c.pools ? 2 : 1) * n + line;
    pooled = tape.allocate_scratch<std::int16_t>(n);
    winners = tape.allocate_scratch<std::int16_t>(n);
    z = tape.allocate_scratch<float>(n);
    u = tape.allocate_scratch<float>(n);
    dy = tape.allocate_scratch<float>(n);
    all_z = tape.allocate_scratch<float>(all);
    all_dy = tape.allocate_scratch<float>(all);
  }
};

// Calls body(image, scratch) for all images; every thread has scratch of its own.
template <typename Body>
void for_each_image(Tape& tape, const ConvNorm& c, const Body& body) {
  const std::int64_t shares = std::min<std::int64_t>(thread_count(), c.z.images);
  auto* scratch = tape.allocate_scratch<BandScratch>(shares);
  for (std::int64_t i = 0; i < shares; ++i) scratch[i] = BandScratch(tape, c);
  parallel_for(shares, [&](std::int64_t share) {
    const std::int64_t last = c.z.images * (share + 1) / shares;
    for (std::int64_t image = c.z.images * share / shares; image < last; ++image) {
      body(image, scratch[share]);
    }
  });
}

// ---- forward ----

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
    c.squashed[j] = static_cast<float>(eps / (variance + eps));
    c.turns[j] =
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

// Reads z of a band of the output, and asks for that of the next one: it comes from memory.
void read_band(const ConvNorm& c, std::int64_t image, std::int64_t first, std::int64_t lines,
               const BandScratch& s) {
  const std::int64_t line_numbers = c.out().width * c.channels();
  const std::int64_t rows = c.pools ? 2 : 1;  // lines of z for one of the output
  for (std::int64_t i = 0; i < lines; ++i) {
    const std::int16_t* levels = c.z.line(image, rows * (first + i));
    prefetch(levels + lines * rows * c.image().width * c.channels(),
             rows * c.image().width * c.channels() * kLevelBytes);
    if (c.pools) {
      std::int16_t* pooled_line = s.pooled + i * line_numbers;
      kernels().layers.pool_levels(pooled_line, s.winners + i * line_numbers, levels,
                                   levels + c.image().width * c.channels(), c.turns, c.out().width,
                                   c.channels());
      levels = pooled_line;
    }
    kernels().layers.levels_to_float(s.z + i * line_numbers, levels, c.z.factors[image],
                                     line_numbers);
  }
}

// Reads z, and makes the norm of it.
void normalize_band(const ConvNorm& c, std::int64_t image, std::int64_t first, std::int64_t lines,
                    const BandScratch& s) {
  read_band(c, image, first, lines, s);
  kernels().layers.batch_norm(s.u, c.channels(), s.z, c.channels(), c.columns(),
                              lines * c.out().width, c.channels());
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

// ---- backward ----

// The gradient of the output, and what comes of it.
struct OutputGradient {
  ImageLevels levels;  // without levels where it is in floats
  Tensor floats;
  // One number of each a channel:
  float* mean_dy;
  float* mean_dy_z;
  float* largest;  // of floats, [images x channels]

  // Reads the gradient of a band of the output.
  void read(const ConvNorm& c, std::int64_t image, std::int64_t first, std::int64_t lines,
            float* to) const {
    const std::int64_t n = lines * c.out().width * c.channels();
    if (levels.levels != nullptr) {
      const std::int16_t* own = levels.line(image, first);
      prefetch(own + n, n * kLevelBytes);
      return kernels().layers.levels_to_float(to, own, levels.factors[image], n);
    }
    std::copy_n(floats.row((image * c.out().height + first) * c.out().width), n, to);
  }
  // Returns a bound of its magnitudes in an image and a channel.
  float bound(std::int64_t image, std::int64_t channel, std::int64_t channels) const {
    const std::int64_t at = image * channels + channel;
    if (levels.levels == nullptr) return largest[at];
    const int most = std::max<int>(std::abs(int{levels.least[at]}), std::abs(int{levels.most[at]}));
    return levels.factors[image] * static_cast<float>(most);
  }
};

// Sums dy and dy times the normalised z, which go to the gradients of bias and gain, and d E. The
// sums of dz z, with z times E, follow from them.
void sum_gradient(Tape& tape, const ConvNorm& c, const OutputGradient& dy, double* dz_z) {
  const std::int64_t n = c.channels(), all = c.z.images * n;
  auto* sums = tape.allocate_scratch<double>(2 * all);
  std::fill_n(sums, 2 * all, 0.0);
  std::fill_n(dy.largest, all, 0.0f);
  const float one = 1.0f;
  for_each_image(tape, c, [&](std::int64_t image, const BandScratch& s) {
    c.for_each_band([&](std::int64_t first, std::int64_t lines) {
      const std::int64_t pixels = lines * c.out().width;
      read_band(c, image, first, lines, s);
      dy.read(c, image, first, lines, s.dy);
      kernels().layers.add_batch_norm_sums(sums + image * n, sums + all + image * n, s.dy, s.z, n,
                                           c.columns(), pixels, n);
      if (dy.levels.levels != nullptr) return;
      for (std::int64_t i = 0; i < pixels; ++i) {
        kernels().products.raise_max_abs(dy.largest + image * n, s.dy + i * n, n, &one, 1, n);
      }
    });
  });
  const Tensor dgain = tape.gradient(*c.p.gain), dbias = tape.gradient(*c.p.bias);
  const auto count = static_cast<double>(c.z.images * c.image().pixels());
  for (std::int64_t j = 0; j < n; ++j) {
    double sum_dy = 0.0, sum_dy_z = 0.0;
    for (std::int64_t i = 0; i < c.z.images; ++i) {
      sum_dy += sums[i * n + j];
      sum_dy_z += sums[all + i * n + j];
    }
    dbias.data[j] += static_cast<float>(sum_dy);
    dgain.data[j] += static_cast<float>(sum_dy_z);
    dy.mean_dy[j] = static_cast<float>(sum_dy / count);
    dy.mean_dy_z[j] = static_cast<float>(sum_dy_z / count);
    // dz = factor (dy - mean_dy - z^ mean_dy_z), z^ has the mean 0 and the mean square 1 - squashed
    dz_z[j] = double{c.batch.gain[j]} * double{c.squashed[j]} * sum_dy_z;
  }
}

// dz as both products read it.
struct RoundedGradient {
  FineImages fine;     // times E
  float* line_scales;  // E, once for each pixel of a line
  DepthCodes depth;    // times the scales of x's images
};

// Sets the scales of both from bounds of dz.
void set_scales(Tape& tape, const ConvNorm& c, const OutputGradient& dy,
                const RoundedGradient& dz) {
  const std::int64_t n = c.channels();
  float* largest = tape.allocate_scratch<float>(c.z.images * n);
  for (std::int64_t i = 0; i < c.z.images; ++i) {
    float most = 0.0f;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto normalized = [&](std::int16_t level) {
        const float z = c.z.factors[i] * static_cast<float>(level);
        return std::abs((z - c.batch.mean[j]) * c.batch.inverse_std[j]);
      };
      const float z =
          larger_magnitude(normalized(c.z.least[i * n + j]), normalized(c.z.most[i * n + j]));
      const float bound = std::abs(c.factor[j]) * (dy.bound(i, j, n) + std::abs(dy.mean_dy[j]) +
                                                   z * std::abs(dy.mean_dy_z[j]));
      most = larger_magnitude(most, bound * std::abs(dz.line_scales[j]));
      largest[i * n + j] = bound * c.x.images.scales[i];
    }
    dz.fine.images.scales[i] = most;
  }
  dz.depth.set_scales(largest);
}

// Makes dz of a band of the output, and of all pixels of z that belong to it.
void make_gradient(const ConvNorm& c, const OutputGradient& dy, std::int64_t image,
                   std::int64_t first, std::int64_t lines, std::int64_t all_lines,
                   const BandScratch& s) {
  const std::int64_t n = c.channels(), line_numbers = c.image().width * n;
  const std::int64_t pixels = lines * c.out().width;
  normalize_band(c, image, first, lines, s);
  float* own = c.pools ? s.dy : s.all_dy;
  dy.read(c, image, first, lines, own);
  kernels().layers.rectify_gradient(own, s.u, pixels * n);
  const float* z = s.z;
  if (c.pools) {
    const std::int64_t out_numbers = c.out().width * n;
    if (c.dropped_columns() + all_lines - 2 * lines > 0) {
      std::fill_n(s.all_dy, all_lines * line_numbers, 0.0f);
    }
    for (std::int64_t i = 0; i < lines; ++i) {
      kernels().layers.give_to_winners(
          s.all_dy + 2 * i * line_numbers, s.all_dy + (2 * i + 1) * line_numbers,
          s.winners + i * out_numbers, s.dy + i * out_numbers, c.out().width, n);
    }
    kernels().layers.levels_to_float(s.all_z, c.z.line(image, 2 * first), c.z.factors[image],
                                     all_lines * line_numbers);
    z = s.all_z;
  }
  kernels().layers.batch_norm_gradient(s.all_dy, z, n, c.columns(), c.factor, dy.mean_dy,
                                       dy.mean_dy_z, all_lines * c.image().width, n);
}

// Rounds dz of all images, a band after the other.
void round_gradient(Tape& tape, const ConvNorm& c, const OutputGradient& dy,
                    const RoundedGradient& dz) {
  const std::int64_t line_numbers = c.image().width * c.channels();
  const bool wants_dx = c.x.wants_grad();
  for_each_image(tape, c, [&](std::int64_t image, const BandScratch& s) {
    const float largest = dz.fine.images.scales[image];
    dz.fine.images.scales[image] = scale_of(largest);
    c.for_each_band([&](std::int64_t first, std::int64_t lines) {
      const std::int64_t top = c.pools ? 2 * first : first;
      const bool is_last = first + lines == c.out().height;
      const std::int64_t all_lines =
          (c.pools ? 2 * lines : lines) + (is_last ? c.dropped_lines() : 0);
      make_gradient(c, dy, image, first, lines, all_lines, s);
      for (std::int64_t i = 0; wants_dx && i < all_lines; ++i) {
        const float* numbers = s.all_dy + i * line_numbers;
        std::int8_t* codes = dz.fine.images.line(image, top + i);
        kernels().products.quantize_int8(codes, numbers, dz.line_scales, inverse_scale(largest),
                                         line_numbers);
        kernels().products.quantize_rests(dz.fine.rests.line(image, top + i), codes, numbers,
                                          dz.line_scales, inverse_scale(largest), line_numbers);
      }
      dz.depth.quantize_lines(image, top, all_lines, s.all_dy, c.x.images.scales[image]);
    });
  });
}

RoundedGradient allocate_rounded(Tape& tape, const ConvNorm& c) {
  const auto allocate = [&] {
    return allocate_images(tape, c.image(), c.z.images, c.x.images.border, /*keep=*/false);
  };
  RoundedGradient dz{{allocate(), allocate()},
                     tape.allocate_scratch<float>(c.image().width * c.channels()),
                     allocate_depth_codes(tape, c.image(), c.z.images)};
  c.w.scale->storage().decode_rows(0, c.w.outputs, dz.line_scales);
  repeat_columns(dz.line_scales, c.channels(), c.image().width);
  return dz;
}

// Writes dx as levels.
void backward_input(Tape& tape, const ConvNorm& c, const FineImages& dz) {
  const GradientTarget target = tape.target(c.x.var);
  check(target.fresh, "conv_norm: two ops read one activation in int8; give one of them floats");
  ImageLevels dx = c.x.gradient;
  dx.levels = reinterpret_cast<std::int16_t*>(target.grad.data);
  convolve_finely(tape, dz, pack_mirrored_windows(tape, c.w, c.size), dx);
}

void backward(Tape& tape, const ConvNorm& c, const ImageLevels& levels, const Tensor& floats) {
  const std::int64_t n = c.channels();
  const OutputGradient dy{levels, floats, tape.allocate_scratch<float>(n),
                          tape.allocate_scratch<float>(n),
                          tape.allocate_scratch<float>(c.z.images * n)};
  double* dz_z = tape.allocate_scratch<double>(n);
  const RoundedGradient dz = allocate_rounded(tape, c);
  sum_gradient(tape, c, dy, dz_z);
  set_scales(tape, c, dy, dz);
  round_gradient(tape, c, dy, dz);
  if (c.x.wants_grad()) backward_input(tape, c, dz.fine);
  convolution_backward_weight(tape, c.w, c.size, c.x.images, dz.depth, dz_z);
}

// ---- the ops ----

LinearOperands check_operands(const ImageVar& x, Window window, Parameter& weight, Parameter* scale,
                              const BatchNormParameters& norm, Pool pool) {
  const LinearOperands w = linear_operands("conv_norm", weight, scale);
  check(goes_in_images(weight, scale, Compute::kInt8), "conv_norm: '", weight.name(),
        "' is not multiplied in integers with one scale a row; use conv2d");
  check(x.images.border == window.size / 2 &&
            w.inputs == window.size * window.size * x.images.image.channels,
        "conv_norm: '", weight.name(), "' has shape ", weight.shape().str(), " but windows of ",
        window.size, " x ", window.size, " pixels of ", x.images.image.channels, " channels have ",
        window.size * window.size * x.images.image.channels, " numbers");
  check_integers("conv_norm", w);
  const std::int64_t most = kLongestFineSum / (window.size * window.size);
  check(w.outputs <= most, "conv_norm: '", weight.name(), "' has ", w.outputs,
        " outputs; in int8 windows of ", window.size, " x ", window.size, " pixels have at most ",
        most, "; use --compute fp32");
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

bool goes_in_images(const Parameter& weight, const Parameter* scale, Compute compute) {
  return in_integers(weight, scale, compute) && scale->shape().cols() == 1;
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
    backward(tape, c, dy, {});
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
              [&tape, c, y] { backward(tape, c, {}, tape.grad_of(y)); });
  return y;
}

}  // namespace tritgrad
