#include "models/export/npz.h"

#include <algorithm>
#include <span>

#include "engine/check.h"
#include "engine/data/npy_writer.h"
#include "engine/files/zip.h"
#include "models/export/network_arrays.h"

namespace tritgrad {
namespace {

class ArrayWriter {
 public:
  ArrayWriter(const InferenceNetwork& network, const ExportHead& head)
      : network_(network), head_(head) {}

  std::string write() {
    add("format", write_npy_text("tritgrad.npz 1"));
    add("provenance", write_npy_texts(head_.provenance));
    inputs();
    layers();
    if (network_.is_regression()) {
      add("target.mean", write_npy({}, std::span(&network_.target_scale.mean, 1)));
      add("target.deviation", write_npy({}, std::span(&network_.target_scale.deviation, 1)));
    } else {
      add("class_names", write_npy_texts(network_.class_names));
    }
    return write_zip(entries_, head_.provenance.empty() ? "" : head_.provenance.back());
  }

 private:
  void add(const std::string& name, std::string bytes) {
    entries_.push_back({name + ".npy", std::move(bytes)});
  }

  // They are in double, in which inputs are standardised.
  void inputs() {
    const auto in_double = [&](const char* name, const auto& numbers) {
      const std::vector<double> wide(numbers.begin(), numbers.end());
      add(name, write_npy({std::ssize(wide)}, wide));
    };
    in_double("input.offset", network_.offsets.empty() ? std::vector<double>{0.0}  // of all
                                                       : network_.offsets);
    if (!network_.fills.empty()) in_double("input.fill", network_.fills);
    in_double("input.mean", network_.means);
    in_double("input.inverse_std", network_.inverse_stds);
    add("input.square_roots", write_npy_truth(network_.square_roots));
    if (network_.table) add("feature_names", write_npy_texts(network_.table->feature_names()));
  }

  void layers() {
    std::vector<std::string> names;
    std::string block;  // the layer that began it
    for (const InferenceLayer& layer : network_.layers) {
      if (layer.has_product()) {
        names.push_back(layer.product.name);
        product(layer);
        norm_and_activation(layer);
        if (layer.begins_block) block = layer.product.name;
        if (layer.ends_block) add(layer.product.name + ".adds_input_of", write_npy_text(block));
      } else {
        names.push_back(layer.kind == InferenceLayer::Kind::kMaxPool ? "max_pool" : "average_pool");
      }
    }
    add("layers", write_npy_texts(names));
    const InferenceLayer& first = network_.layers.front();
    if (first.kind == InferenceLayer::Kind::kLinear) return;
    const std::vector<std::int64_t> sides{first.image.height, first.image.width,
                                          first.image.channels};
    add("input.image", write_npy({3}, sides));
  }

  void product(const InferenceLayer& layer) {
    const InferenceProduct& w = layer.product;
    std::vector<std::int64_t> extents{w.outputs, w.inputs};
    if (layer.kind == InferenceLayer::Kind::kConvolution) {
      extents = {w.outputs, kWindowSide, kWindowSide, layer.image.channels};
      if (layer.stride > 1) add(w.name + ".stride", write_npy({}, std::span(&layer.stride, 1)));
    }
    add(w.name + ".rounds_inputs", write_npy_truth(w.in_integers));
    add(w.name + ".weight", write_npy(extents, decoded_weights(w)));
    if (w.trits.empty()) return;
    add(w.name + ".trits", write_npy(extents, std::span(w.trits)));
    const std::vector<std::uint8_t> packed = pack_trits(w.trits, w.inputs, kBase3Digits, 1);
    add(w.name + ".packed", write_npy({w.outputs, kBase3Digits.bytes_of(w.inputs)}, packed));
    add(w.name + ".scales", write_npy({w.outputs, w.groups()}, w.scales));
    const std::int64_t group = std::min(w.group, w.inputs);
    add(w.name + ".group", write_npy({}, std::span(&group, 1)));
  }

  void norm_and_activation(const InferenceLayer& layer) {
    const std::string& name = layer.product.name;
    add(name + ".norm", write_npy_text(std::string(kNorms.name(layer.norm))));
    for (const auto& [what, numbers] : norm_vectors(layer)) {
      if (!numbers.empty()) add(concat(name, ".", what), write_npy({std::ssize(numbers)}, numbers));
    }
    add(name + ".activation",
        write_npy_text(
            std::string(layer.activation ? kActivations.name(*layer.activation) : "none")));
  }

  const InferenceNetwork& network_;
  const ExportHead& head_;
  std::vector<ZipEntry> entries_;
};

}  // namespace

void check_npz(const InferenceNetwork& network, const ExportHead&) {
  check_as_arrays(network, ".npz");
}

ExportBytes npz_bytes(const InferenceNetwork& network, const ExportSettings&) {
  ExportBytes bytes = bytes_without_trits(network);
  for (const InferenceLayer& layer : network.layers) {
    const InferenceProduct& w = layer.product;
    if (w.trits.empty()) continue;
    const auto trits = std::ssize(w.trits);
    bytes.weights += trits * static_cast<std::int64_t>(sizeof(float)) + trits +
                     w.outputs * kBase3Digits.bytes_of(w.inputs);
  }
  // What becomes of inputs is in double, and there is an offset in any case.
  const auto extra = std::ssize(network.fills) + (network.offsets.empty() ? 1 : 0);
  const auto widened = std::ssize(network.means) + std::ssize(network.inverse_stds);
  bytes.others += extra * static_cast<std::int64_t>(sizeof(double)) +
                  widened * static_cast<std::int64_t>(sizeof(double) - sizeof(float));
  return bytes;
}

std::string npz(const InferenceNetwork& network, const ExportHead& head, const ExportSettings&) {
  return ArrayWriter(network, head).write();
}

}  // namespace tritgrad
