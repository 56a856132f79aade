#include "models/export/pytorch_safetensors.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/check.h"
#include "engine/files/checkpoint.h"
#include "engine/files/safetensors.h"
#include "models/export/network_arrays.h"

namespace tritgrad {
namespace {

using TensorExtents = std::vector<std::uint64_t>;

// This is what PyTorch's batch norms add to a variance where nothing else is said.
constexpr double kTorchBatchNormEps = 1e-5;

// Returns what PyTorch takes the inverse standard deviation from, 1 / sqrt(running_var + eps). Its
// rounding to fp32 moves that by less than a unit in the last place: at most 2^-24 of running_var +
// eps, and half of it in the root. A variance of 0 may come out below, by the rounding of
// inverse_std.
float running_var_of(float inverse_std, double eps) {
  const double inverse = static_cast<double>(inverse_std);
  return static_cast<float>(std::max(0.0, 1.0 / (inverse * inverse) - eps));
}

class SequentialWriter {
 public:
  explicit SequentialWriter(const InferenceNetwork& network) : network_(network) {
    inputs();
    for (const InferenceLayer& each : network_.layers) layer(each);
  }

  ExportBytes bytes() const { return bytes_; }

  std::string write(const ExportHead& head) const {
    std::string sentences;
    for (const std::string& sentence : head.provenance) {
      sentences += (sentences.empty() ? "" : "\n") + sentence;
    }
    Metadata metadata{
        {"format", "pt"},
        {kExportKey, "pytorch 1"},
        {"network", "nn.Sequential(" + joined(modules_) + ")"},
        {"rounds_inputs", rounding_.dump()},
        {"class_names", nlohmann::json(network_.class_names).dump()},
        {"input.offset", network_.offsets.empty() ? "0" : nlohmann::json(network_.offsets).dump()},
        {"input.square_roots", network_.square_roots ? "true" : "false"},
        {"provenance", sentences}};
    if (network_.is_regression()) {
      metadata["target.mean"] = nlohmann::json(network_.target_scale.mean).dump();
      metadata["target.deviation"] = nlohmann::json(network_.target_scale.deviation).dump();
    }
    if (!network_.fills.empty()) metadata["input.fill"] = nlohmann::json(network_.fills).dump();
    if (network_.table) {
      metadata["feature_names"] = nlohmann::json(network_.table->feature_names()).dump();
    }
    return safetensors_bytes(tensors_, metadata, "export");
  }

 private:
  static std::string joined(const std::vector<std::string>& modules) {
    std::string text;
    for (const std::string& module : modules) text += (text.empty() ? "" : ", ") + module;
    return text;
  }

  // Appends a module, whose parameters come first, to the network or the residual block.
  void module(const std::string& text) { (in_block_ ? block_ : modules_).push_back("nn." + text); }

  // Returns the name of the module that comes next.
  std::string place() const {
    return in_block_ ? concat(modules_.size(), ".", block_.size()) : concat(modules_.size());
  }

  // A block adds what it reads to what its modules make of it.
  void end_block() {
    in_block_ = false;
    modules_.push_back("Residual(" + joined(block_) + ")");
    block_.clear();
  }

  std::int64_t tensor(const char* name, const TensorExtents& shape,
                      const std::vector<float>& numbers) {
    const std::vector<float>& kept = numbers_.emplace_back(numbers);
    const auto bytes = std::as_bytes(std::span(kept));
    tensors_.push_back({concat(place(), ".", name), Dtype::kF32, shape, bytes});
    return std::ssize(bytes);
  }
  std::int64_t vector(const char* name, const std::vector<float>& numbers) {
    return tensor(name, {numbers.size()}, numbers);
  }

  // PyTorch counts batches, although nothing reads the count.
  void batch_statistics(const std::vector<float>& means, const std::vector<float>& inverse_stds,
                        double eps) {
    static constexpr std::int64_t kBatches = 0;
    std::vector<float> variances;
    for (const float each : inverse_stds) variances.push_back(running_var_of(each, eps));
    bytes_.others += vector("running_mean", means) + vector("running_var", variances);
    tensors_.push_back({place() + ".num_batches_tracked",
                        Dtype::kI64,
                        {},
                        std::as_bytes(std::span(&kBatches, 1))});
    bytes_.others += static_cast<std::int64_t>(sizeof kBatches);
  }

  // Inputs go through a batch norm without gain, and those that are images become the rows of
  // channels that PyTorch reads.
  void inputs() {
    const InferenceLayer& first = network_.layers.front();
    const bool is_image = first.kind != InferenceLayer::Kind::kLinear;
    const auto of_inputs = [&](std::vector<float> numbers) {
      if (numbers.size() == 1) {
        numbers.resize(static_cast<std::size_t>(network_.inputs), numbers[0]);
      }
      return is_image ? channels_first(numbers, first.image.channels, first.image.pixels())
                      : numbers;
    };
    batch_statistics(of_inputs(network_.means), of_inputs(network_.inverse_stds), 0.0);
    module(concat("BatchNorm1d(", network_.inputs, ", eps=0.0, affine=False)"));
    if (!is_image) return;
    module(concat("Unflatten(1, (", first.image.channels, ", ", first.image.height, ", ",
                  first.image.width, "))"));
  }

