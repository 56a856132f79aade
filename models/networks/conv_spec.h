// What a convolutional network is: the spec as it is written, and the stages that it stands for,
// which plans, forward passes, counts and exports go through alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/networks/model.h"

namespace tritgrad {

// The side of a convolution's windows.
inline constexpr std::int64_t kConvWindow = 3;

struct ConvLayer {
  enum class Kind {
    kConvolution,  // batch norm, rectifier
    kMaxPool,      // of 2 x 2 pixels
    kResidual,     // two convolutions of as many channels as come in, and a sum with what came in
    kDense,        // linear, batch norm, rectifier; the first one reads the image as a row
  };
  Kind kind;
  std::int64_t outputs = 0;  // of kConvolution and kDense
  std::int64_t stride = 1;   // of kConvolution

  friend bool operator==(const ConvLayer&, const ConvLayer&) = default;
};

struct ConvNetSpec {
  ImageShape image;          // all 0: taken from the data
  std::int64_t outputs = 0;  // 0: taken from the data
  std::vector<ConvLayer> layers;
  float dropout = 0.0f;  // behind each dense layer
};

// Reads "conv:32,32,M,64/2,R,F128", in the notation of VGG: a number is a convolution of so many
// outputs (windows of 3 x 3 pixels, as many pixels as before; with /2 a stride of 2), M is max
// pooling by 2 x 2, R a residual block, F128 a dense layer of so many outputs; the images and the
// number of classes come from the data. "conv:32x32x3-32-32-M-64-10" is complete: height x width x
// channels of the images first, classes last. ":dropout=P" may follow where there are dense layers.
// Throws Error that names the part that cannot be read, or stands where it has no meaning.
ConvNetSpec parse_conv(const std::string& text);

// Fills in image and outputs; throws Error when they contradict what the spec says, when the data
// are no images, and when pooling would leave nothing of them.
ConvNetSpec fit_conv(ConvNetSpec spec, const ModelInput& input, std::int64_t outputs);

// A step of the network. Blocks are of two convolutions (He et al. 2016): what the first one reads
// is added behind the norm of the second one, before its rectifier.
struct ConvStage {
  enum class Kind {
    kConvolution,
    kMaxPool,
    kAveragePool,  // the mean over all pixels
    kDense,
    kOutput,  // linear and bias
  };
  Kind kind;
  ImageShape image;          // that it reads; a row of n numbers is 1 x 1 x n
  std::int64_t outputs = 0;  // of a product
  bool begins_block = false, ends_block = false;
  std::int64_t stride = 1;  // of kConvolution

  bool has_product() const { return outputs > 0; }
  // What it makes.
  ImageShape result() const;
  // The inputs of each of its products, and how often an image or a row is multiplied.
  std::int64_t inputs() const;
  std::int64_t uses() const { return kind == Kind::kConvolution ? result().pixels() : 1; }
};

// Returns the stages of a complete spec, the head last. Throws Error when pooling leaves nothing.
std::vector<ConvStage> conv_stages(const ConvNetSpec& spec);

// Counts the multiplications of one weight by one number that a forward pass takes for each image:
// every weight of a convolution is used at every pixel.
double conv_products_per_row(const ConvNetSpec& spec);

// Returns how often each matrix of the plan multiplies for an image: at every pixel that a
// convolution makes, and once elsewhere.
std::vector<std::int64_t> conv_uses(const ConvNetSpec& spec);

}  // namespace tritgrad
