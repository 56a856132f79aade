// What a trained network computes of one row of features, in the order of our own inference: the
// description that every target of an export is written from.
//
// The last layer makes the logits of classes, or the one standardised value of a regression, which
// target_scale brings into the units of the label, in double.
//
// It is made from a model once. infer() is its meaning, in plain loops: a target that does the same
// operations in the same order, each rounded to its type, gives the same bits. Logits of our own
// inference are these bits where all products are in integers (is_exact()); products in floats are
// sums that each instruction set adds up in an order of its own, and agree within tolerance().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/data/image_shape.h"
#include "engine/data/table_schema.h"
#include "engine/data/targets.h"
#include "models/export/image_extent.h"
#include "models/export/inference_product.h"
#include "models/networks/mlp.h"
#include "models/networks/model.h"
#include "models/training/evaluate.h"
#include "models/training/saved_run.h"

namespace tritgrad {

// The side of a convolution's windows.
inline constexpr std::int64_t kWindowSide = 3;
inline constexpr std::int64_t kWindowPixels = kWindowSide * kWindowSide;

// A product, a norm (kNone: `bias` is added) and perhaps an activation; or pooling. Between norm
// and activation of the layer that ends a block, what the one that begins it read is added.
struct InferenceLayer {
  enum class Kind {
    kLinear,
    kConvolution,  // the product of the window around each pixel (ops/conv2d.h), 0 outside the
                   // image
    kMaxPool,      // the largest of 2 x 2 pixels (ops/pool.h)
    kAveragePool,  // the mean over all pixels, in double
  };
  Kind kind = Kind::kLinear;
  ImageShape image = {};    // that is read; of kLinear, where its row is one
  std::int64_t stride = 1;  // of kConvolution: the pixels between its windows
  InferenceProduct product = {};
  Norm norm = Norm::kNone;
  std::vector<float> mean = {}, inverse_std = {};  // of the columns, with batch norm
  std::vector<float> gain = {}, bias = {};  // gain: with any norm; bias: with all but RMS norm
  std::optional<Activation> activation = {};
  bool begins_block = false, ends_block = false;

  bool has_product() const { return kind == Kind::kLinear || kind == Kind::kConvolution; }
  // Returns how many numbers it reads and makes.
  std::int64_t inputs() const { return kind == Kind::kLinear ? product.inputs : image.size(); }
  std::int64_t outputs() const;
  // What a convolution makes.
  ImageShape convolved_image() const;
};

struct InferenceNetwork {
  std::int64_t inputs = 0;
  std::vector<std::string> class_names = {};  // empty: a regression
  std::optional<TableSchema> table = {};  // whose rows become features; none: features are given
  std::vector<double> offsets = {};       // subtracted from inputs in double; empty: none
  bool square_roots = false;              // of inputs, which are pixels
  std::vector<float> means = {}, inverse_stds = {};  // of inputs; a single one is that of all
  std::vector<InferenceLayer> layers = {};           // the last one makes the outputs
  TargetScale target_scale = {};                     // of a regression
  // What stands for a missing input, as the data have it, before offsets are subtracted; NaN: the
  // mean does. Empty where that is so of all.
  std::vector<double> fills = {};
  MissingCells missing = MissingCells::kRefuse;  // what became of a table's missing cells
  ImageShape image = {};                         // that the inputs are; of size 0: they are none
  ImageExtent extent = {};                       // of images, for targets that show them

  std::int64_t classes() const { return static_cast<std::int64_t>(class_names.size()); }
  bool is_regression() const { return class_names.empty(); }
  std::int64_t outputs() const { return is_regression() ? 1 : classes(); }
  // Returns the most numbers that a layer reads or makes.
  std::int64_t widest() const;
  std::int64_t weights() const;
  bool is_exact() const;
  // Returns by how much the logits of a row may differ, where the largest of them has this
  // magnitude: each operation of the longest chain of sums adds a relative error of 2^-24, counted
  // four times over for what norms and activations make of it.
  double tolerance(double largest_logit) const;
};

// Describes the layers of a model of this plan. Throws Error for numbers that are not finite.
std::vector<InferenceLayer> describe_layers(const SavedModel& plan, Model& model);

// Describes a saved model with what becomes of its inputs.
InferenceNetwork describe_network(const SavedRun& saved, const LoadedModel& loaded);

// Describes a model that has not been trained on the data yet, as the spec says. Its sizes are
// those of the trained one.
InferenceNetwork describe_untrained(const SavedModel& plan, const Dataset& dataset,
                                    const TrainSpec& spec);

// Returns the outputs of a row of features, as data sets have them: missing numbers and words that
// have a fill are filled and offsets are subtracted already, and NaN is the mean.
std::vector<float> infer(const InferenceNetwork& network, std::span<const float> features);

}  // namespace tritgrad
