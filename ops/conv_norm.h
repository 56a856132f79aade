// A convolution in integers, the batch norm behind it, a rectifier and max pooling as one op of
// training, from int8 images to int8 images.
//
// No image of floats exists: sums of products become 16-bit levels while they are in the cache
// (ops/products/image_levels.h), exact sums of which give the statistics of the norm; what becomes
// of a level in norm, rectifier and pooling is rounded to int8 at once, and the gradient comes back
// as levels, too.
#pragma once

#include "ops/batch_norm.h"
#include "ops/conv2d.h"
#include "ops/products/image_levels.h"

namespace tritgrad {

// An activation as int8 images. One conv_norm may read it, which writes its gradient.
struct ImageVar {
  Var var;  // for the memory of the gradient's levels; there is no value
  BorderedImages images;
  ImageLevels gradient;  // factors and ranges; the levels have memory in backward only

  bool wants_grad() const { return var.wants_grad(); }
};

// Rounds images of data, which want no gradient, each by its absmax / 127, for windows of that
// size. Throws Error when x [images, size] does not fit.
ImageVar quantize_images(Tape& tape, const Tensor& x, const ImageShape& image, Window window);

// max(0, norm(conv(x))), and with kYes max pooling by 2 x 2 of that, rounded as quantize_images()
// does. With z the convolution's sums times the scales of image and row, its statistics, and the
// gradients of z, weight, scale, gain and bias are those of conv2d and batch_norm, but that dz is
// rounded: for dx, times the scales of rows, to 16 bits (ops/products/fine_convolution.h) by a
// bound of its image, for dW, times the scales of images, to 8 by a bound of its output. The bounds
// are of what the formula of dz can give: they follow from the largest dy and the range of z in
// each image and channel, which are known before dz is. The gradient of max pooling goes to the
// first of the pixels with the largest level. Throws Error when shapes do not fit, and unless
// goes_in_images().
enum class Pool { kNo, kYes };
ImageVar conv_norm(Tape& tape, const ImageVar& x, Window window, Parameter& weight,
                   Parameter* scale, const BatchNormParameters& norm, Pool pool);
// Does so without rounding it, for what reads no int8 images.
Var conv_norm_floats(Tape& tape, const ImageVar& x, Window window, Parameter& weight,
                     Parameter* scale, const BatchNormParameters& norm, Pool pool);

// Whether conv_norm() takes such a weight: one that is multiplied in integers, with one scale a
// row, and of so few rows that windows of dy, which backward multiplies, have at most
// kLongestFineSum numbers. conv2d() takes any.
bool goes_in_images(const Parameter& weight, const Parameter* scale, Compute compute,
                    Window window);

}  // namespace tritgrad
