#include "models/export/language_network.h"

#include <algorithm>
#include <cmath>

#include "engine/check.h"
#include "models/export/inference_norm.h"
#include "ops/rotary.h"

namespace tritgrad {

std::vector<const InferenceProduct*> LanguageNetwork::products() const {
  std::vector<const InferenceProduct*> all;
  for (const LanguageLayer& layer : layers) {
    all.insert(all.end(), {&layer.query, &layer.key, &layer.value, &layer.output, &layer.gate,
                           &layer.up, &layer.down});
  }
  return all;
}

std::int64_t LanguageNetwork::weights() const {
  std::int64_t sum = 0;
  for (const InferenceProduct* product : products()) sum += product->inputs * product->outputs;
  return sum;
}

TokenPieces pieces_of(const Vocabulary& vocabulary) {
  TokenPieces all;
  if (vocabulary.is_bytes()) return all;
  for (std::int64_t token = 0; token < vocabulary.size(); ++token) {
    const Piece& piece = vocabulary.piece(token);
    all.pieces.push_back(piece.text);
    all.scores.push_back(piece.score);
    all.kinds.push_back(piece.type);
    if (piece.type == PieceType::kUnknown) all.unknown = static_cast<std::int32_t>(token);
  }
  all.begin = vocabulary.find("<s>").value_or(-1);
  all.end = vocabulary.find("</s>").value_or(-1);
  all.begins_with_blank = vocabulary.adds_space();
  return all;
}

// ---- description ----

namespace {

class LanguageDescriber {
 public:
  LanguageDescriber(ParameterStore& parameters, const LlamaSpec& sizes, Compute compute)
      : parameters_(parameters), sizes_(sizes), compute_(compute) {}

  LanguageNetwork describe() {
    LanguageNetwork network{.sizes = sizes_, .embedding = table("embedding.weight")};
    for (std::int64_t i = 0; i < sizes_.layers; ++i) {
      network.layers.push_back(layer(concat("layers.", i, ".")));
    }
    network.head_gain = gain("head.norm.gain");
    if (!sizes_.tied) network.head = table("head.weight");
    return network;
  }

 private:
  Parameter& find(const std::string& name, const Shape& expected) {
    Parameter& parameter = parameters_.find(name);
    check(parameter.shape() == expected, "export: '", name, "' has shape ", parameter.shape().str(),
          ", but the model needs ", expected.str());
    return parameter;
  }

  std::vector<float> table(const std::string& name) {
    return exported_values(find(name, {sizes_.vocabulary, sizes_.width}));
  }
  std::vector<float> gain(const std::string& name) {
    return exported_values(find(name, {sizes_.width}));
  }

  InferenceProduct product(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
    Parameter& weight = find(name + ".weight", {outputs, inputs});
    const std::string scale = name + ".scale";
    const auto same = [&scale](const Parameter& each) { return each.name() == scale; };
    const auto found = std::find_if(parameters_.begin(), parameters_.end(), same);
    return describe_product(name, weight, found == parameters_.end() ? nullptr : &*found, compute_);
  }

  LanguageLayer layer(const std::string& prefix) {
    const std::int64_t width = sizes_.width, kv = sizes_.kv_width(), ff = sizes_.ff;
    const std::string attention = prefix + "attention.", mlp = prefix + "mlp.";
    return {.attention_gain = gain(attention + "norm.gain"),
            .query = product(attention + "query", width, width),
            .key = product(attention + "key", width, kv),
            .value = product(attention + "value", width, kv),
            .output = product(attention + "output", width, width),
            .mlp_gain = gain(mlp + "norm.gain"),
            .gate = product(mlp + "gate", width, ff),
            .up = product(mlp + "up", width, ff),
            .down = product(mlp + "down", ff, width)};
  }

