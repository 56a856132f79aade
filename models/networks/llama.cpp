#include "models/networks/llama.h"

#include <cmath>
#include <optional>

#include "engine/kernels/attention.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/layer_norm.h"
#include "ops/products/linear.h"
#include "ops/products/quantized.h"
#include "ops/rotary.h"
#include "ops/swiglu.h"

namespace tritgrad {
namespace {

constexpr const char* kEmbedding = "embedding";
constexpr std::string_view kKind = "llama:";
// Head sizes of published models; and rows of weights that GGUF's ternary blocks divide.
constexpr std::int64_t kUsualHeadSize = 64, kBlockOfRows = 256;
constexpr std::int64_t kMostTokens = 1 << 20, kMostLayers = 1000;

// Returns the number of an option, at least 1.
std::int64_t parse_count(const std::string& key, const std::string& value, std::int64_t most) {
  const std::optional<double> number = parse_number(value);
  check(number && *number >= 1.0 && *number <= static_cast<double>(most) &&
            *number == std::floor(*number),
        key, " '", value, "' is not a whole number in 1..", most);
  return static_cast<std::int64_t>(*number);
}

void parse_option(const std::string& key, const std::string& value, LlamaSpec& spec) {
  if (key == "heads") {
    spec.heads = parse_count(key, value, spec.width);
  } else if (key == "kv") {
    spec.kv_heads = parse_count(key, value, spec.width);
  } else if (key == "ff") {
    spec.ff = parse_count(key, value, kMostWidth);
  } else if (key == "context") {
    spec.context = parse_count(key, value, kMostTokens);
  } else if (key == "tie") {
    check(value == "yes" || value == "no", "tie '", value, "' is neither yes nor no");
    spec.tied = value == "yes";
  } else {
    fail("unknown option '", key, "'",
         did_you_mean(key, std::vector<std::string>{"heads", "kv", "ff", "context", "tie"}));
  }
}

// Returns the divisors of the width by which heads of an even size come about: " 1, 2, 4".
std::string possible_heads(std::int64_t width) {
  std::string text;
  for (std::int64_t heads = 1; heads <= width / 2 && heads <= 128; ++heads) {
    if (width % (2 * heads) == 0) text += concat(text.empty() ? "" : ", ", heads);
  }
  return text;
}

void check_heads(const LlamaSpec& spec, const std::string& text) {
  check(spec.width % 2 == 0, "model '", text, "': width ", spec.width,
        " is odd, but rotary positions turn pairs of numbers; give an even width");
  check(spec.width % (2 * spec.heads) == 0, "model '", text, "': ", spec.heads,
        " heads do not cut a width of ", spec.width,
        " into parts of an even size; heads that do are ", possible_heads(spec.width));
  check(spec.head_size() <= kMostHeadSize, "model '", text, "': heads of ", spec.head_size(),
        " numbers found, at most ", kMostHeadSize, " supported; give more heads");
  check(spec.heads % spec.kv_heads == 0, "model '", text, "': kv=", spec.kv_heads,
        " does not divide the ", spec.heads,
        " heads of the queries, which share it; give a divisor");
}

std::string prefix_of(std::size_t layer, const char* part) {
  return layer_name(layer) + "." + part;
}

}  // namespace

LlamaSpec parse_llama(const std::string& text) {
  check(is_llama(text), "model '", text,
        "' is no transformer; expected llama:LAYERS,WIDTH such as llama:4,256");
  const std::vector<std::string> parts = split(text.substr(kKind.size()), ':');
  const std::vector<std::string> sizes = split(parts[0], ',');
  check(sizes.size() == 2, "model '", text,
        "': expected the number of layers and their width, such as llama:4,256");
  LlamaSpec spec;
  try {
    spec.layers = parse_count("layers", sizes[0], kMostLayers);
  } catch (const Error& error) {
    fail("model '", text, "': ", error.what());
  }
  spec.width = parse_width(sizes[1], text);
  for_each_option(text, parts, [&spec](const std::string& key, const std::string& value) {
    parse_option(key, value, spec);
  });
  if (spec.heads == 0) spec.heads = std::max<std::int64_t>(1, spec.width / kUsualHeadSize);
  if (spec.kv_heads == 0) spec.kv_heads = spec.heads;
  if (spec.ff == 0) {
    spec.ff = (spec.width * 8 + 3 * kBlockOfRows - 1) / (3 * kBlockOfRows) * kBlockOfRows;
  }
  check_heads(spec, text);
  return spec;
}

bool is_llama(const std::string& model) { return model.starts_with(kKind); }

std::int64_t context_of(const std::string& model) {
  return is_llama(model) ? parse_llama(model).context : 0;
}

LlamaSpec fit_llama(LlamaSpec spec, const ModelInput& input, std::int64_t vocabulary) {
  check(!input.is_no_text, "model: it reads windows of ", spec.context,
        " tokens of a text, but the data has rows of ", input.features,
        " features; give a text, as in --data text:FILE, or use mlp:WIDTH,...");
  check(input.features == 0 || input.features == spec.context, "model: it looks at ", spec.context,
        " tokens together, but the text was cut into windows of ", input.features);
  check(vocabulary > 0 || spec.vocabulary > 0,
        "model: the vocabulary is unknown; name the text (--data text:FILE)");
  if (vocabulary > 0) spec.vocabulary = vocabulary;
  return spec;
}

std::vector<ParameterSpec> plan_llama(const LlamaSpec& spec, const Recipe& recipe) {
  std::vector<ParameterSpec> plan;
  // Sums of 2 layers terms that add to the residual stream keep its variance (Radford et al. 2019).
  const float residual = 1.0f / std::sqrt(2.0f * static_cast<float>(spec.layers));
  plan_embedding(kEmbedding, spec.vocabulary, spec.width, recipe, plan);
  plan.back().gradient_waits = spec.tied;
  for (std::size_t i = 0; i < static_cast<std::size_t>(spec.layers); ++i) {
    const auto matrix = [&](const char* part, std::int64_t in, std::int64_t out, float gain) {
      plan_matrix(prefix_of(i, part), in, out, gain, recipe, plan);
    };
    plan_norm(prefix_of(i, "attention"), Norm::kRms, spec.width, recipe, plan);
    matrix("attention.query", spec.width, spec.width, 1.0f);
    matrix("attention.key", spec.width, spec.kv_width(), 1.0f);
    matrix("attention.value", spec.width, spec.kv_width(), 1.0f);
    matrix("attention.output", spec.width, spec.width, residual);
    plan_norm(prefix_of(i, "mlp"), Norm::kRms, spec.width, recipe, plan);
    matrix("mlp.gate", spec.width, spec.ff, 1.0f);
    matrix("mlp.up", spec.width, spec.ff, 1.0f);
    matrix("mlp.down", spec.ff, spec.width, residual);
  }
  plan_norm(kHead, Norm::kRms, spec.width, recipe, plan);
  if (!spec.tied) plan_embedding(kHead, spec.vocabulary, spec.width, recipe, plan);
  return plan;
}

Llama::Llama(const LlamaSpec& spec, const Recipe& recipe, std::optional<std::uint64_t> seed)
    : spec_(spec), compute_(recipe.compute) {
  for (const ParameterSpec& parameter : plan_llama(spec, recipe)) parameters_.add(parameter, seed);
  embedding_ = bind_layer(parameters_, kEmbedding).weight;
  for (std::size_t i = 0; i < static_cast<std::size_t>(spec.layers); ++i) {
    const auto bind = [&](const char* part) { return bind_layer(parameters_, prefix_of(i, part)); };
    layers_.push_back({bind("attention").norm.gain, bind("attention.query"), bind("attention.key"),
                       bind("attention.value"), bind("attention.output"), bind("mlp").norm.gain,
                       bind("mlp.gate"), bind("mlp.up"), bind("mlp.down")});
  }
  const LayerParameters head = bind_layer(parameters_, kHead);
  head_norm_ = head.norm.gain;
  head_ = spec.tied ? embedding_ : head.weight;
}

namespace {

// The input of several products, rounded to int8 once, when the first in integers asks for it.
class ProductInput {
 public:
  ProductInput(Tape& tape, const Var& x, Compute compute) : tape_(tape), x_(x), compute_(compute) {}

