#include "engine/data/text_dataset.h"

#include <limits>
#include <utility>

#include "engine/check.h"

namespace tritgrad {

Dataset text_dataset(std::shared_ptr<const TokenText> text, const std::string& name,
                     std::int64_t window) {
  const std::int64_t tokens = text->size();
  const std::int64_t windows = (tokens - 1) / window;
  check(windows >= 2, name, ": ", tokens, " tokens found, at least ", 2 * window + 1,
        " expected, two windows of the model's context of ", window,
        "; give more text or a smaller context, as in --model llama:4,256:context=64");
  // Loader draws where a window begins as a 32-bit number.
  check(tokens <= std::numeric_limits<std::uint32_t>::max(), name, ": ", tokens,
        " tokens found, at most ", std::numeric_limits<std::uint32_t>::max(),
        " supported; split the text");
  // Numbers of tokens travel as floats.
  check(text->vocabulary() <= 1 << 24, name, ": a vocabulary of ", text->vocabulary(),
        " tokens found, at most 16777216 supported");
  check(windows <= std::numeric_limits<std::int32_t>::max(), name, ": ", windows,
        " windows found, at most 2147483647 supported; give a model with a larger context");
  Dataset dataset;
  dataset.name = name;
  dataset.rows = windows;
  dataset.features = window;
  dataset.text = std::move(text);
  return dataset;
}

}  // namespace tritgrad
