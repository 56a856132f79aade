#include "models/export/npz.h"

#include <algorithm>
#include <span>

#include "engine/check.h"
#include "engine/data/npy_writer.h"
#include "engine/files/zip.h"
#include "engine/text.h"
#include "models/export/decoded_weights.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kTritsOfPackedByte = 5;

std::int64_t base3_row_bytes(const InferenceProduct& product) {
  return (product.inputs + kTritsOfPackedByte - 1) / kTritsOfPackedByte;
}

// [outputs x base3_row_bytes]: the first trit of a byte is its lowest digit, and 0 is -1; behind
// the last trit of a row zeros follow.
std::vector<std::uint8_t> trits_in_base3(const InferenceProduct& product) {
  std::vector<std::uint8_t> packed;
  for (std::int64_t o = 0; o < product.outputs; ++o) {
    const std::int8_t* row = product.trits.data() + o * product.inputs;
    for (std::int64_t first = 0; first < product.inputs; first += kTritsOfPackedByte) {
      int byte = 0;
      for (std::int64_t i = first + kTritsOfPackedByte - 1; i >= first; --i) {
        byte = 3 * byte + (i < product.inputs ? row[i] + 1 : 1);
      }
      packed.push_back(static_cast<std::uint8_t>(byte));
    }
  }
  return packed;
}

class ArrayWriter {
 public:
  ArrayWriter(const InferenceNetwork& network, const ExportHead& head)
      : network_(network), head_(head) {}

  std::string write() {
    add("format", write_npy_text("tritgrad.npz 1"));
    add("provenance", write_npy_texts(head_.provenance));
    inputs();
    layers();
    add("class_names", write_npy_texts(network_.class_names));
    return write_zip(entries_, head_.provenance.empty() ? "" : head_.provenance.back());
  }

 private:
  void add(const std::string& name, std::string bytes) {
    entries_.push_back({name + ".npy", std::move(bytes)});
  }

  // In double, in which inputs are standardised.
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
    for (const InferenceLayer& layer : network_.layers) {
      if (layer.has_product()) {
        names.push_back(layer.product.name);
        product(layer);
        norm_and_activation(layer);
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
    }
    add(w.name + ".rounds_inputs", write_npy_truth(w.in_integers));
    add(w.name + ".weight", write_npy(extents, decoded_weights(w)));
    if (w.trits.empty()) return;
    add(w.name + ".trits", write_npy(extents, std::span(w.trits)));
    add(w.name + ".packed", write_npy({w.outputs, base3_row_bytes(w)}, trits_in_base3(w)));
    add(w.name + ".scales", write_npy({w.outputs, w.groups()}, w.scales));
    const std::int64_t group = std::min(w.group, w.inputs);
    add(w.name + ".group", write_npy({}, std::span(&group, 1)));
  }

  void norm_and_activation(const InferenceLayer& layer) {
    const std::string& name = layer.product.name;
    add(name + ".norm", write_npy_text(std::string(kNorms.name(layer.norm))));
    const std::pair<const char*, const std::vector<float>&> vectors[] = {
        {".mean", layer.mean},
        {".inverse_std", layer.inverse_std},
        {".gain", layer.gain},
        {".bias", layer.bias}};
    for (const auto& [what, numbers] : vectors) {
      if (!numbers.empty()) add(name + what, write_npy({std::ssize(numbers)}, numbers));
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
  for (const std::string& name : network.class_names) {
    check(is_utf8(name), "export: the class '", printable(name),
          "' is not UTF-8, as arrays of texts must be; train with --data in UTF-8");
  }
  if (!network.table) return;
  for (const TableFeature& column : network.table->columns) {
    check(!column.has_indicator, "export: column '", printable(column.name),
          "' has missing cells that become the mean of the training rows, which .npz cannot "
          "express; .h, .onnx, .js and .html do");
  }
}

ExportBytes npz_bytes(const InferenceNetwork& network, const ExportSettings&) {
  const auto of = [](const auto& numbers) {
    return std::ssize(numbers) * static_cast<std::int64_t>(sizeof(numbers[0]));
  };
  ExportBytes bytes;
  for (const InferenceLayer& layer : network.layers) {
    const InferenceProduct& w = layer.product;
    bytes.weights += w.inputs * w.outputs * static_cast<std::int64_t>(sizeof(float));
    if (!w.trits.empty()) bytes.weights += of(w.trits) + w.outputs * base3_row_bytes(w);
    bytes.scales += of(w.scales);
    bytes.others += of(layer.mean) + of(layer.inverse_std) + of(layer.gain) + of(layer.bias);
  }
  const auto doubles = std::ssize(network.fills) + std::ssize(network.means) +
                       std::ssize(network.inverse_stds) +
                       std::max(std::ssize(network.offsets), std::ptrdiff_t{1});
  bytes.others += doubles * static_cast<std::int64_t>(sizeof(double));
  return bytes;
}

std::string npz(const InferenceNetwork& network, const ExportHead& head, const ExportSettings&) {
  return ArrayWriter(network, head).write();
}

}  // namespace tritgrad
