#include "ops/conv_norm_gradient.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "engine/memory/prefetch.h"
#include "ops/columns.h"
#include "ops/products/convolution_gradient.h"
#include "ops/products/fine_convolution.h"
#include "ops/products/integer_linear.h"

namespace tritgrad {
namespace {

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
    // dz = factor (dy - mean_dy - z^ mean_dy_z); z^ has the mean 0 and the mean square 1 -
    // eps_share
    dz_z[j] = double{c.batch.gain[j]} * double{c.eps_share[j]} * sum_dy_z;
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
    dz.fine.high.scales[i] = most;
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
    const float largest = dz.fine.high.scales[image];
    dz.fine.high.scales[image] = scale_of(largest);
    c.for_each_band([&](std::int64_t first, std::int64_t lines) {
      const std::int64_t top = c.pools ? 2 * first : first;
      const bool is_last = first + lines == c.out().height;
      const std::int64_t all_lines =
          (c.pools ? 2 * lines : lines) + (is_last ? c.dropped_lines() : 0);
      make_gradient(c, dy, image, first, lines, all_lines, s);
      for (std::int64_t i = 0; wants_dx && i < all_lines; ++i) {
        const float* numbers = s.all_dy + i * line_numbers;
        std::int8_t* codes = dz.fine.high.line(image, top + i);
        kernels().products.quantize_int8(codes, numbers, dz.line_scales, inverse_scale(largest),
                                         line_numbers);
        kernels().products.quantize_rests(dz.fine.low.line(image, top + i), codes, numbers,
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

}  // namespace

void conv_norm_backward(Tape& tape, const ConvNorm& c, const ImageLevels& levels,
                        const Tensor& floats) {
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

}  // namespace tritgrad
