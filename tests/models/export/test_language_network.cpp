// The description of a transformer, and what it computes of tokens.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "engine/check.h"
#include "models/export/language_network.h"
#include "tests/support/random_language.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_language_network {
namespace {

LlamaSpec tiny_sizes() {
  return {.layers = 2,
          .width = 16,
          .heads = 4,
          .kv_heads = 2,
          .ff = 24,
          .context = 8,
          .vocabulary = 10};
}

// The parameters of models/networks/llama.h, of random values.
class TinyParameters {
 public:
  TinyParameters(const LlamaSpec& s, FormatKind weights) : weights_(weights) {
    add("embedding.weight", Role::kNorm, {s.vocabulary, s.width}, FormatKind::kFp32);
    for (std::int64_t i = 0; i < s.layers; ++i) {
      const std::string prefix = concat("layers.", i, ".");
      gain(prefix + "attention.norm.gain", s.width);
      matrix(prefix + "attention.query", s.width, s.width);
      matrix(prefix + "attention.key", s.kv_width(), s.width);
      matrix(prefix + "attention.value", s.kv_width(), s.width);
      matrix(prefix + "attention.output", s.width, s.width);
      gain(prefix + "mlp.norm.gain", s.width);
      matrix(prefix + "mlp.gate", s.ff, s.width);
      matrix(prefix + "mlp.up", s.ff, s.width);
      matrix(prefix + "mlp.down", s.width, s.ff);
    }
    gain("head.norm.gain", s.width);
    if (!s.tied) add("head.weight", Role::kNorm, {s.vocabulary, s.width}, FormatKind::kFp32);
  }

  ParameterStore store;

 private:
  void add(const std::string& name, Role role, const Shape& shape, FormatKind kind) {
    store.add({name, role, shape, spec_of(kind), {Initial::Kind::kUniform, 1.0f}}, 1);
  }
  void gain(const std::string& name, std::int64_t n) {
    add(name, Role::kNorm, {n}, FormatKind::kFp32);
  }
  void matrix(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    add(name + ".weight", Role::kWeight, {outputs, inputs}, weights_);
    if (weights_ == FormatKind::kFp32) return;
    add(name + ".scale", Role::kScale, {outputs, 1}, FormatKind::kScale16);
  }

