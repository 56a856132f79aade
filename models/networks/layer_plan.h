// The parts from which models plan their layers, a matrix, its scale, a norm, a bias, and the
// reading of spec texts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/names.h"
#include "models/recipes/recipe.h"
#include "ops/batch_norm.h"

namespace tritgrad {

enum class Norm { kNone, kBatch, kLayer, kRms };
inline constexpr Names<Norm, 4> kNorms{"norm",
                                       {{{Norm::kBatch, "batch"},
                                         {Norm::kLayer, "layer"},
                                         {Norm::kRms, "rms"},
                                         {Norm::kNone, "none"}}}};

// Returns the parts between separators; one part where there is none.
std::vector<std::string> split(const std::string& text, char separator);

// Reads a width of model `where`. Throws Error, which ends with `hint`, when it is none.
std::int64_t parse_width(const std::string& text, const std::string& where, const char* hint = "");

inline constexpr std::int64_t kMostWidth = 1 << 24;

// Reads the share of numbers that dropout leaves out. Throws Error unless it is in [0, 1).
float parse_dropout(const std::string& text);

// Calls body(key, value) for parts 1, 2, ... of a spec text, which are "key=value". Throws Error,
// which names the text, where a key stands twice and where body() does.
void for_each_option(
    const std::string& text, const std::vector<std::string>& parts,
    const std::function<void(const std::string& key, const std::string& value)>& body);

// Returns the name of a layer; "layers.0" is the first.
std::string layer_name(std::size_t index);

// Adds PREFIX.weight, [outputs x inputs], and PREFIX.scale where the format keeps bare trits.
// Outputs begin with variance gain^2 * E[x^2]. kParts: see ParameterSpec::gradient_in_parts.
enum class GradientComes { kWhole, kParts };
void plan_matrix(const std::string& prefix, std::int64_t inputs, std::int64_t outputs, float gain,
                 const Recipe& recipe, std::vector<ParameterSpec>& plan,
                 GradientComes gradient = GradientComes::kWhole);
// Adds PREFIX.norm.*, or PREFIX.bias without a norm.
void plan_norm(const std::string& prefix, Norm norm, std::int64_t width, const Recipe& recipe,
               std::vector<ParameterSpec>& plan);
void plan_bias(const std::string& prefix, std::int64_t width, const Recipe& recipe,
               std::vector<ParameterSpec>& plan);

// Adds PREFIX.weight, [tokens x width] of Role::kEmbedding: a row for each token of a vocabulary,
// that the token becomes or by which its logit is made.
void plan_embedding(const std::string& prefix, std::int64_t tokens, std::int64_t width,
                    const Recipe& recipe, std::vector<ParameterSpec>& plan);

// The parameters of one layer, wherever its plan has them; others are null.
struct LayerParameters {
  Parameter* weight;
  Parameter* scale;
  Parameter* bias;
  BatchNormParameters norm;
};
LayerParameters bind_layer(ParameterStore& parameters, const std::string& prefix);

}  // namespace tritgrad
