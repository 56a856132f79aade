// A text as a data set of windows.
#pragma once

#include <memory>
#include <string>

#include "engine/data/dataset.h"
#include "engine/data/token_text.h"

namespace tritgrad {

// Cuts a text into windows of so many tokens; the tokens behind the last whole one, but for its
// label, are left out. Throws Error for a text that is shorter than two windows.
Dataset text_dataset(std::shared_ptr<const TokenText> text, const std::string& name,
                     std::int64_t window);

}  // namespace tritgrad
