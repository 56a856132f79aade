// What every model offers: parameters and a forward pass.
#pragma once

#include <memory>
#include <string>

#include "engine/tape.h"
#include "models/recipe.h"

namespace tritgrad {

struct ForwardMode {
  bool training = false;
  // Of dropout masks: seed, step, and in `stream` the part of the batch; each layer adds a stream
  // of its own.
  RandomKey key = {};
};

class Model {
 public:
  virtual ~Model() = default;

  ParameterStore& parameters() { return parameters_; }
  const ParameterStore& parameters() const { return parameters_; }

  // x [n, inputs] -> logits [n, outputs]
  virtual Var forward(Tape& tape, const Tensor& x, const ForwardMode& mode) = 0;

 protected:
  ParameterStore parameters_;
};

// All parameters that `spec` has under `recipe`, in order, and no memory: what inspect forecasts
// from.
std::vector<ParameterSpec> plan_model(const std::string& spec, std::int64_t inputs,
                                      std::int64_t outputs, const Recipe& recipe);

// `spec`: see parse_mlp(). Weights begin as numbers keyed by `seed`.
// Throws Error when the spec cannot be read or does not fit inputs and outputs.
std::unique_ptr<Model> make_model(const std::string& spec, std::int64_t inputs,
                                  std::int64_t outputs, const Recipe& recipe, std::uint64_t seed);

// The optimizer that the recipe asks for.
Optimizer make_optimizer(Model& model, const Recipe& recipe, std::int64_t total_steps,
                         std::uint64_t seed);

}  // namespace tritgrad