  ParameterStore& parameters_;
  LlamaSpec sizes_;
  Compute compute_;
};

}  // namespace

LanguageNetwork describe_language_network(ParameterStore& parameters, const LlamaSpec& sizes,
                                          Compute compute) {
  return LanguageDescriber(parameters, sizes, compute).describe();
}

// ---- reference ----

namespace {

void add_to(std::vector<float>& h, const std::vector<float>& change) {
  for (std::size_t i = 0; i < h.size(); ++i) h[i] += change[i];
}

double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Returns e^score / the sum of all, in place.
void softmax(std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0.0;
  for (double& score : scores) total += score = std::exp(score - largest);
  for (double& score : scores) score /= total;
}

// down(silu(gate) * up) of the RMS norm of x.
std::vector<float> transformed(const LanguageLayer& layer, std::vector<float> x) {
  rms_norm_row(x, layer.mlp_gain);
  std::vector<float> hidden = multiply_row(layer.gate, x);
  const std::vector<float> up = multiply_row(layer.up, x);
  for (std::size_t j = 0; j < hidden.size(); ++j) {
    const auto gate = static_cast<double>(hidden[j]);
    hidden[j] = static_cast<float>(gate / (1.0 + std::exp(-gate)) * static_cast<double>(up[j]));
  }
  return multiply_row(layer.down, hidden);
}

}  // namespace

LanguageReader::LanguageReader(const LanguageNetwork& network)
    : network_(network), keys_(network.layers.size()), values_(network.layers.size()) {}

std::vector<float> LanguageReader::read(std::int32_t token) {
  const LlamaSpec& sizes = network_.sizes;
  check(position_ < sizes.context, "infer: more tokens found than the context of ", sizes.context);
  check(token >= 0 && token < sizes.vocabulary, "infer: token ", token,
        " found, numbers below the vocabulary of ", sizes.vocabulary, " expected");
  const float* row = network_.embedding.data() + token * sizes.width;
  std::vector<float> h(row, row + sizes.width);
  for (std::size_t i = 0; i < network_.layers.size(); ++i) {
    add_to(h, attend(i, h));
    add_to(h, transformed(network_.layers[i], h));
  }
  ++position_;
  rms_norm_row(h, network_.head_gain);
  const std::vector<float>& head = network_.head.empty() ? network_.embedding : network_.head;
  std::vector<float> logits;
  for (std::int64_t t = 0; t < sizes.vocabulary; ++t) {
    logits.push_back(static_cast<float>(dot(h.data(), head.data() + t * sizes.width, sizes.width)));
  }
  return logits;
}

// Turns pairs of numbers of each head by the position.
std::vector<float> LanguageReader::turned(std::vector<float> x) const {
  const std::int64_t size = network_.sizes.head_size();
  for (std::size_t i = 0; i < x.size(); i += 2) {
    const auto in_head = static_cast<double>(static_cast<std::int64_t>(i) % size);
    const double angle = static_cast<double>(position_) *
                         std::pow(kRotaryBase, -in_head / static_cast<double>(size));
    const auto a = static_cast<double>(x[i]), b = static_cast<double>(x[i + 1]);
    x[i] = static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
    x[i + 1] = static_cast<float>(a * std::sin(angle) + b * std::cos(angle));
  }
  return x;
}

std::vector<float> LanguageReader::attend(std::size_t i, std::vector<float> x) {
  const LanguageLayer& layer = network_.layers[i];
  rms_norm_row(x, layer.attention_gain);
  const std::vector<float> query = turned(multiply_row(layer.query, x));
  keys_[i].push_back(turned(multiply_row(layer.key, x)));
  values_[i].push_back(multiply_row(layer.value, x));
  std::vector<float> mixed;
  for (std::int64_t head = 0; head < network_.sizes.heads; ++head) mix(i, head, query, mixed);
  return multiply_row(layer.output, mixed);
}

// Appends the values of all positions, weighted by the softmax of query times keys.
void LanguageReader::mix(std::size_t i, std::int64_t head, const std::vector<float>& query,
                         std::vector<float>& mixed) const {
  const LlamaSpec& sizes = network_.sizes;
  const std::int64_t size = sizes.head_size();
  const std::int64_t kv = head / (sizes.heads / sizes.kv_heads) * size;
  std::vector<double> weights;
  for (const std::vector<float>& key : keys_[i]) {
    weights.push_back(dot(query.data() + head * size, key.data() + kv, size) /
                      std::sqrt(static_cast<double>(size)));
  }
  softmax(weights);
  for (std::int64_t j = kv; j < kv + size; ++j) {
    double sum = 0.0;
    for (std::size_t at = 0; at < weights.size(); ++at) {
      sum += weights[at] * static_cast<double>(values_[i][at][static_cast<std::size_t>(j)]);
    }
    mixed.push_back(static_cast<float>(sum));
  }
}

std::vector<float> infer(const LanguageNetwork& network, std::span<const std::int32_t> tokens) {
  LanguageReader reader(network);
  std::vector<float> logits;
  for (const std::int32_t token : tokens) {
    const std::vector<float> next = reader.read(token);
    logits.insert(logits.end(), next.begin(), next.end());
  }
  return logits;
}

}  // namespace tritgrad
