#include "models/generation/text_generator.h"

#include "engine/check.h"

namespace tritgrad {

TextGenerator::TextGenerator(const SavedRun& saved, const SamplerSpec& spec)
    : model_(load_for_generation(saved)),
      vocabulary_(saved.vocabulary()),
      generator_(*model_, spec) {
  check(vocabulary_.size() == model_->spec().vocabulary, "checkpoint '", saved.path(),
        "': its model has ", model_->spec().vocabulary, " tokens, but its tokenizer ",
        vocabulary_.size(), "; the file is damaged");
}

void TextGenerator::read(std::string_view prompt) { generator_.read(vocabulary_.encode(prompt)); }

std::string_view TextGenerator::next() { return vocabulary_.bytes_of(generator_.next()); }

}  // namespace tritgrad
