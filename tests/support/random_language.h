// Language networks of random numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/formats/half_precision.h"
#include "engine/random.h"
#include "models/export/language_network.h"

namespace tritgrad::test {

// What a random network is made of. Scales are exact in fp16.
struct RandomLanguage {
  LlamaSpec sizes;
  bool ternary = true;
  bool in_integers = true;  // products with trits
  std::int64_t group = 0;   // inputs that share a scale; 0: a row
  bool pieces = false;      // tokens are those of a small SentencePiece model, not bytes
  float sharpness = 2.0f;   // about the standard deviation of the logits
};

class RandomLanguageMaker {
 public:
  explicit RandomLanguageMaker(const RandomLanguage& kind) : kind_(kind) {}

  LanguageNetwork make() {
    // A standard deviation of about 2, beside which what layers add, and their rounding errors, are
    // small: few of the most probable tokens are others by them.
    constexpr float kEmbedding = 3.4f;
    const LlamaSpec& s = kind_.sizes;
    LanguageNetwork network{.sizes = s,
                            .embedding = numbers_around(s.vocabulary * s.width, 0.0f, kEmbedding)};
    for (std::int64_t i = 0; i < s.layers; ++i) network.layers.push_back(layer(i));
    network.head_gain = numbers_around(s.width, 1.0f, 0.5f);
    // The standard deviation of a uniform number in [-1, 1) is 1 / sqrt(3).
    const float head = kind_.sharpness * std::sqrt(3.0f / static_cast<float>(s.width));
    if (s.tied) {
      for (float& x : network.embedding) x *= head / kEmbedding;
    } else {
      network.head = numbers_around(s.vocabulary * s.width, 0.0f, head);
    }
    if (kind_.pieces) network.tokens = small_pieces(s.vocabulary);
    return network;
  }

  // The three special pieces, the bytes, pieces by which "hello held" is cut, and others.
  static TokenPieces small_pieces(std::int64_t vocabulary) {
    TokenPieces tokens{.unknown = 0, .begin = 1, .end = 2};
    const auto add = [&tokens](const std::string& piece, PieceType kind, float score) {
      tokens.pieces.push_back(piece);
      tokens.kinds.push_back(kind);
      tokens.scores.push_back(score);
    };
    add("<unk>", PieceType::kUnknown, 0.0f);
    add("<s>", PieceType::kControl, 0.0f);
    add("</s>", PieceType::kControl, 0.0f);
    const char digits[] = "0123456789ABCDEF";
    for (std::size_t byte = 0; byte < 256; ++byte) {
      add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", PieceType::kByte, 0.0f);
    }
    float score = 0.0f;
    for (const char* piece : {"he", "ll", "\u2581he", "llo", "\u2581", "h", "e", "l", "o", "d"}) {
      add(piece, PieceType::kNormal, score -= 1.0f);
    }
    while (static_cast<std::int64_t>(tokens.pieces.size()) < vocabulary) {
      add("other" + std::to_string(tokens.pieces.size()), PieceType::kNormal, score -= 1.0f);
    }
    return tokens;
  }

 private:
  float number() { return 2.0f * random_uniform({3, 1, 0}, next_++) - 1.0f; }

  std::vector<float> numbers_around(std::int64_t n, float middle, float amount) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(middle + amount * number());
    return values;
  }

  // Outputs of numbers of variance 1 have about the variance gain^2.
  InferenceProduct product(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                           float gain) {
    InferenceProduct w{.name = name, .inputs = inputs, .outputs = outputs, .group = inputs};
    const float amount = gain * std::sqrt(1.5f / static_cast<float>(inputs));
    if (!kind_.ternary) {
      w.weights = numbers_around(inputs * outputs, 0.0f, std::sqrt(2.0f) * amount);
      return w;
    }
    if (kind_.group > 0) w.group = kind_.group;
    w.in_integers = kind_.in_integers;
    for (std::int64_t i = 0; i < inputs * outputs; ++i) {
      w.trits.push_back(static_cast<std::int8_t>(std::lround(1.499f * number())));
    }
    w.scales = numbers_around(outputs * w.groups(), amount, 0.5f * amount);
    for (float& scale : w.scales) scale = round_to_half(scale);
    return w;
  }

  LanguageLayer layer(std::int64_t i) {
    const LlamaSpec& s = kind_.sizes;
    const std::string prefix = "layers." + std::to_string(i) + ".";
    const auto matrix = [&](const char* part, std::int64_t inputs, std::int64_t outputs,
                            float gain = 1.0f) {
      return product(prefix + part, inputs, outputs, gain);
    };
    // As networks are initialised: sums of 2 layers terms keep their variance.
    const float residual = 1.0f / std::sqrt(2.0f * static_cast<float>(s.layers));
    return {.attention_gain = numbers_around(s.width, 1.0f, 0.5f),
            .query = matrix("attention.query", s.width, s.width),
            .key = matrix("attention.key", s.width, s.kv_width()),
            .value = matrix("attention.value", s.width, s.kv_width()),
            .output = matrix("attention.output", s.width, s.width, residual),
            .mlp_gain = numbers_around(s.width, 1.0f, 0.5f),
            .gate = matrix("mlp.gate", s.width, s.ff),
            .up = matrix("mlp.up", s.width, s.ff),
            .down = matrix("mlp.down", s.ff, s.width, residual)};
  }

  RandomLanguage kind_;
  std::uint64_t next_ = 0;
};

inline LanguageNetwork random_language(const RandomLanguage& kind) {
  return RandomLanguageMaker(kind).make();
}

}  // namespace tritgrad::test
