#include "models/export/inference_network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/check.h"
#include "engine/data/split.h"
#include "engine/text.h"
#include "models/export/inference_norm.h"
#include "models/networks/conv_spec.h"
#include "ops/batch_norm.h"
#include "ops/conv2d.h"
#include "ops/pool.h"

namespace tritgrad {

std::int64_t InferenceLayer::outputs() const {
  switch (kind) {
    case Kind::kLinear:
      return product.outputs;
    case Kind::kConvolution:
      return convolved_image().size();
    case Kind::kMaxPool:
      return pooled(image).size();
    case Kind::kAveragePool:
      break;
  }
  return image.channels;
}

ImageShape InferenceLayer::convolved_image() const {
  return convolved(image, {kWindowSide, stride}, product.outputs);
}

std::int64_t InferenceNetwork::widest() const {
  std::int64_t most = inputs;
  for (const InferenceLayer& layer : layers) most = std::max(most, layer.outputs());
  return most;
}

std::int64_t InferenceNetwork::weights() const {
  std::int64_t sum = 0;
  for (const InferenceLayer& layer : layers) sum += layer.product.inputs * layer.product.outputs;
  return sum;
}

bool InferenceNetwork::is_exact() const {
  return std::all_of(layers.begin(), layers.end(), [](const InferenceLayer& layer) {
    return !layer.has_product() || layer.product.in_integers;
  });
}

double InferenceNetwork::tolerance(double largest_logit) const {
  std::int64_t terms = 16;
  for (const InferenceLayer& layer : layers) terms += layer.product.inputs;
  return is_exact() ? 0.0
                    : 4.0 * static_cast<double>(terms) * 0x1p-24 * std::max(1.0, largest_logit);
}

// ---- description ----

namespace {

InferenceLayer describe_layer(const std::string& name, const LayerParameters& layer, Norm norm,
                              Compute compute) {
  InferenceLayer result{.product = describe_product(name, *layer.weight, layer.scale, compute),
                        .norm = norm};
  const BatchNormParameters& p = layer.norm;
  if (norm != Norm::kNone) result.gain = exported_values(*p.gain);
  if (norm == Norm::kNone) {
    result.bias = exported_values(*layer.bias);
  } else if (norm != Norm::kRms) {
    result.bias = exported_values(*p.bias);
  }
  if (norm == Norm::kBatch) {
    result.mean = exported_values(*p.running_mean);
    for (const float variance : exported_values(*p.running_var)) {
      result.inverse_std.push_back(1.0f / std::sqrt(variance + kBatchNormEps));
    }
  }
  return result;
}

using DescribeProduct = std::function<InferenceLayer(const std::string& name, Norm norm)>;

std::vector<InferenceLayer> describe_perceptron(const MlpSpec& spec,
                                                const DescribeProduct& describe) {
  std::vector<InferenceLayer> layers;
  for (std::size_t i = 0; i < spec.hidden.size(); ++i) {
    layers.push_back(describe(layer_name(i), spec.norm));
    layers.back().activation = spec.activation;
  }
  layers.push_back(describe(kHead, Norm::kNone));
  return layers;
}

std::vector<InferenceLayer> describe_stages(const ConvNetSpec& spec,
                                            const DescribeProduct& describe) {
  using Kind = InferenceLayer::Kind;
  std::vector<InferenceLayer> layers;
  std::size_t index = 0;
  bool reads_image = true;
  for (const ConvStage& stage : conv_stages(spec)) {
    InferenceLayer layer;
    if (stage.kind == ConvStage::Kind::kOutput) {
      layer = describe(kHead, Norm::kNone);
    } else if (stage.has_product()) {
      layer = describe(layer_name(index++), Norm::kBatch);
      layer.activation = Activation::kRelu;
    }
    if (reads_image) layer.image = stage.image;
    layer.stride = stage.stride;
    layer.begins_block = stage.begins_block;
    layer.ends_block = stage.ends_block;
    if (stage.kind == ConvStage::Kind::kConvolution) {
      layer.kind = Kind::kConvolution;
    } else if (stage.kind == ConvStage::Kind::kMaxPool) {
      layer.kind = Kind::kMaxPool;
    } else {
      reads_image = false;
      if (!stage.has_product()) layer.kind = Kind::kAveragePool;
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace

std::vector<InferenceLayer> describe_layers(const SavedModel& plan, Model& model) {
  const DescribeProduct describe = [&](const std::string& name, Norm norm) {
    return describe_layer(name, bind_layer(model.parameters(), name), norm, plan.recipe.compute);
  };
  if (plan.model.starts_with("mlp:")) {
    const MlpSpec spec = fit_mlp(parse_mlp(plan.model), plan.input.features, plan.outputs);
    return describe_perceptron(spec, describe);
  }
  return describe_stages(fit_conv(parse_conv(plan.model), plan.input, plan.outputs), describe);
}

namespace {

// Returns what is subtracted from each input; nothing where that is 0.
std::vector<double> input_offsets(const TableSchema& table) {
  std::vector<double> offsets(static_cast<std::size_t>(table.features()), 0.0);
  std::size_t at = 0;
  for (const TableFeature& column : table.columns) {
    offsets[at] = column.offset;
    at += static_cast<std::size_t>(column.width());
  }
  const bool none = std::all_of(offsets.begin(), offsets.end(), [](double x) { return x == 0.0; });
  return none ? std::vector<double>() : offsets;
}

// Returns InferenceNetwork::fills. Of words, the features are those of the word that fills.
std::vector<double> input_fills(const TableSchema& table) {
  std::vector<double> fills;
  for (const TableFeature& column : table.columns) {
    for (const std::string& word : column.words) {
      fills.push_back(column.fill_word.empty()   ? std::numeric_limits<double>::quiet_NaN()
                      : word == column.fill_word ? 1.0
                                                 : 0.0);
    }
    if (column.words.empty()) {
      fills.push_back(column.fill_number.value_or(std::numeric_limits<double>::quiet_NaN()));
    }
    if (column.has_indicator) fills.push_back(std::numeric_limits<double>::quiet_NaN());
  }
  const bool none = std::all_of(fills.begin(), fills.end(), [](double x) { return std::isnan(x); });
  return none ? std::vector<double>() : fills;
}

// Describes layers and inputs. The table of a network whose inputs are images is left out.
InferenceNetwork describe_whole(const SavedModel& plan, Model& model,
                                const Standardizer& standardizer, const TrainSpec& spec,
                                std::vector<std::string> class_names, const TableSchema& table) {
  InferenceNetwork network{.inputs = plan.input.features, .class_names = std::move(class_names)};
  if (plan.input.image.size() == 0) {
    network.table = table;
    network.offsets = input_offsets(table);
    network.fills = input_fills(table);
  }
  network.square_roots = spec.pixel_scale() == PixelScale::kSquareRoot;
  network.means = standardizer.means();
  network.inverse_stds = standardizer.inverse_stds();
  network.layers = describe_layers(plan, model);
  network.missing = parse_missing(spec.missing);
  network.image = plan.input.image;
  return network;
}

}  // namespace

InferenceNetwork describe_network(const SavedRun& saved, const LoadedModel& loaded) {
  InferenceNetwork network = describe_whole(loaded.plan, *loaded.model, loaded.standardizer,
                                            saved.spec(), saved.class_names(), saved.table());
  network.target_scale = loaded.target_scale;
  return network;
}

InferenceNetwork describe_untrained(const SavedModel& plan, const Dataset& dataset,
                                    const TrainSpec& asked) {
  const TrainSpec spec = with_defaults(asked, dataset);
  const auto model = make_model(plan.model, plan.input, plan.outputs, plan.recipe, 1);
  const Standardizer standardizer =
      Standardizer::fit(dataset, fixed_split(dataset).train, spec.pixel_scale());
  return describe_whole(plan, *model, standardizer, spec, dataset.class_names,
                        dataset.schema == nullptr ? TableSchema() : *dataset.schema);
}

// ---- reference ----

namespace {

using RowOfFloats = std::vector<float>;

RowOfFloats standardize_row(const InferenceNetwork& network, std::span<const float> features) {
  constexpr double kMost = std::numeric_limits<float>::max();
  RowOfFloats x;
  x.reserve(features.size());
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::size_t at = network.means.size() == 1 ? 0 : i;
    const float value = network.square_roots ? std::sqrt(features[i]) : features[i];
    const double z = (static_cast<double>(value) - static_cast<double>(network.means[at])) *
                     static_cast<double>(network.inverse_stds[at]);
    x.push_back(std::isnan(value) ? 0.0f : static_cast<float>(std::clamp(z, -kMost, kMost)));
  }
  return x;
}

// Returns the window of which a convolution makes this pixel, with zeros for what is outside the
// image.
template <typename Number>
std::vector<Number> window_of(const InferenceLayer& layer, std::int64_t pixel,
                              const std::vector<Number>& x) {
  constexpr std::int64_t kHalf = kWindowSide / 2;
  const ImageShape& image = layer.image;
  const std::int64_t width = layer.convolved_image().width;
  const std::int64_t row = pixel / width * layer.stride, column = pixel % width * layer.stride;
  std::vector<Number> window;
  window.reserve(static_cast<std::size_t>(kWindowPixels * image.channels));
  for (std::int64_t i = row - kHalf; i <= row + kHalf; ++i) {
    for (std::int64_t j = column - kHalf; j <= column + kHalf; ++j) {
      const bool inside = i >= 0 && i < image.height && j >= 0 && j < image.width;
      for (std::int64_t c = 0; c < image.channels; ++c) {
        const auto at = static_cast<std::size_t>((i * image.width + j) * image.channels + c);
        window.push_back(inside ? x[at] : Number{});
      }
    }
  }
  return window;
}

// Returns the product of x, or of each of its windows.
RowOfFloats multiply_layer(const InferenceLayer& layer, const RowOfFloats& x) {
  const InferenceProduct& w = layer.product;
  if (layer.kind == InferenceLayer::Kind::kLinear) return multiply_row(w, x);
  const RoundedRow rounded = w.in_integers ? round_to_int8(x) : RoundedRow();
  RowOfFloats y;
  y.reserve(static_cast<std::size_t>(layer.outputs()));
  for (std::int64_t pixel = 0; pixel < layer.convolved_image().pixels(); ++pixel) {
    const RowOfFloats part =
        w.in_integers
            ? multiply_in_integers(w, window_of(layer, pixel, rounded.codes), rounded.scale)
            : multiply_in_floats(w, window_of(layer, pixel, x));
    y.insert(y.end(), part.begin(), part.end());
  }
  return y;
}

RowOfFloats max_of_pixels(const ImageShape& image, const RowOfFloats& x) {
  const std::int64_t line = image.width * image.channels;
  RowOfFloats y;
  y.reserve(static_cast<std::size_t>(pooled(image).size()));
  for (std::int64_t i = 0; i + 1 < image.height; i += 2) {
    for (std::int64_t j = 0; j + 1 < image.width; j += 2) {
      for (std::int64_t c = 0; c < image.channels; ++c) {
        const float* at = x.data() + i * line + j * image.channels + c;
        y.push_back(std::max({at[0], at[image.channels], at[line], at[line + image.channels]}));
      }
    }
  }
  return y;
}

RowOfFloats mean_of_pixels(const ImageShape& image, const RowOfFloats& x) {
  RowOfFloats y;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    double sum = 0.0;
    for (std::int64_t pixel = 0; pixel < image.pixels(); ++pixel) {
      sum += static_cast<double>(x[static_cast<std::size_t>(pixel * image.channels + c)]);
    }
    y.push_back(static_cast<float>(sum / static_cast<double>(image.pixels())));
  }
  return y;
}

void normalize_layer(const InferenceLayer& layer, RowOfFloats& x) {
  if (layer.norm == Norm::kLayer) return layer_norm_row(x, layer.gain, layer.bias);
  if (layer.norm == Norm::kRms) return rms_norm_row(x, layer.gain);
  for (std::size_t at = 0; at < x.size(); ++at) {
    const std::size_t i = at % layer.bias.size();  // of all pixels, the channel
    if (layer.norm == Norm::kBatch) {
      x[at] = (x[at] - layer.mean[i]) * layer.inverse_std[i] * layer.gain[i];
    }
    x[at] += layer.bias[i];
  }
}

// Returns e^x for x in [0, 20].
float exp_of_small(float x) {
  constexpr float kWhole = 0x1.8p23f;  // what it is added to loses its fraction
  const float k = (x * 1.44269504f + kWhole) - kWhole;
  const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;  // ln 2 in two parts
  float p = 1.9875691500e-4f;
  for (const float c :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = p * r + c;
  }
  return (p * (r * r) + r + 1.0f) * std::ldexp(1.0f, static_cast<int>(k));
}

float tanh_of(float x) {
  const float limited = std::min(std::abs(x), 10.0f);  // tanh is 1 from 9.02 on
  if (limited >= 0.625f) {
    return std::copysign(1.0f - 2.0f / (exp_of_small(2.0f * limited) + 1.0f), x);
  }
  const float z = limited * limited;
  float p = -5.70498872745e-3f;
  for (const float c :
       {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f}) {
    p = p * z + c;
  }
  return std::copysign(p * z * limited + limited, x);
}

float activated(Activation activation, float x) {
  if (activation == Activation::kTanh) return tanh_of(x);
  if (x < 0.0f) return 0.0f;
  return activation == Activation::kSquaredRelu ? x * x : x;
}

}  // namespace

std::vector<float> infer(const InferenceNetwork& network, std::span<const float> features) {
  check(std::ssize(features) == network.inputs, "infer: ", features.size(), " features found, ",
        network.inputs, " expected");
  RowOfFloats x = standardize_row(network, features), kept;
  for (const InferenceLayer& layer : network.layers) {
    if (!layer.has_product()) {
      x = layer.kind == InferenceLayer::Kind::kMaxPool ? max_of_pixels(layer.image, x)
                                                       : mean_of_pixels(layer.image, x);
      continue;
    }
    if (layer.begins_block) kept = x;
    x = multiply_layer(layer, x);
    normalize_layer(layer, x);
    if (layer.ends_block) std::transform(x.begin(), x.end(), kept.begin(), x.begin(), std::plus());
    if (!layer.activation) continue;
    for (float& each : x) each = activated(*layer.activation, each);
  }
  return x;
}

}  // namespace tritgrad
