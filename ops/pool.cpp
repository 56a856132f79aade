#include "ops/pool.h"

#include <algorithm>

#include "engine/kernels/layers.h"
#include "engine/kernels/reductions.h"
#include "ops/columns.h"
#include "ops/images.h"

namespace tritgrad {
namespace {

// Calls body(index) for n images.
template <typename Body>
void for_each_image(std::int64_t n, const ImageShape& image, const Body& body) {
  parallel_ranges(n, kElementsPerUnit / image.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

// Calls body(first row of x, of y) for all lines of y of an image; the line of x below the first
// one lies a line further on.
template <typename Body>
void for_each_line(const ImageShape& image, std::int64_t index, const Body& body) {
  const ImageShape out = pooled(image);
  for (std::int64_t line = 0; line < out.height; ++line) {
    body((index * image.height + 2 * line) * image.width, (index * out.height + line) * out.width);
  }
}

}  // namespace

Var max_pool(Tape& tape, const Var& x, const ImageShape& image) {
  const std::int64_t images = count_images("max_pool", x, image);
  const ImageShape out = pooled(image);
  check(out.size() > 0, "max_pool: images have ", image.height, " x ", image.width,
        " pixels, at least 2 x 2 needed; pool less often");
  const Var y = tape.variable({images * out.pixels(), out.channels}, x.wants_grad());
  std::int32_t* winners = x.wants_grad() ? tape.allocate<std::int32_t>(y.value.size()) : nullptr;
  for_each_image(images, image, [&](std::int64_t index) {
    for_each_line(image, index, [&](std::int64_t from, std::int64_t to) {
      kernels().layers.max_pool(
          y.value.row(to), winners == nullptr ? nullptr : winners + to * out.channels,
          x.value.row(from), x.value.row(from + image.width), out.width, out.channels);
    });
  });
  if (!x.wants_grad()) return y;
  tape.record(y, {}, {}, [&tape, x, y, winners, image, out, images] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = tape.target(x);
    for_each_image(images, image, [&](std::int64_t index) {
      if (dx.fresh) std::fill_n(dx.grad.data + index * image.size(), image.size(), 0.0f);
      for_each_line(image, index, [&](std::int64_t from, std::int64_t to) {
        kernels().layers.max_pool_gradient(dx.grad.row(from), dx.grad.row(from + image.width),
                                           winners + to * out.channels, dy.row(to), out.width,
                                           out.channels);
      });
    });
  });
  return y;
}

Var average_pool(Tape& tape, const Var& x, const ImageShape& image) {
  const std::int64_t images = count_images("average_pool", x, image);
  const std::int64_t pixels = image.pixels();
  const Var y = tape.variable({images, image.channels}, x.wants_grad());
  double* sums = tape.allocate_scratch<double>(y.value.size());
  for_each_image(images, image, [&](std::int64_t index) {
    double* sum = sums + index * image.channels;
    std::fill_n(sum, image.channels, 0.0);
    kernels().reductions.add_to_sums(sum, x.value.row(index * pixels), image.channels, pixels,
                                     image.channels);
    for (std::int64_t i = 0; i < image.channels; ++i) {
      y.value.row(index)[i] = static_cast<float>(sum[i] / static_cast<double>(pixels));
    }
  });
  tape.scratch_reset();
  if (!x.wants_grad()) return y;
  tape.record(y, {}, {}, [&tape, x, y, image, images, pixels] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = tape.target(x);
    const float share = 1.0f / static_cast<float>(pixels);
    for_each_image(images, image, [&](std::int64_t index) {
      for (std::int64_t pixel = index * pixels; pixel < (index + 1) * pixels; ++pixel) {
        float* out = dx.grad.row(pixel);
        if (dx.fresh) std::fill_n(out, image.channels, 0.0f);
        kernels().reductions.add_scaled(out, dy.row(index), share, image.channels);
      }
    });
  });
  return y;
}

}  // namespace tritgrad
