#include "models/export/network_arrays.h"

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {

std::vector<float> decoded_weights(const InferenceProduct& product) {
  if (product.trits.empty()) return product.weights;
  std::vector<float> weights;
  weights.reserve(product.trits.size());
  for (std::int64_t o = 0; o < product.outputs; ++o) {
    const float* scales = product.scales.data() + o * product.groups();
    for (std::int64_t i = 0; i < product.inputs; ++i) {
      const auto trit = product.trits[weights.size()];
      // A zero is a positive one, however the scale is signed.
      weights.push_back(trit == 0 ? 0.0f : static_cast<float>(trit) * scales[i / product.group]);
    }
  }
  return weights;
}

std::vector<std::uint8_t> pack_trits(const std::vector<std::int8_t>& trits, std::int64_t row,
                                     TritDigits digits, int filler) {
  std::vector<std::uint8_t> packed;
  for (std::int64_t begin = 0; begin < std::ssize(trits); begin += row) {
    for (std::int64_t first = 0; first < row; first += digits.count) {
      int byte = 0;
      for (std::int64_t i = first + digits.count - 1; i >= first; --i) {
        const int digit = i < row ? trits[static_cast<std::size_t>(begin + i)] + 1 : filler;
        byte = digits.base * byte + digit;
      }
      packed.push_back(static_cast<std::uint8_t>(byte));
    }
  }
  return packed;
}

std::array<NamedVector, 4> norm_vectors(const InferenceLayer& layer) {
  return {{{"mean", layer.mean},
           {"inverse_std", layer.inverse_std},
           {"gain", layer.gain},
           {"bias", layer.bias}}};
}

ExportBytes bytes_without_trits(const InferenceNetwork& network) {
  const auto of = [](const auto& numbers) {
    return std::ssize(numbers) * static_cast<std::int64_t>(sizeof(numbers[0]));
  };
  ExportBytes bytes;
  for (const InferenceLayer& layer : network.layers) {
    bytes.weights += of(layer.product.weights);
    bytes.scales += of(layer.product.scales);
    for (const NamedVector& each : norm_vectors(layer)) bytes.others += of(each.numbers);
  }
  bytes.others += of(network.means) + of(network.inverse_stds) + of(network.offsets);
  return bytes;
}

void check_as_arrays(const InferenceNetwork& network, const std::string& ending) {
  for (const std::string& name : network.class_names) {
    check(is_utf8(name), "export: the class '", printable(name), "' is not UTF-8, as texts of ",
          ending, " must be; train with --data in UTF-8");
  }
  if (!network.table) return;
  for (const TableFeature& column : network.table->columns) {
    check(!column.has_indicator, "export: column '", printable(column.name),
          "' has missing cells that become the mean of the training rows, which ", ending,
          " cannot express; .h, .onnx, .js and .html do");
  }
}

}  // namespace tritgrad
