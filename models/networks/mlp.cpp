#include "models/networks/mlp.h"

#include <algorithm>
#include <cmath>

#include "models/networks/layer_plan.h"
#include "ops/activation.h"
#include "ops/batch_norm.h"
#include "ops/bias.h"
#include "ops/dropout.h"
#include "ops/layer_norm.h"
#include "ops/products/linear.h"
#include "ops/products/linear_norm.h"

namespace tritgrad {
namespace {

void parse_option(const std::string& key, const std::string& value, MlpSpec& spec) {
  if (key == "norm") {
    spec.norm = kNorms.parse(value);
  } else if (key == "activation") {
    spec.activation = kActivations.parse(value);
  } else if (key == "dropout") {
    spec.dropout = parse_dropout(value);
  } else {
    fail("unknown option '", key, "'",
         did_you_mean(key, std::vector<std::string>{"norm", "activation", "dropout"}));
  }
}

}  // namespace

MlpSpec parse_mlp(const std::string& text) {
  check(text.starts_with("mlp:"), "model '", text,
        "' is no perceptron; expected mlp:WIDTH,WIDTH,... such as mlp:512,512");
  MlpSpec spec;
  const std::vector<std::string> parts = split(text.substr(4), ':');
  const bool complete = parts[0].find('-') != std::string::npos;
  std::vector<std::int64_t> widths;
  if (!parts[0].empty()) {
    for (const std::string& width : split(parts[0], complete ? '-' : ',')) {
      widths.push_back(parse_width(width, text));
    }
  }
  if (complete) {
    spec.inputs = widths.front();
    spec.outputs = widths.back();
    widths = {widths.begin() + 1, widths.end() - 1};
  }
  spec.hidden = widths;
  for_each_option(text, parts, [&spec](const std::string& key, const std::string& value) {
    parse_option(key, value, spec);
  });
  return spec;
}

MlpSpec fit_mlp(MlpSpec spec, std::int64_t inputs, std::int64_t outputs) {
  check(spec.inputs == 0 || inputs == 0 || spec.inputs == inputs, "model: it has ", spec.inputs,
        " inputs but the data has ", inputs, " features; leave the width out or correct it");
  check(spec.outputs == 0 || outputs == 0 || spec.outputs == outputs, "model: it has ",
        spec.outputs, " outputs but the data has ", outputs,
        " classes; leave the width out or correct it");
  if (inputs > 0) spec.inputs = inputs;
  if (outputs > 0) spec.outputs = outputs;
  check(spec.inputs > 0 && spec.outputs > 0,
        "model: inputs and outputs are unknown; give all widths, such as mlp:784-512-512-10, or "
        "name the data");
  return spec;
}

std::vector<ParameterSpec> plan_mlp(const MlpSpec& spec, const Recipe& recipe) {
  std::vector<ParameterSpec> plan;
  std::int64_t inputs = spec.inputs;
  // Without a norm behind it, a rectifier halves the second moment of what passes through.
  const bool rectified = spec.norm == Norm::kNone && spec.activation != Activation::kTanh;
  const float gain = rectified ? std::sqrt(2.0f) : 1.0f;
  for (std::size_t i = 0; i < spec.hidden.size(); ++i) {
    plan_matrix(layer_name(i), inputs, spec.hidden[i], gain, recipe, plan);
    plan_norm(layer_name(i), spec.norm, spec.hidden[i], recipe, plan);
    inputs = spec.hidden[i];
  }
  plan_matrix(kHead, inputs, spec.outputs, 1.0f, recipe, plan);
  plan_bias(kHead, spec.outputs, recipe, plan);
  return plan;
}

Mlp::Mlp(const MlpSpec& spec, const Recipe& recipe, std::optional<std::uint64_t> seed)
    : spec_(spec), compute_(recipe.compute) {
  for (const ParameterSpec& parameter : plan_mlp(spec, recipe)) parameters_.add(parameter, seed);
  for (std::size_t i = 0; i < spec.hidden.size(); ++i) {
    layers_.push_back(bind_layer(parameters_, layer_name(i)));
    dropout_streams_.push_back(random_stream(layer_name(i) + ".dropout"));
  }
  layers_.push_back(bind_layer(parameters_, kHead));
}

Var Mlp::normalize(Tape& tape, const LayerParameters& layer, const Var& x) const {
  switch (spec_.norm) {
    case Norm::kNone:
      return add_bias(tape, x, *layer.bias);
    case Norm::kLayer:
      return layer_norm(tape, x, *layer.norm.gain, *layer.norm.bias);
    case Norm::kRms:
      return rms_norm(tape, x, *layer.norm.gain);
    case Norm::kBatch:
      break;
  }
  return batch_norm_inference(tape, x, layer.norm, rectify());
}

Var Mlp::activate(Tape& tape, const Var& x) const {
  switch (spec_.activation) {
    case Activation::kSquaredRelu:
      return squared_relu(tape, x);
    case Activation::kTanh:
      return tanh(tape, x);
    case Activation::kRelu:
      break;
  }
  return relu(tape, x);
}

bool Mlp::trains_in_integers() const {
  return rectifies_in_norm() && spec_.dropout == 0.0f &&
         std::all_of(layers_.begin(), layers_.end(), [&](const LayerParameters& layer) {
           return in_integers(*layer.weight, layer.scale, compute_);
         });
}

Var Mlp::forward_in_integers(Tape& tape, const Var& x) const {
  QuantizedVar h = quantize(tape, x);
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    const LayerParameters& layer = layers_[i];
    h = linear_batch_norm(tape, h, *layer.weight, layer.scale, layer.norm, rectify());
  }
  const LayerParameters& head = layers_.back();
  return linear(tape, h, *head.weight, head.scale);
}

Var Mlp::forward(Tape& tape, const Tensor& x, const ForwardMode& mode) {
  const LayerParameters& head = layers_.back();
  Var h = tape.constant(x);
  const auto pass_on = [&](const Var& y) {
    tape.release(h);
    h = y;
  };
  if (mode.training && trains_in_integers()) {
    h = forward_in_integers(tape, h);
  } else {
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
      const LayerParameters& layer = layers_[i];
      if (mode.training && spec_.norm == Norm::kBatch) {
        pass_on(linear_batch_norm(tape, h, *layer.weight, layer.scale, compute_, layer.norm,
                                  rectify()));
      } else {
        pass_on(linear(tape, h, *layer.weight, layer.scale, compute_));
        pass_on(normalize(tape, layer, h));
      }
      if (!rectifies_in_norm()) pass_on(activate(tape, h));
      if (mode.training && spec_.dropout > 0.0f) {
        pass_on(dropout(tape, h, spec_.dropout,
                        {mode.key.seed, dropout_streams_[i] + mode.key.stream, mode.key.step}));
      }
    }
    pass_on(linear(tape, h, *head.weight, head.scale, compute_));
  }
  pass_on(add_bias(tape, h, *head.bias));
  return h;
}

}  // namespace tritgrad
