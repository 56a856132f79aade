// Multi-layer perceptron: hidden layers linear -> norm -> activation (-> dropout), then linear +
// bias.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/names.h"
#include "models/networks/layer_plan.h"
#include "models/networks/model.h"

namespace tritgrad {

enum class Activation { kRelu, kSquaredRelu, kTanh };
inline constexpr Names<Activation, 3> kActivations{"activation",
                                                   {{{Activation::kRelu, "relu"},
                                                     {Activation::kSquaredRelu, "squared_relu"},
                                                     {Activation::kTanh, "tanh"}}}};

struct MlpSpec {
  std::int64_t inputs = 0;   // 0: taken from the data
  std::int64_t outputs = 0;  // 0: taken from the data
  std::vector<std::int64_t> hidden;
  Norm norm = Norm::kBatch;
  Activation activation = Activation::kRelu;
  float dropout = 0.0f;
};

// Reads "mlp:512,512" (hidden widths; inputs and outputs come from the data) or
// "mlp:784-512-512-10" (all widths), followed by options ":norm=batch|layer|rms|none",
// ":activation=relu|squared_relu|tanh",
// ":dropout=P". "mlp:" alone is a linear classifier.
// Throws Error that names the part that cannot be read.
MlpSpec parse_mlp(const std::string& text);

// Fills in inputs and outputs; throws Error when they contradict what the spec says.
MlpSpec fit_mlp(MlpSpec spec, std::int64_t inputs, std::int64_t outputs);

std::vector<ParameterSpec> plan_mlp(const MlpSpec& spec, const Recipe& recipe);

class Mlp : public Model {
 public:
  // `spec` must be complete (inputs and outputs set).
  Mlp(const MlpSpec& spec, const Recipe& recipe, std::optional<std::uint64_t> seed);

  Var forward(Tape& tape, const Tensor& x, const ForwardMode& mode) override;

 private:
  // Runs the forward pass in training where all layers multiply in integers and nothing but batch
  // norm with a rectifier lies between them: activations are rounded as they come about.
  Var forward_in_integers(Tape& tape, const Var& x) const;
  bool trains_in_integers() const;
  // Batch norm normalizes by its running statistics here.
  Var normalize(Tape& tape, const LayerParameters& layer, const Var& x) const;
  Var activate(Tape& tape, const Var& x) const;
  Rectify rectify() const { return rectifies_in_norm() ? Rectify::kYes : Rectify::kNo; }
  bool rectifies_in_norm() const {
    return spec_.norm == Norm::kBatch && spec_.activation == Activation::kRelu;
  }

  MlpSpec spec_;
  Compute compute_;
  std::vector<LayerParameters> layers_;  // hidden layers, then the head
  std::vector<std::uint32_t> dropout_streams_;
};

}  // namespace tritgrad
