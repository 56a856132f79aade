#include "models/networks/conv_net.h"

#include "ops/activation.h"
#include "ops/add.h"
#include "ops/bias.h"
#include "ops/conv2d.h"
#include "ops/conv_norm.h"
#include "ops/dropout.h"
#include "ops/pool.h"
#include "ops/products/linear.h"
#include "ops/products/linear_norm.h"
#include "ops/reshape.h"

namespace tritgrad {

std::vector<ParameterSpec> plan_conv(const ConvNetSpec& spec, const Recipe& recipe) {
  using Kind = ConvStage::Kind;
  std::vector<ParameterSpec> plan;
  std::size_t index = 0;
  for (const ConvStage& stage : conv_stages(spec)) {
    if (!stage.has_product()) continue;
    const bool is_head = stage.kind == Kind::kOutput;
    const std::string name = is_head ? kHead : layer_name(index++);
    plan_matrix(name, stage.inputs(), stage.outputs, 1.0f, recipe, plan,
                stage.kind == Kind::kConvolution ? GradientComes::kParts : GradientComes::kWhole);
    if (is_head) {
      plan_bias(name, stage.outputs, recipe, plan);
    } else {
      plan_norm(name, Norm::kBatch, stage.outputs, recipe, plan);
    }
  }
  return plan;
}

ConvNet::ConvNet(const ConvNetSpec& spec, const Recipe& recipe, std::optional<std::uint64_t> seed)
    : spec_(spec), stages_(conv_stages(spec)), compute_(recipe.compute) {
  for (const ParameterSpec& parameter : plan_conv(spec, recipe)) parameters_.add(parameter, seed);
  using Kind = ConvStage::Kind;
  std::size_t index = 0;
  for (const ConvStage& stage : stages_) {
    if (stage.kind == Kind::kConvolution || stage.kind == Kind::kMaxPool) ++image_stages_;
    const std::string name = stage.kind == Kind::kOutput ? kHead : layer_name(index);
    index += stage.has_product() ? 1 : 0;
    layers_.push_back(stage.has_product() ? bind_layer(parameters_, name) : LayerParameters{});
    dropout_streams_.push_back(random_stream(name + ".dropout"));
  }
}

// Pooling must stand behind a convolution, of which it becomes a part.
bool ConvNet::trains_in_images() const {
  const Window window{kConvWindow};
  bool can_pool = false;
  for (std::size_t i = 0; i < image_stages_; ++i) {
    const ConvStage& stage = stages_[i];
    const bool convolves = stage.kind == ConvStage::Kind::kConvolution;
    if (!convolves && !can_pool) return false;
    if (stage.stride > 1 || stage.begins_block || stage.ends_block) return false;
    if (convolves && !goes_in_images(*layers_[i].weight, layers_[i].scale, compute_, window)) {
      return false;
    }
    can_pool = convolves;
  }
  return true;
}

Var ConvNet::train_in_images(Tape& tape, const Tensor& x) const {
  const Window window{kConvWindow};
  ImageVar h = quantize_images(tape, x, spec_.image, window);
  std::size_t stage = 0;
  while (true) {
    const LayerParameters& layer = layers_[stage];
    const bool pools = stages_[stage + 1].kind == ConvStage::Kind::kMaxPool;
    const Pool pool = pools ? Pool::kYes : Pool::kNo;
    stage += pools ? 2 : 1;
    if (stage == image_stages_) {
      return conv_norm_floats(tape, h, window, *layer.weight, layer.scale, layer.norm, pool);
    }
    h = conv_norm(tape, h, window, *layer.weight, layer.scale, layer.norm, pool);
  }
}

// What a block reads stays, for the sum at its end.
Var ConvNet::convolve(Tape& tape, const Var& h, const ConvStage& stage,
                      const LayerParameters& layer, bool training) const {
  const Var sums = conv2d(tape, h, stage.image, {kConvWindow, stage.stride}, *layer.weight,
                          layer.scale, compute_);
  if (!stage.begins_block) tape.release(h);
  const Rectify rectify = stage.ends_block ? Rectify::kNo : Rectify::kYes;
  const Var y = training ? batch_norm(tape, sums, layer.norm, rectify)
                         : batch_norm_inference(tape, sums, layer.norm, rectify);
  tape.release(sums);
  return y;
}

Var ConvNet::add_and_rectify(Tape& tape, const Var& h, const Var& kept) const {
  const Var sum = add(tape, h, kept);
  tape.release(h);
  tape.release(kept);
  const Var y = relu(tape, sum);
  tape.release(sum);
  return y;
}

Var ConvNet::multiply_rows(Tape& tape, const Var& h, const ConvStage& stage,
                           const LayerParameters& layer, bool training) const {
  Var x = h;
  if (stage.image.pixels() > 1) {
    x = reshape(tape, h, {h.value.size() / stage.inputs(), stage.inputs()});
    tape.release(h);
  }
  if (training) {
    const Var y =
        linear_batch_norm(tape, x, *layer.weight, layer.scale, compute_, layer.norm, Rectify::kYes);
    tape.release(x);
    return y;
  }
  const Var sums = linear(tape, x, *layer.weight, layer.scale, compute_);
  tape.release(x);
  const Var y = batch_norm_inference(tape, sums, layer.norm, Rectify::kYes);
  tape.release(sums);
  return y;
}

Var ConvNet::forward(Tape& tape, const Tensor& x, const ForwardMode& mode) {
  using Kind = ConvStage::Kind;
  const ImageShape& first = spec_.image;
  check(x.cols() == first.size(), "model: x has shape ", x.shape.str(), " but images of ",
        first.height, " x ", first.width, " x ", first.channels, " have ", first.size(),
        " numbers");
  const bool in_images = mode.training && trains_in_images();
  Var h = in_images ? train_in_images(tape, x)
                    : tape.constant({x.data, {x.rows() * first.pixels(), first.channels}});
  Var kept = h;  // what the block read, within one
  const auto pass_on = [&](const Var& y) {
    tape.release(h);
    h = y;
  };
  for (std::size_t i = in_images ? image_stages_ : 0; i < stages_.size(); ++i) {
    const ConvStage& stage = stages_[i];
    const LayerParameters& layer = layers_[i];
    switch (stage.kind) {
      case Kind::kMaxPool:
        pass_on(max_pool(tape, h, stage.image));
        break;
      case Kind::kAveragePool:
        pass_on(average_pool(tape, h, stage.image));
        break;
      case Kind::kConvolution:
        if (stage.begins_block) kept = h;
        h = convolve(tape, h, stage, layer, mode.training);
        if (stage.ends_block) h = add_and_rectify(tape, h, kept);
        break;
      case Kind::kDense:
        h = multiply_rows(tape, h, stage, layer, mode.training);
        if (!mode.training || spec_.dropout == 0.0f) break;
        pass_on(dropout(tape, h, spec_.dropout,
                        {mode.key.seed, dropout_streams_[i] + mode.key.stream, mode.key.step}));
        break;
      case Kind::kOutput:
        pass_on(linear(tape, h, *layer.weight, layer.scale, compute_));
        pass_on(add_bias(tape, h, *layer.bias));
    }
  }
  return h;
}

}  // namespace tritgrad