  FormatKind weights_;
};

void check_values(const std::vector<float>& found, const Parameter& parameter) {
  CAPTURE(parameter.name());
  const std::vector<double> expected = decoded(parameter.storage());
  CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
}

std::vector<std::int32_t> tokens_below(std::int64_t vocabulary, std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (const float x : numbers(count, 31)) {
    tokens.push_back(static_cast<std::int32_t>((x + 1.0f) / 2.0f * static_cast<float>(vocabulary)));
  }
  return tokens;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

// Repeats the rows of keys or values for each head that reads them.
InferenceProduct repeated(const InferenceProduct& w, std::int64_t head_size, std::int64_t times) {
  InferenceProduct wide{.name = w.name,
                        .inputs = w.inputs,
                        .outputs = w.outputs * times,
                        .group = w.group,
                        .in_integers = w.in_integers};
  for (std::int64_t o = 0; o < wide.outputs; ++o) {
    const std::int64_t from = o / (head_size * times) * head_size + o % head_size;
    const auto row = w.trits.begin() + from * w.inputs;
    wide.trits.insert(wide.trits.end(), row, row + w.inputs);
    wide.scales.push_back(w.scales[static_cast<std::size_t>(from)]);
  }
  return wide;
}

}  // namespace

TEST_CASE("language network: every parameter is described, of trits and of floats") {
  for (const bool tied : {false, true}) {
    LlamaSpec sizes = tiny_sizes();
    sizes.tied = tied;
    TinyParameters made(sizes, FormatKind::kLatent8);
    const LanguageNetwork network = describe_language_network(made.store, sizes, Compute::kInt8);
    check_values(network.embedding, made.store.find("embedding.weight"));
    CHECK(network.head.empty() == tied);
    if (!tied) check_values(network.head, made.store.find("head.weight"));
    check_values(network.head_gain, made.store.find("head.norm.gain"));
    REQUIRE(network.layers.size() == 2);
    const LanguageLayer& layer = network.layers[1];
    check_values(layer.attention_gain, made.store.find("layers.1.attention.norm.gain"));
    check_values(layer.mlp_gain, made.store.find("layers.1.mlp.norm.gain"));
    for (const InferenceProduct* w : network.products()) {
      CHECK(w->in_integers);
      check_values(w->scales, made.store.find(w->name + ".scale"));
      const std::vector<double> trits = decoded(made.store.find(w->name + ".weight").storage());
      CHECK(std::equal(trits.begin(), trits.end(), w->trits.begin(), w->trits.end()));
    }
    CHECK(layer.key.name == "layers.1.attention.key");
    CHECK(layer.key.outputs == 8);
    CHECK(layer.down.inputs == 24);
    CHECK(network.weights() == 2 * (16 * (16 + 8 + 8 + 16) + 3 * 16 * 24));
  }
  TinyParameters dense(tiny_sizes(), FormatKind::kFp32);
  const LanguageNetwork network =
      describe_language_network(dense.store, tiny_sizes(), Compute::kInt8);
  CHECK(!network.layers[0].gate.in_integers);
  check_values(network.layers[0].gate.weights, dense.store.find("layers.0.mlp.gate.weight"));
}

TEST_CASE("language network: parameters of other sizes are refused by name") {
  TinyParameters made(tiny_sizes(), FormatKind::kLatent8);
  LlamaSpec sizes = tiny_sizes();
  sizes.ff = 32;
  CHECK_THROWS_WITH_AS(
      describe_language_network(made.store, sizes, Compute::kInt8),
      "export: 'layers.0.mlp.gate.weight' has shape [24 x 16], but the model needs "
      "[32 x 16]",
      Error);
}

TEST_CASE("language network: without its layers, the head multiplies the norm of the embedding") {
  LanguageNetwork network = random_language({.sizes = tiny_sizes()});
  for (LanguageLayer& layer : network.layers) {
    layer.output.scales.assign(layer.output.scales.size(), 0.0f);
    layer.down.scales.assign(layer.down.scales.size(), 0.0f);
  }
  const std::vector<float> logits = infer(network, std::vector<std::int32_t>{3});
  double squares = 0.0;
  for (std::size_t i = 0; i < 16; ++i) squares += std::pow(network.embedding[3 * 16 + i], 2);
  for (std::size_t t = 0; t < 10; ++t) {
    double sum = 0.0;
    for (std::size_t i = 0; i < 16; ++i) {
      sum += static_cast<double>(network.head[t * 16 + i]) *
             static_cast<double>(network.head_gain[i]) *
             static_cast<double>(network.embedding[3 * 16 + i]) / std::sqrt(squares / 16.0 + 1e-6);
    }
    // Three roundings to fp32 of each of 16 terms, which are at most 2 here.
    CHECK(static_cast<double>(logits[t]) == doctest::Approx(sum).epsilon(16 * 3 * 2 * 0x1p-24));
  }
}

TEST_CASE("language network: logits depend on what was before, and on nothing behind") {
  const LanguageNetwork network = random_language({.sizes = tiny_sizes()});
  std::vector<std::int32_t> tokens = tokens_below(10, 8);
  const std::vector<float> all = infer(network, tokens);
  tokens.resize(5);
  const std::vector<float> first = infer(network, tokens);
  CHECK(std::equal(first.begin(), first.end(), all.begin()));
  tokens[1] = (tokens[1] + 1) % 10;
  const std::vector<float> other = infer(network, tokens);
  CHECK(std::equal(other.begin(), other.begin() + 10, first.begin()));
  CHECK(!std::equal(other.end() - 10, other.end(), first.end() - 10));
}

TEST_CASE("language network: order counts, by rotary positions") {
  const LanguageNetwork network = random_language({.sizes = tiny_sizes()});
  const std::vector<float> a = infer(network, std::vector<std::int32_t>{1, 2, 3});
  const std::vector<float> b = infer(network, std::vector<std::int32_t>{2, 1, 3});
  CHECK(!std::equal(a.end() - 10, a.end(), b.end() - 10));
}

TEST_CASE("language network: heads that share keys do as if each had its own") {
  const LanguageNetwork shared = random_language({.sizes = tiny_sizes()});
  LanguageNetwork own = shared;
  own.sizes.kv_heads = own.sizes.heads;
  for (LanguageLayer& layer : own.layers) {
    layer.key = repeated(layer.key, 4, 2);
    layer.value = repeated(layer.value, 4, 2);
  }
  const std::vector<std::int32_t> tokens = tokens_below(10, 8);
  CHECK(infer(shared, tokens) == infer(own, tokens));
}

TEST_CASE("language network: a tied head is the embedding") {
  LlamaSpec sizes = tiny_sizes();
  sizes.tied = true;
  const LanguageNetwork tied = random_language({.sizes = sizes});
  LanguageNetwork copied = tied;
  copied.sizes.tied = false;
  copied.head = copied.embedding;
  const std::vector<std::int32_t> tokens = tokens_below(10, 4);
  CHECK(infer(tied, tokens) == infer(copied, tokens));
}

TEST_CASE("language network: products in integers are near those of the same trits in floats") {
  const LanguageNetwork rounded = random_language({.sizes = tiny_sizes()});
  const LanguageNetwork exact = random_language({.sizes = tiny_sizes(), .in_integers = false});
  const std::vector<std::int32_t> tokens = tokens_below(10, 8);
  const double apart = largest_difference(infer(rounded, tokens), infer(exact, tokens));
  CHECK(apart > 0.0);
  // A code is off by half of 1 / 127 of the largest input at most; the logits are about 2.
  CHECK(apart < 0.3);
}

TEST_CASE("language network: tokens that are none, and too many, are refused") {
  const LanguageNetwork network = random_language({.sizes = tiny_sizes()});
  CHECK_THROWS_WITH_AS(infer(network, std::vector<std::int32_t>{10}),
                       "infer: token 10 found, numbers below the vocabulary of 10 expected", Error);
  CHECK_THROWS_WITH_AS(infer(network, std::vector<std::int32_t>(9, 0)),
                       "infer: more tokens found than the context of 8", Error);
}

}  // namespace tritgrad::test::test_language_network
