// Transformer for language models: what llama.cpp's architecture `llama` computes (Touvron et al.
// 2023), with ternary projections.
//
//     h = embedding[token]
//     in each layer, with n = rms_norm(h) each time:
//       h += output(attention(rotary(query(n)), rotary(key(n)), value(n)))
//       h += down(silu(gate(n)) * up(n))
//     logits = head(rms_norm(h))
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/networks/layer_plan.h"
#include "models/networks/model.h"

namespace tritgrad {

struct LlamaSpec {
  std::int64_t layers = 0;
  std::int64_t width = 0;
  std::int64_t heads = 0;       // of queries
  std::int64_t kv_heads = 0;    // of keys and values, each of which serves heads / kv_heads queries
  std::int64_t ff = 0;          // width between gate, up and down
  std::int64_t context = 128;   // most tokens that are looked at together
  bool tied = false;            // the head is the embedding
  std::int64_t vocabulary = 0;  // 0: taken from the data

  std::int64_t head_size() const { return width / heads; }
  std::int64_t kv_width() const { return kv_heads * head_size(); }
};

// Reads "llama:LAYERS,WIDTH", followed by options ":heads=H" (width / 64, at least 1), ":kv=K" (as
// many as heads), ":ff=F" (8/3 of the width, rounded up to a multiple of 256), ":context=T" (128),
// ":tie=yes|no" (no). Throws Error that names the part that cannot be read, heads that do not
// divide the width, are not shared evenly by those of keys, or have an odd size.
LlamaSpec parse_llama(const std::string& text);

// Whether a text names a transformer, however well.
bool is_llama(const std::string& model);

// Returns the tokens that a language model of this text looks at together; 0 for other models.
std::int64_t context_of(const std::string& model);

// Fills in the vocabulary. Throws Error when the data are no text cut into windows of the context,
// or have another vocabulary than the spec.
LlamaSpec fit_llama(LlamaSpec spec, const ModelInput& input, std::int64_t vocabulary);

// Parameters are embedding, layers.0.attention.{norm, query, key, value, output},
// layers.0.mlp.{norm, gate, up, down}, ..., head.norm, head.
std::vector<ParameterSpec> plan_llama(const LlamaSpec& spec, const Recipe& recipe);

// Keys, turned to their positions, and values of the tokens that came before, of every layer. Its
// memory doubles as they come, up to the context.
class KeyValueCache {
 public:
  explicit KeyValueCache(const LlamaSpec& spec);

  std::int64_t tokens() const { return tokens_; }
  bool is_full() const { return tokens_ == context_; }
  void clear() { tokens_ = 0; }

 private:
  friend class Llama;

  // Has room for so many tokens more.
  void make_room(std::int64_t tokens);
  float* keys(std::size_t layer) { return layers_[layer].as<float>(); }
  float* values(std::size_t layer) { return keys(layer) + room_ * width_; }

  std::int64_t context_;
  std::int64_t width_;          // of a token's keys
  std::int64_t room_ = 0;       // for so many tokens
  std::vector<Buffer> layers_;  // keys [room x width], then values
  std::int64_t tokens_ = 0;
};

class Llama : public Model {
 public:
  // `spec` must be complete, as fit_llama() leaves it.
  Llama(const LlamaSpec& spec, const Recipe& recipe, std::optional<std::uint64_t> seed);

  // Takes x [n, tokens], at most `context` numbers of tokens in each row, and returns the logits of
  // the token behind each: [n tokens, vocabulary].
  Var forward(Tape& tape, const Tensor& x, const ForwardMode& mode) override;

  // Reads tokens, behind those in the cache, and returns the logits of the token behind the last,
  // [1, vocabulary]: those of forward() within rounding, and where products are of integers the
  // same bits however many are read at a time. The tape must not be recording. Throws Error for no
  // tokens, and for more than the cache has room for.
  Var read(Tape& tape, std::span<const std::int32_t> tokens, KeyValueCache& cache);

  const LlamaSpec& spec() const { return spec_; }

 private:
  struct Layer {
    Parameter* attention_norm;
    LayerParameters query, key, value, output;
    Parameter* mlp_norm;
    LayerParameters gate, up, down;
  };

  // mix(layer, query, key, value) mixes the heads' queries, keys and values, not yet turned, of a
  // layer, and releases them.
  template <typename Mix>
  Var forward_layers(Tape& tape, std::span<const std::int32_t> tokens, bool in_segments,
                     const Mix& mix) const;
  template <typename Mix>
  Var forward_layer(Tape& tape, std::size_t index, const Var& h, const Mix& mix) const;
  template <typename Mix>
  Var attend(Tape& tape, std::size_t index, const Var& h, const Mix& mix) const;
  Var transform(Tape& tape, const Layer& layer, const Var& h) const;
  // Releases h.
  Var logits(Tape& tape, const Var& h) const;

  LlamaSpec spec_;
  Compute compute_;
  Parameter* embedding_;
  std::vector<Layer> layers_;
  Parameter* head_norm_;
  Parameter* head_;  // the embedding where they are tied
};

}  // namespace tritgrad
