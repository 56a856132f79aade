// A language model that writes on, token by token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/tape.h"
#include "models/generation/sampler.h"
#include "models/networks/llama.h"
#include "models/training/saved_run.h"

namespace tritgrad {

// Returns the language model of a checkpoint with its ternary matrices as packed trits, five to a
// byte, whatever they were trained in: the residuals are left behind, and the values are the same.
// Throws Error for a checkpoint of another kind of model.
std::unique_ptr<Llama> load_for_generation(const SavedRun& saved);

class Generator {
 public:
  // The model must outlive it.
  Generator(Llama& model, const SamplerSpec& spec);

  // Reads what is to be written on. Throws Error for nothing, for tokens outside the vocabulary,
  // and for more than the context.
  void read(std::span<const std::int32_t> tokens);
  // Returns the next token, which is read, too. Where the context is full, the older half of it is
  // forgotten: the younger one is read again from position 0.
  std::int32_t next();

  // How many tokens the last one looked at, itself among them.
  std::int64_t looked_at() const { return cache_.tokens(); }

 private:
  Llama& model_;
  Sampler sampler_;
  Tape tape_;
  KeyValueCache cache_;
  std::vector<std::int32_t> window_;  // the tokens in the cache
  std::vector<float> logits_;
};

}  // namespace tritgrad
