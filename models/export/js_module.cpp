#include "models/export/js_module.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <span>

#include "engine/check.h"
#include "engine/data/cell_text.h"
#include "models/export/javascript.h"

namespace tritgrad {
namespace {

using ModuleJson = nlohmann::ordered_json;

constexpr std::int64_t kTritsOfByte = 5;

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t first = 0; first < bytes.size(); first += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - first);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? bytes[first + i] : std::uint32_t{0});
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

// Floats with the lowest of their bytes first.
std::string base64_of_floats(const std::vector<float>& numbers) {
  std::vector<std::uint8_t> bytes;
  for (const float x : numbers) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
    }
  }
  return base64(bytes);
}

// Five trits are a byte, the first one its lowest digit in base 3.
std::string base64_of_trits(const std::vector<std::int8_t>& trits) {
  std::vector<std::uint8_t> packed;
  for (std::int64_t first = 0; first < std::ssize(trits); first += kTritsOfByte) {
    int byte = 0;
    for (std::int64_t i = std::min(first + kTritsOfByte, std::ssize(trits)) - 1; i >= first; --i) {
      byte = 3 * byte + trits[static_cast<std::size_t>(i)] + 1;
    }
    packed.push_back(static_cast<std::uint8_t>(byte));
  }
  return base64(packed);
}

ModuleJson sides_of(const ImageShape& image) { return {image.height, image.width, image.channels}; }

const char* kind_text(InferenceLayer::Kind kind) {
  switch (kind) {
    case InferenceLayer::Kind::kConvolution:
      return "convolution";
    case InferenceLayer::Kind::kMaxPool:
      return "max_pool";
    case InferenceLayer::Kind::kAveragePool:
      return "average_pool";
    case InferenceLayer::Kind::kLinear:
      break;
  }
  return "linear";
}

ModuleJson layer_json(const InferenceLayer& layer) {
  ModuleJson json{{"kind", kind_text(layer.kind)}};
  if (layer.kind != InferenceLayer::Kind::kLinear) json["image"] = sides_of(layer.image);
  if (!layer.has_product()) return json;
  const InferenceProduct& w = layer.product;
  json.update({{"name", w.name},
               {"inputs", w.inputs},
               {"outputs", w.outputs},
               {"group", w.trits.empty() ? w.inputs : w.group},
               {"inIntegers", w.in_integers},
               {"norm", kNorms.name(layer.norm)}});
  if (layer.activation) json["activation"] = kActivations.name(*layer.activation);
  if (!w.trits.empty()) json["trits"] = base64_of_trits(w.trits);
  const std::pair<const char*, const std::vector<float>&> arrays[] = {
      {"scales", w.scales}, {"weights", w.weights},
      {"mean", layer.mean}, {"inverseStd", layer.inverse_std},
      {"gain", layer.gain}, {"bias", layer.bias}};
  for (const auto& [name, numbers] : arrays) {
    if (!numbers.empty()) json[name] = base64_of_floats(numbers);
  }
  return json;
}

// Columns of a file without names are called by their numbers.
ModuleJson columns_json(const TableSchema& table) {
  ModuleJson json = ModuleJson::array();
  for (const TableFeature& column : table.columns) {
    ModuleJson each{{"name", column.name.empty() ? concat("column ", json.size()) : column.name}};
    if (!column.words.empty()) each["words"] = column.words;
    if (column.has_indicator) each["indicator"] = true;
    if (column.fill_number) each["fill"] = *column.fill_number;
    if (!column.fill_word.empty()) each["fill"] = column.fill_word;
    json.push_back(std::move(each));
  }
  return json;
}

// Only tables have cells that may be missing, and only where training knew what to do with them.
ModuleJson missing_json(MissingCells missing) {
  ModuleJson markers{""};
  for (const std::string_view marker : missing_markers()) markers.push_back(marker);
  return {{"allowed", missing == MissingCells::kMean || missing == MissingCells::kMode},
          {"markers", std::move(markers)}};
}

ModuleJson description_json(const InferenceNetwork& network) {
  ModuleJson json{{"inputs", network.inputs},
                  {"classes", network.class_names},
                  {"missing", missing_json(network.missing)}};
  if (network.image.size() > 0) {
    json.update({{"image", sides_of(network.image)},
                 {"white", network.extent.white},
                 {"ink", network.extent.ink},
                 {"pen", network.extent.pen}});
  }
  if (network.table) json["columns"] = columns_json(*network.table);
  if (!network.offsets.empty()) json["offsets"] = network.offsets;
  if (network.square_roots) json["squareRoots"] = true;
  json["means"] = base64_of_floats(network.means);
  json["inverseStds"] = base64_of_floats(network.inverse_stds);
  json["layers"] = ModuleJson::array();
  for (const InferenceLayer& layer : network.layers) {
    json["layers"].push_back(layer_json(layer));
  }
  return json;
}

// In JSON a < stands within strings alone: no text of a user's can end a script.
std::string script_json(const ModuleJson& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', true, ModuleJson::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

// Plain ASCII that ends neither its line nor a script.
std::string line_comment(const std::string& text) {
  std::string line = "// ";
  for (const char c : text) line += c >= ' ' && c <= '~' && c != '<' ? c : '_';
  return line + "\n";
}

}  // namespace

ExportBytes js_module_bytes(const InferenceNetwork& network, const ExportSettings&) {
  const auto floats = [](const std::vector<float>& numbers) {
    return std::ssize(numbers) * static_cast<std::int64_t>(sizeof(float));
  };
  ExportBytes bytes;
  for (const InferenceLayer& layer : network.layers) {
    const InferenceProduct& w = layer.product;
    bytes.weights += (std::ssize(w.trits) + kTritsOfByte - 1) / kTritsOfByte + floats(w.weights);
    bytes.scales += floats(w.scales);
    bytes.others +=
        floats(layer.mean) + floats(layer.inverse_std) + floats(layer.gain) + floats(layer.bias);
  }
  bytes.others += floats(network.means) + floats(network.inverse_stds) +
                  std::ssize(network.offsets) * static_cast<std::int64_t>(sizeof(double));
  return bytes;
}

std::string js_module(const InferenceNetwork& network, const ExportHead& head,
                      const ExportSettings&) {
  constexpr std::string_view kPlace = "/* DESCRIPTION */ {}";
  std::string text;
  for (const std::string& line : head.provenance) text += line_comment(line);
  text += "\n";
  const std::size_t place = javascript::kModel.find(kPlace);
  text += javascript::kModel.substr(0, place);
  text += script_json(description_json(network));
  text += javascript::kModel.substr(place + kPlace.size());
  return text;
}

}  // namespace tritgrad
