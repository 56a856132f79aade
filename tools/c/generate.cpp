// The function of tritgrad.h by which a language model writes on.
#include <string>
#include <string_view>

#include "models/generation/text_generator.h"
#include "tools/c/border.h"
#include "tools/c/handles.h"
#include "tools/c/spec_json.h"

using namespace tritgrad;

tg_status tg_model_generate(tg_model* model, const char* prompt, size_t size, const char* options,
                            tg_writer writer, void* context) {
  return status_of([&] {
    const SavedRun& saved = of(model, "model").saved;
    const std::string_view text(text_of(prompt, "prompt", "a text"), size);
    check(writer != nullptr, "writer: NULL found, a function that takes bytes expected");
    const GenerateSpec spec = generate_spec_from_json(options == nullptr ? "{}" : options);
    TextGenerator generator(saved, spec.sampler);
    generator.read(text);
    for (std::int64_t written = 0; written < spec.length; ++written) {
      const std::string_view bytes = generator.next();
      if (writer(bytes.data(), bytes.size(), context) != 0) return;
    }
  });
}
