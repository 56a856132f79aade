// Convolutional network: convolution -> batch norm -> rectifier, max pooling and residual blocks,
// in any order; the mean over all pixels, or dense layers; linear + bias.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/networks/conv_spec.h"
#include "models/networks/layer_plan.h"
#include "models/networks/model.h"

namespace tritgrad {

// Convolutions and dense layers are layers.0, layers.1, ...; the linear layer is head.
std::vector<ParameterSpec> plan_conv(const ConvNetSpec& spec, const Recipe& recipe);

class ConvNet : public Model {
 public:
  // `spec` must be complete, as fit_conv() leaves it.
  ConvNet(const ConvNetSpec& spec, const Recipe& recipe, std::optional<std::uint64_t> seed);

  // Takes x [n, height width channels].
  Var forward(Tape& tape, const Tensor& x, const ForwardMode& mode) override;

 private:
  // What the stages before the mean or the first dense layer make: in training, where all of them
  // are pooling and convolutions that conv_norm() takes, as int8 images without floats between
  // them.
  bool trains_in_images() const;
  Var train_in_images(Tape& tape, const Tensor& x) const;
  // They take h over, and release it.
  Var convolve(Tape& tape, const Var& h, const ConvStage& stage, const LayerParameters& layer,
               bool training) const;
  Var add_and_rectify(Tape& tape, const Var& h, const Var& kept) const;
  Var multiply_rows(Tape& tape, const Var& h, const ConvStage& stage, const LayerParameters& layer,
                    bool training) const;

  ConvNetSpec spec_;
  std::vector<ConvStage> stages_;
  std::size_t image_stages_ = 0;  // so many of them, the first ones, make images
  Compute compute_;
  std::vector<LayerParameters> layers_;         // of each stage; null without a product
  std::vector<std::uint32_t> dropout_streams_;  // of each stage
};

}  // namespace tritgrad