  Var times(const LayerParameters& layer) {
    if (!in_integers(*layer.weight, layer.scale, compute_)) {
      return linear(tape_, x_, *layer.weight, layer.scale, compute_);
    }
    if (!rounded_) rounded_ = quantize(tape_, x_);
    return linear(tape_, *rounded_, *layer.weight, layer.scale);
  }
  // Is called when all products are made.
  void release() const { tape_.release(x_); }

 private:
  Tape& tape_;
  Var x_;
  Compute compute_;
  std::optional<QuantizedVar> rounded_;
};

}  // namespace

template <typename Mix>
Var Llama::attend(Tape& tape, std::size_t index, const Var& h, const Mix& mix) const {
  const Layer& layer = layers_[index];
  ProductInput x(tape, rms_norm(tape, h, *layer.attention_norm), compute_);
  const Var query = x.times(layer.query);
  const Var key = x.times(layer.key);
  const Var value = x.times(layer.value);
  x.release();
  ProductInput mixed(tape, mix(index, query, key, value), compute_);
  const Var y = mixed.times(layer.output);
  mixed.release();
  return y;
}

Var Llama::transform(Tape& tape, const Layer& layer, const Var& h) const {
  ProductInput x(tape, rms_norm(tape, h, *layer.mlp_norm), compute_);
  const Var gate = x.times(layer.gate);
  const Var up = x.times(layer.up);
  x.release();
  ProductInput hidden(tape, swiglu(tape, gate, up), compute_);
  for (const Var& read : {gate, up}) tape.release(read);
  const Var y = hidden.times(layer.down);
  hidden.release();
  return y;
}

namespace {

// h + change, whose memory is given back.
Var add_change(Tape& tape, const Var& h, const Var& change) {
  const Var y = add(tape, h, change);
  tape.release(change);
  return y;
}

}  // namespace

template <typename Mix>
Var Llama::forward_layer(Tape& tape, std::size_t index, const Var& h, const Mix& mix) const {
  const Var between = add_change(tape, h, attend(tape, index, h, mix));
  const Var y = add_change(tape, between, transform(tape, layers_[index], between));
  tape.release(between);
  return y;
}

template <typename Mix>
Var Llama::forward_layers(Tape& tape, std::span<const std::int32_t> tokens, bool in_segments,
                          const Mix& mix) const {
  Var h = embedding(tape, tokens, *embedding_);
  const auto pass_on = [&](const Var& y) {
    tape.release(h);
    h = y;
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto layer = [this, &tape, i, mix](const Var& x) {
      return forward_layer(tape, i, x, mix);
    };
    pass_on(in_segments ? tape.segment(h, layer) : layer(h));
  }
  return h;
}

Var Llama::logits(Tape& tape, const Var& h) const {
  const Var normed = rms_norm(tape, h, *head_norm_);
  tape.release(h);
  const Var y = linear(tape, normed, *head_);
  tape.release(normed);
  return y;
}

Var Llama::forward(Tape& tape, const Tensor& x, const ForwardMode& mode) {
  const std::int64_t tokens = x.cols();
  check(tokens >= 1 && tokens <= spec_.context, "model: x has shape ", x.shape.str(),
        ", but the model looks at 1 to ", spec_.context, " tokens together");
  auto* numbers = tape.allocate<std::int32_t>(x.size());
  for (std::int64_t i = 0; i < x.size(); ++i) numbers[i] = static_cast<std::int32_t>(x.data[i]);
  const auto turned = [&tape, tokens](const Var& heads, std::int64_t count) {
    const Var y = rotary(tape, heads, count, tokens);
    tape.release(heads);
    return y;
  };
  const auto mix = [this, &tape, tokens, turned](std::size_t, const Var& query, const Var& key,
                                                 const Var& value) {
    const Var q = turned(query, spec_.heads), k = turned(key, spec_.kv_heads);
    const Var y = causal_attention(tape, q, k, value, {spec_.heads, spec_.kv_heads, tokens});
    for (const Var& read : {q, k, value}) tape.release(read);
    return y;
  };
  return logits(tape, forward_layers(tape, {numbers, static_cast<std::size_t>(x.size())},
                                     mode.recompute || !tape.recording(), mix));
}

KeyValueCache::KeyValueCache(const LlamaSpec& spec)
    : context_(spec.context),
      width_(spec.kv_width()),
      layers_(static_cast<std::size_t>(spec.layers)) {}

void KeyValueCache::make_room(std::int64_t tokens) {
  constexpr std::int64_t kFirst = 64;
  if (tokens_ + tokens <= room_) return;
  const std::int64_t room = std::min(context_, std::max({kFirst, 2 * room_, tokens_ + tokens}));
  for (Buffer& layer : layers_) {
    const auto bytes = 2 * static_cast<std::size_t>(room * width_) * sizeof(float);
    Buffer larger(bytes, Category::kActivations);
    const float* from = layer.as<float>();
    std::copy_n(from, tokens_ * width_, larger.as<float>());
    std::copy_n(from + room_ * width_, tokens_ * width_, larger.as<float>() + room * width_);
    layer = std::move(larger);
  }
  room_ = room;
}

Var Llama::read(Tape& tape, std::span<const std::int32_t> tokens, KeyValueCache& cache) {
  const std::int64_t n = std::ssize(tokens);
  check(n >= 1 && cache.tokens_ + n <= spec_.context, "model: ", n, " tokens behind ",
        cache.tokens_, ", but it looks at 1 to ", spec_.context, " together");
  check(!tape.recording(), "model: tokens are read behind others at inference alone");
  cache.make_room(n);
  const std::int64_t first = cache.tokens_, size = spec_.head_size(), width = spec_.kv_width();
  const auto mix = [&](std::size_t layer, const Var& query, const Var& key, const Var& value) {
    const Var mixed = tape.variable({n, spec_.width}, false);
    for (std::int64_t i = 0; i < n; ++i) {
      rotate(query.value.row(i), spec_.heads, size, first + i);
      rotate(key.value.row(i), spec_.kv_heads, size, first + i);
      std::copy_n(key.value.row(i), width, cache.keys(layer) + (first + i) * width);
      std::copy_n(value.value.row(i), width, cache.values(layer) + (first + i) * width);
      tritgrad::attend(query.value.row(i), cache.keys(layer), cache.values(layer), first + i + 1,
                       spec_.heads, spec_.kv_heads, size, mixed.value.row(i));
    }
    for (const Var& read : {query, key, value}) tape.release(read);
    return mixed;
  };
  const Var h = forward_layers(tape, tokens, /*in_segments=*/true, mix);
  const Var last = tape.variable({1, spec_.width}, false);
  std::copy_n(h.value.row(n - 1), spec_.width, last.value.data);
  tape.release(h);
  cache.tokens_ += n;
  return logits(tape, last);
}

}  // namespace tritgrad
