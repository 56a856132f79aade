#include "models/export/js_module.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <span>

#include "engine/check.h"
#include "engine/data/cell_text.h"
#include "models/export/javascript.h"
#include "models/export/network_arrays.h"

namespace tritgrad {
namespace {

using ModuleJson = nlohmann::ordered_json;

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

// Each float has the lowest of its bytes first.
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
  if (layer.stride > 1) json["stride"] = layer.stride;
  if (layer.begins_block) json["beginsBlock"] = true;
  if (layer.ends_block) json["endsBlock"] = true;
  if (!w.trits.empty()) {
    json["trits"] = base64(pack_trits(w.trits, std::ssize(w.trits), kBase3Digits, 0));
  }
  const auto add = [&](std::string_view name, const std::vector<float>& numbers) {
    if (!numbers.empty())
      json[name == "inverse_std" ? "inverseStd" : name] = base64_of_floats(numbers);
  };
  add("scales", w.scales);
  add("weights", w.weights);
  for (const NamedVector& each : norm_vectors(layer)) add(each.name, each.numbers);
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
  if (network.is_regression()) {
    json["target"] = {{"mean", network.target_scale.mean},
                      {"deviation", network.target_scale.deviation}};
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

// Returns plain ASCII that ends neither its line nor a script.
std::string line_comment(const std::string& text) {
  std::string line = "// ";
  for (const char c : text) line += c >= ' ' && c <= '~' && c != '<' ? c : '_';
  return line + "\n";
}

}  // namespace

ExportBytes js_module_bytes(const InferenceNetwork& network, const ExportSettings&) {
  ExportBytes bytes = bytes_without_trits(network);
  for (const InferenceLayer& layer : network.layers) {
    bytes.weights += kBase3Digits.bytes_of(std::ssize(layer.product.trits));
  }
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
