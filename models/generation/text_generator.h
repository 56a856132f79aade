// A saved language model that writes text on, piece by piece.
#pragma once

#include <memory>
#include <string_view>

#include "engine/data/vocabulary.h"
#include "models/generation/generator.h"

namespace tritgrad {

class TextGenerator {
 public:
  // Loads the model with packed trits, see load_for_generation(). Throws Error for a checkpoint of
  // another kind of model, and where its tokenizer is not that of its model.
  TextGenerator(const SavedRun& saved, const SamplerSpec& spec);

  // Reads what is to be written on; see Generator::read().
  void read(std::string_view prompt);
  // Returns the bytes of the next token, which live as long as this. They may be a part of a
  // character.
  std::string_view next();

  // See Generator::looked_at().
  std::int64_t looked_at() const { return generator_.looked_at(); }
  const Llama& model() const { return *model_; }

 private:
  std::unique_ptr<Llama> model_;
  Vocabulary vocabulary_;
  Generator generator_;
};

}  // namespace tritgrad