  void layer(const InferenceLayer& layer) {
    switch (layer.kind) {
      case InferenceLayer::Kind::kMaxPool:
        return module("MaxPool2d(2)");
      case InferenceLayer::Kind::kAveragePool:
        module("AdaptiveAvgPool2d(1)");
        return module("Flatten()");
      default:
        break;
    }
    in_block_ = in_block_ || layer.begins_block;
    product(layer);
    norm(layer);
    if (layer.ends_block) end_block();
    if (layer.activation) activation(*layer.activation);
  }

  void activation(Activation activation) {
    switch (activation) {
      case Activation::kRelu:
        return module("ReLU()");
      case Activation::kTanh:
        return module("Tanh()");
      case Activation::kSquaredRelu:
        modules_.emplace_back("SquaredReLU()");
    }
  }

  void product(const InferenceLayer& layer) {
    const InferenceProduct& w = layer.product;
    const bool has_bias = layer.norm == Norm::kNone;
    const char* bias = has_bias ? ")" : ", bias=False)";
    const auto extent = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    const bool is_linear = layer.kind == InferenceLayer::Kind::kLinear;
    const bool reads_pixels = is_linear && layer.image.size() > 0;
    if (reads_pixels) module("Flatten()");
    if (w.in_integers) note_rounding();
    if (has_bias) bytes_.others += vector("bias", layer.bias);
    if (is_linear) {
      const std::vector<float> weights = decoded_weights(w);
      bytes_.weights +=
          tensor("weight", {extent(w.outputs), extent(w.inputs)},
                 reads_pixels ? channels_first(weights, layer.image.channels, layer.image.pixels())
                              : weights);
      return module(concat("Linear(", w.inputs, ", ", w.outputs, bias));
    }
    const std::int64_t channels = layer.image.channels;
    bytes_.weights += tensor(
        "weight", {extent(w.outputs), extent(channels), extent(kWindowSide), extent(kWindowSide)},
        channels_first(decoded_weights(w), channels, kWindowPixels));
    const std::string stride = layer.stride > 1 ? concat(", stride=", layer.stride) : "";
    module(concat("Conv2d(", channels, ", ", w.outputs, ", ", kWindowSide, stride,
                  ", padding=", kWindowSide / 2, bias));
  }

  // Modules of the network have numbers, and those within a block names such as "5.0".
  void note_rounding() {
    if (in_block_) {
      rounding_.push_back(place());
    } else {
      rounding_.push_back(modules_.size());
    }
  }

  void norm(const InferenceLayer& layer) {
    const std::int64_t width = layer.product.outputs;
    if (layer.norm == Norm::kNone) return;
    bytes_.others += vector("weight", layer.gain);
    if (layer.norm == Norm::kRms) return module(concat("RMSNorm(", width, ", eps=1e-6)"));
    bytes_.others += vector("bias", layer.bias);
    if (layer.norm == Norm::kLayer) return module(concat("LayerNorm(", width, ")"));
    batch_statistics(layer.mean, layer.inverse_std, kTorchBatchNormEps);
    const bool is_image = layer.kind == InferenceLayer::Kind::kConvolution;
    module(concat(is_image ? "BatchNorm2d(" : "BatchNorm1d(", width, ")"));
  }

  const InferenceNetwork& network_;
  std::vector<std::string> modules_, block_;  // block_: those of the residual block, within one
  bool in_block_ = false;
  nlohmann::json rounding_ = nlohmann::json::array();  // modules whose inputs are rounded
  std::deque<std::vector<float>> numbers_;             // of the tensors
  std::vector<StoredTensor> tensors_;
  ExportBytes bytes_;
};

}  // namespace

void check_pytorch_safetensors(const InferenceNetwork& network, const ExportHead&) {
  check_as_arrays(network, ".safetensors");
  for (const float each : network.inverse_stds) {
    const float variance = running_var_of(each, 0.0);
    check(
        std::isnormal(variance), "export: an input has a standard deviation of ", 1.0f / each,
        ", whose square fp32 cannot hold, as .safetensors must; scale it in the data, or use .npz");
  }
}

ExportBytes pytorch_safetensors_bytes(const InferenceNetwork& network, const ExportSettings&) {
  return SequentialWriter(network).bytes();
}

std::string pytorch_safetensors(const InferenceNetwork& network, const ExportHead& head,
                                const ExportSettings&) {
  return SequentialWriter(network).write(head);
}

}  // namespace tritgrad
