#include "ops/pool.h"

#include <array>

#include "engine/kernel_table.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

// The number of images in x.
std::int64_t count_images(const char* op, const Var& x, const ImageShape& image) {
  const std::int64_t pixels = image.height * image.width;
  check(image.size() > 0 && x.value.cols() == image.channels && x.value.rows() % pixels == 0, op,
        ": x has shape ", x.shape().str(), ", which is no number of images of ", image.height,
        " x ", image.width, " pixels of ", image.channels, " channels");
  return x.value.rows() / pixels;
}

// body(index) for n images.
template <typename Body>
void for_each_image(std::int64_t n, const ImageShape& image, const Body& body) {
  parallel_ranges(n, kElementsPerUnit / image.size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

// body(rows of x, row of y) for all 2 x 2 pixels of an image, from the upper left one on.
template <typename Body>
void for_each_quad(const ImageShape& image, std::int64_t index, const Body& body) {
  const ImageShape out = pooled(image);
  for (std::int64_t line = 0; line < out.height; ++line) {
    for (std::int64_t column = 0; column < out.width; ++column) {
      const std::int64_t first = (index * image.height + 2 * line) * image.width + 2 * column;
      const std::int64_t below = first + image.width;
      body(std::array{first, first + 1, below, below + 1},
           (index * out.height + line) * out.width + column);
    }
  }
}

float larger(float a, float b) { return b > a || b != b ? b : a; }

void largest_of(float* __restrict y, const float* __restrict a, const float* __restrict b,
                const float* __restrict c, const float* __restrict d, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = larger(larger(larger(a[i], b[i]), c[i]), d[i]);
}

// Gives `rest`, what no pixel has taken yet of dy, to x where it is the largest.
void take_rest(float* __restrict dx, float* __restrict rest, const float* __restrict x,
               const float* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float share = x[i] == y[i] ? rest[i] : 0.0f;
    dx[i] += share;
    rest[i] = x[i] == y[i] ? 0.0f : rest[i];
  }
}

}  // namespace

Var max_pool(Tape& tape, const Var& x, const ImageShape& image) {
  const std::int64_t images = count_images("max_pool", x, image);
  const ImageShape out = pooled(image);
  check(out.size() > 0, "max_pool: images have ", image.height, " x ", image.width,
        " pixels, at least 2 x 2 needed; pool less often");
  const Var y = tape.variable({images * out.height * out.width, out.channels}, x.wants_grad());
  for_each_image(images, image, [&](std::int64_t index) {
    for_each_quad(image, index, [&](const std::array<std::int64_t, 4>& rows, std::int64_t row) {
      largest_of(y.value.row(row), x.value.row(rows[0]), x.value.row(rows[1]), x.value.row(rows[2]),
                 x.value.row(rows[3]), out.channels);
    });
  });
  if (!x.wants_grad()) return y;
  tape.record(y, {}, [&tape, x, y, image, images] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = tape.target(x);
    for_each_image(images, image, [&](std::int64_t index) {
      if (dx.fresh) std::fill_n(dx.grad.data + index * image.size(), image.size(), 0.0f);
      for_each_quad(image, index, [&](const std::array<std::int64_t, 4>& rows, std::int64_t row) {
        for (const std::int64_t from : rows) {
          take_rest(dx.grad.row(from), dy.row(row), x.value.row(from), y.value.row(row),
                    image.channels);
        }
      });
    });
  });
  return y;
}

Var average_pool(Tape& tape, const Var& x, const ImageShape& image) {
  const std::int64_t images = count_images("average_pool", x, image);
  const std::int64_t pixels = image.height * image.width;
  const Var y = tape.variable({images, image.channels}, x.wants_grad());
  double* sums = tape.allocate_scratch<double>(y.value.size());
  for_each_image(images, image, [&](std::int64_t index) {
    double* sum = sums + index * image.channels;
    std::fill_n(sum, image.channels, 0.0);
    for (std::int64_t pixel = index * pixels; pixel < (index + 1) * pixels; ++pixel) {
      kernels().add_to_sums(sum, x.value.row(pixel), image.channels);
    }
    for (std::int64_t i = 0; i < image.channels; ++i) {
      y.value.row(index)[i] = static_cast<float>(sum[i] / static_cast<double>(pixels));
    }
  });
  tape.scratch_reset();
  if (!x.wants_grad()) return y;
  tape.record(y, {}, [&tape, x, y, image, images, pixels] {
    const Tensor dy = tape.grad_of(y);
    const GradientTarget dx = tape.target(x);
    const float share = 1.0f / static_cast<float>(pixels);
    for_each_image(images, image, [&](std::int64_t index) {
      for (std::int64_t pixel = index * pixels; pixel < (index + 1) * pixels; ++pixel) {
        float* out = dx.grad.row(pixel);
        if (dx.fresh) std::fill_n(out, image.channels, 0.0f);
        kernels().add_scaled(out, dy.row(index), share, image.channels);
      }
    });
  });
  return y;
}

}  // namespace tritgrad
