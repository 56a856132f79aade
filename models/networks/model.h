// A model: parameters and a forward pass.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/data/dataset.h"
#include "engine/tape.h"
#include "models/recipes/recipe.h"

namespace tritgrad {

// The input of a model: rows of so many features, which may be images. 0 means not known.
struct ModelInput {
  std::int64_t features = 0;
  ImageShape image = {};
  bool is_no_text = false;  // false, too, where that is not known

  // Whoever has only a number of features, or the data themselves, names just that.
  ModelInput(std::int64_t count) : features(count) {}  // NOLINT(google-explicit-constructor)
  ModelInput(const Dataset& data)                      // NOLINT(google-explicit-constructor)
      : features(data.features), image(data.image), is_no_text(!data.is_text()) {}
  ModelInput(std::int64_t count, const ImageShape& shape) : features(count), image(shape) {}
};

struct ForwardMode {
  bool training = false;
  // The key of dropout masks: seed, step, and in `stream` the part of the batch; each layer adds a
  // stream of its own.
  RandomKey key = {};
  // Of what a layer makes, keep nothing for backward, which computes it again.
  bool recompute = false;
};

class Model {
 public:
  virtual ~Model() = default;

  ParameterStore& parameters() { return parameters_; }
  const ParameterStore& parameters() const { return parameters_; }

  // Maps x [n, inputs] to logits [n, outputs], or, of a language model, those of every token.
  virtual Var forward(Tape& tape, const Tensor& x, const ForwardMode& mode) = 0;

 protected:
  ParameterStore parameters_;
};

// Returns all parameters that `spec` has under `recipe`, in order, and allocates none: inspect
// forecasts from them.
std::vector<ParameterSpec> plan_model(const std::string& spec, const ModelInput& input,
                                      std::int64_t outputs, const Recipe& recipe);

// Counts the multiplications of one weight by one number that a forward pass takes for each row.
double products_per_row(const std::string& spec, const ModelInput& input, std::int64_t outputs,
                        const Recipe& recipe);

// Returns whether a model of the spec leaves numbers out in training.
bool has_dropout(const std::string& spec);

// Makes the model of a spec, see parse_mlp(), parse_conv() and parse_llama(). Weights begin as
// numbers keyed by `seed`; without one all bytes are 0, for a checkpoint to be loaded into. Throws
// Error when the spec cannot be read or does not fit input and outputs.
std::unique_ptr<Model> make_model(const std::string& spec, const ModelInput& input,
                                  std::int64_t outputs, const Recipe& recipe,
                                  std::optional<std::uint64_t> seed);

// Makes the optimizer that the recipe asks for.
Optimizer make_optimizer(Model& model, const Recipe& recipe, std::int64_t total_steps,
                         std::uint64_t seed);

}  // namespace tritgrad
