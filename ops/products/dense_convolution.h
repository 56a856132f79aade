// The three products of convolutions of floats, of images where they lie: by oneDNN where the
// library was built with it, and where they take less time so than through patches.
//
// Like dense_product(), a product runs on the calling thread and gives the same bits for any number
// of threads and any place in memory on one instruction set, which is fixed as there. Sums have
// another order than those of patches, and of what lies outside of an image there are none: beside
// its border an infinite weight makes infinity, where patches multiply it by zero and make NaN.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/data/image_shape.h"

namespace tritgrad {

// y = W x, dx = W^T dy and dW = dy x^T.
enum class ConvolutionProduct { kForward, kBackwardInput, kBackwardWeight };

// A convolution as conv2d() defines it, of so many images at a time.
struct ConvolutionShape {
  ImageShape image;
  std::int64_t images, outputs, size, stride;

  std::int64_t inputs() const { return size * size * image.channels; }
  // Of one image that comes out.
  ImageShape result() const {
    return {(image.height + stride - 1) / stride, (image.width + stride - 1) / stride, outputs};
  }
};

// Rows of W that are packed at a time.
inline constexpr std::int64_t kPackedRows = 128;

// One product of one shape, made ready. It may be used by several threads at the same time.
//
// oneDNN keeps the code that it makes for it, and asks the heap for some hundred bytes while it
// runs; the ledger sees neither.
class DenseConvolution {
 public:
  virtual ~DenseConvolution() = default;

  // Numbers in W as this product has them, in an order of oneDNN's, and in the scratch of run().
  virtual std::int64_t packed_numbers() const = 0;
  virtual std::int64_t scratch_numbers() const = 0;

  // Packs rows [first, first + kPackedRows) of W [outputs x inputs], or as many as there are.
  // `first` is a multiple of kPackedRows, and `rows` begins with the first of them.
  virtual void pack_weights(std::int64_t first, const float* rows, float* packed) const = 0;
  // Writes all rows of dW.
  virtual void unpack_weights(const float* packed, float* w) const = 0;

  // Computes the product `runs` times, each of the images behind those of the one before, in x (or
  // dx), packed W (or dW) and y (or dy). Every number of what it computes is written, the others
  // are read. Throws Error when oneDNN cannot, as where the heap is exhausted.
  virtual void run(std::int64_t runs, float* x, float* packed, float* y, float* scratch) const = 0;
};

// Returns a product, made at the first call for this shape, or null where patches are to be used
// instead. That depends on the shape, without the number of images, and on the kernels in use.
std::shared_ptr<const DenseConvolution> dense_convolution(ConvolutionProduct product,
                                                          const ConvolutionShape& shape);

// Names who computes those that are worth it with the kernels in use: "oneDNN" or "patches".
const char* dense_convolution_library();

}  // namespace tritgrad
