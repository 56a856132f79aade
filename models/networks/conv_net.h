// Convolutional network: convolution -> batch norm -> rectifier, and max pooling, in any order; the
// mean over all pixels; linear + bias.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/networks/layer_plan.h"
#include "models/networks/model.h"

namespace tritgrad {

struct ConvNetSpec {
  static constexpr std::int64_t kMaxPool = 0;

  ImageShape image;                  // all 0: taken from the data
  std::int64_t outputs = 0;          // 0: taken from the data
  std::vector<std::int64_t> layers;  // outputs of a convolution, or kMaxPool
};

// Reads "conv:32,32,M,64", in the notation of VGG: a number is a convolution of so many outputs
// (windows of 3 x 3 pixels, as many pixels as before), M is max pooling by 2 x 2; the images and
// the number of classes come from the data. "conv:32x32x3-32-32-M-64-10" is complete: height x
// width x channels of the images first, classes last. Throws Error that names the part that cannot
// be read.
ConvNetSpec parse_conv(const std::string& text);

// Fills in image and outputs; throws Error when they contradict what the spec says, when the data
// are no images, and when pooling would leave nothing of them.
ConvNetSpec fit_conv(ConvNetSpec spec, const ModelInput& input, std::int64_t outputs);

// Convolutions are layers.0, layers.1, ...; the linear layer is head.
std::vector<ParameterSpec> plan_conv(const ConvNetSpec& spec, const Recipe& recipe);

// Counts the multiplications of one weight by one number that a forward pass takes for each image:
// every weight of a convolution is used at every pixel.
double conv_products_per_row(const ConvNetSpec& spec);

class ConvNet : public Model {
 public:
  // `spec` must be complete, as fit_conv() leaves it.
  ConvNet(const ConvNetSpec& spec, const Recipe& recipe, std::optional<std::uint64_t> seed);

  // Takes x [n, height width channels].
  Var forward(Tape& tape, const Tensor& x, const ForwardMode& mode) override;

 private:
  ConvNetSpec spec_;
  std::vector<ImageShape> images_;  // what each layer reads, and what the last one leaves
  Compute compute_;
  std::vector<LayerParameters> layers_;  // convolutions, then the head
};

}  // namespace tritgrad
