// What a trained transformer computes of a row of tokens: the description that exports of language
// models are written from, as models/export/inference_network.h is for other networks.
//
// infer() is its meaning, in plain loops. Products in integers have the bits of our own inference
// for the same inputs; sines, exponents and sums of the attention are in double here, so that
// logits agree within rounding, not bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/data/vocabulary.h"
#include "engine/parameter.h"
#include "models/export/inference_product.h"
#include "models/networks/llama.h"

namespace tritgrad {

// What the tokens of a SentencePiece model stand for; token t is piece t.
struct TokenPieces {
  std::vector<std::string> pieces = {};  // in UTF-8, with U+2581 for a blank
  std::vector<float> scores = {};        // of pairs that are merged, the highest first
  std::vector<PieceType> kinds = {};
  std::int32_t unknown = -1, begin = -1, end = -1;  // special pieces; -1: there is none
  bool begins_with_blank = true;                    // a blank is put before every text
};

// Returns the pieces of a tokenizer; none of one of bytes.
TokenPieces pieces_of(const Vocabulary& vocabulary);

struct LanguageLayer {
  std::vector<float> attention_gain = {};  // of the RMS norm before the attention [width]
  InferenceProduct query, key, value, output;
  std::vector<float> mlp_gain = {};
  InferenceProduct gate, up, down;
};

struct LanguageNetwork {
  LlamaSpec sizes = {};
  std::vector<float> embedding = {};  // [vocabulary x width]
  std::vector<LanguageLayer> layers = {};
  std::vector<float> head_gain = {};  // [width]
  std::vector<float> head = {};       // [vocabulary x width]; empty: the embedding
  // Without pieces tokens are bytes, and the byte 0, which no text has, stands for its end.
  TokenPieces tokens = {};

  bool reads_bytes() const { return tokens.pieces.empty(); }
  std::int64_t weights() const;  // of the ternary matrices, or those in their place
  // Returns all matrices but embedding and head, in the order of the parameters.
  std::vector<const InferenceProduct*> products() const;
};

// Describes the parameters of models/networks/llama.h by their names, all but the tokens. Throws
// Error for sizes that they do not have, and for numbers that are not finite.
LanguageNetwork describe_language_network(ParameterStore& parameters, const LlamaSpec& sizes,
                                          Compute compute);

// Reads a row token by token, and keeps keys and values of those before.
class LanguageReader {
 public:
  // The network must outlive the reader.
  explicit LanguageReader(const LanguageNetwork& network);

  // Returns the logits of the next token [vocabulary]. Throws Error for a number that is no token,
  // and beyond the context.
  std::vector<float> read(std::int32_t token);

 private:
  std::vector<float> turned(std::vector<float> x) const;
  std::vector<float> attend(std::size_t layer, std::vector<float> x);
  void mix(std::size_t layer, std::int64_t head, const std::vector<float>& query,
           std::vector<float>& mixed) const;

  const LanguageNetwork& network_;
  std::vector<std::vector<std::vector<float>>> keys_, values_;  // [layer][position], of all heads
  std::int64_t position_ = 0;
};

// Returns the logits of the token behind each [tokens x vocabulary].
std::vector<float> infer(const LanguageNetwork& network, std::span<const std::int32_t> tokens);

}  // namespace tritgrad
