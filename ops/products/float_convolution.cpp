#include "ops/products/float_convolution.h"

#include <algorithm>

#include "engine/kernels/reductions.h"
#include "engine/memory/parallel.h"
#include "ops/columns.h"
#include "ops/products/dense_convolution.h"
#include "ops/products/float_products.h"

namespace tritgrad {
namespace {

// Numbers of scratch that units of images share, and their most.
constexpr std::int64_t kUnitNumbers = 1 << 20;
constexpr std::int64_t kMostUnits = 64;
// Those that partial sums of dW take, about as many as patches and their gradients do, and the most
// of these.
constexpr std::int64_t kPartialNumbers = 5 << 19;
constexpr std::int64_t kMostPartials = 8;

ConvolutionShape shape_of(const FloatConvolution& c, std::int64_t images) {
  return {c.windows.image, images, c.w.outputs, c.windows.size, c.windows.stride};
}

// Returns W as the product has it, decoded a panel at a time.
float* pack_all(Tape& tape, const LinearOperands& w, const DenseConvolution& product) {
  float* packed = tape.allocate_scratch<float>(product.packed_numbers());
  const float* scales = float_scales(tape, w);
  const bool is_stored = scales == nullptr && w.weight->storage().fp32_data() != nullptr;
  const std::int64_t rows = is_stored ? 0 : std::min(kPackedRows, w.outputs);
  float* panel = tape.allocate_scratch<float>(rows * w.inputs);
  for (std::int64_t begin = 0; begin < w.outputs; begin += kPackedRows) {
    const std::int64_t end = std::min(w.outputs, begin + kPackedRows);
    product.pack_weights(begin, decode_panel(w, scales, begin, end, panel), packed);
  }
  return packed;
}

// Calls body(first image, how many, scratch) for units of images, each with `numbers` of scratch.
// An image is a run of its own, so that what it gives does not depend on those beside it.
template <typename Body>
void for_each_unit(Tape& tape, const FloatConvolution& c, std::int64_t numbers, const Body& body) {
  constexpr std::int64_t kWorthAThread = 1 << 19;
  const std::int64_t work = c.windows.count() * c.w.outputs * c.w.inputs;
  const std::int64_t most =
      std::clamp<std::int64_t>(kUnitNumbers / std::max<std::int64_t>(1, numbers), 1, kMostUnits);
  const std::int64_t of_unit =
      std::max((c.images + most - 1) / most, (kWorthAThread + work - 1) / work);
  const std::int64_t units = (c.images + of_unit - 1) / of_unit;
  const Tensor scratch = tape.scratch({units, numbers});
  parallel_for(units, [&](std::int64_t unit) {
    const std::int64_t first = unit * of_unit;
    body(first, std::min(of_unit, c.images - first), scratch.row(unit));
  });
}

// Returns how many partial sums of dW there are: as many threads have something to do, a power of
// two, so that it is the same for each of them.
std::int64_t count_partials(std::int64_t images, std::int64_t weights) {
  std::int64_t partials = 1;
  while (2 * partials <= std::min(images, kMostPartials) &&
         2 * partials * weights <= kPartialNumbers) {
    partials *= 2;
  }
  return partials;
}

}  // namespace

bool FloatConvolution::forward(Tape& tape, const Tensor& x, const Tensor& y) const {
  const auto product = dense_convolution(ConvolutionProduct::kForward, shape_of(*this, 1));
  if (product == nullptr) return false;
  float* packed = pack_all(tape, w, *product);
  for_each_unit(tape, *this, product->scratch_numbers(),
                [&](std::int64_t first, std::int64_t count, float* scratch) {
                  product->run(count, x.row(first * windows.image.pixels()), packed,
                               y.row(first * windows.count()), scratch);
                });
  tape.scratch_reset();
  return true;
}

bool FloatConvolution::backward_input(Tape& tape, const GradientTarget& dx,
                                      const Tensor& dy) const {
  const auto product = dense_convolution(ConvolutionProduct::kBackwardInput, shape_of(*this, 1));
  if (product == nullptr) return false;
  float* packed = pack_all(tape, w, *product);
  const ImageShape& image = windows.image;
  const std::int64_t share = dx.fresh ? 0 : image.size();  // of one image, before it is added
  for_each_unit(
      tape, *this, product->scratch_numbers() + share,
      [&](std::int64_t first, std::int64_t count, float* scratch) {
        float* out = dx.grad.row(first * image.pixels());
        float* in = dy.row(first * windows.count());
        if (dx.fresh) return product->run(count, out, packed, in, scratch);
        float* image_share = scratch + product->scratch_numbers();
        for (std::int64_t i = 0; i < count; ++i) {
          product->run(1, image_share, packed, in + i * windows.count() * w.outputs, scratch);
          kernels().reductions.add_scaled(out + i * image.size(), image_share, 1.0f, image.size());
        }
      });
  tape.scratch_reset();
  return true;
}

// Each partial sum is that of some images; the last may be of fewer, and is added by itself, as its
// product may pack in another order.
bool FloatConvolution::backward_weight(Tape& tape, const Tensor& x, const Tensor& dy) const {
  const std::int64_t most = count_partials(images, w.outputs * w.inputs);
  const std::int64_t of_partial = (images + most - 1) / most;
  const std::int64_t partials = (images + of_partial - 1) / of_partial;
  const std::int64_t of_last = images - (partials - 1) * of_partial;
  const std::int64_t alike = of_last == of_partial ? partials : partials - 1;
  constexpr auto kProduct = ConvolutionProduct::kBackwardWeight;
  const auto product = dense_convolution(kProduct, shape_of(*this, of_partial));
  const auto last = dense_convolution(kProduct, shape_of(*this, of_last));
  if (product == nullptr || last == nullptr) return false;
  const std::int64_t numbers = std::max(product->packed_numbers(), last->packed_numbers());
  const Tensor sums = tape.scratch({partials, numbers});
  const Tensor scratch =
      tape.scratch({partials, std::max(product->scratch_numbers(), last->scratch_numbers())});
  parallel_for(partials, [&](std::int64_t i) {
    const std::int64_t first = i * of_partial;
    (i < alike ? product : last)
        ->run(1, x.row(first * windows.image.pixels()), sums.row(i),
              dy.row(first * windows.count()), scratch.row(i));
  });
  parallel_ranges(product->packed_numbers(), kElementsPerUnit,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = 1; i < alike; ++i) {
                      kernels().reductions.add_scaled(sums.data + begin, sums.row(i) + begin, 1.0f,
                                                      end - begin);
                    }
                  });
  const Tensor dw = tape.scratch({w.outputs, w.inputs});
  product->unpack_weights(sums.data, dw.data);
  if (alike < partials) {
    const Tensor rest = tape.scratch(dw.shape);
    last->unpack_weights(sums.row(alike), rest.data);
    kernels().reductions.add_scaled(dw.data, rest.data, 1.0f, dw.size());
  }
  add_weight_gradient(tape, w, x, dy, dw);
  tape.scratch_reset();
  return true;
}

}  // namespace tritgrad
