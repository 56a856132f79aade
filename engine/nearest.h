// "Did you mean ...?" for misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tritgrad {

// The fewest insertions, deletions, substitutions and swaps of neighbours that turn one word into
// the other (optimal string alignment); letters of different case cost nothing.
int edit_distance(std::string_view a, std::string_view b);

// The candidate closest to `word` (the first of equals), or "" when none is close: a suggestion
// costs at most a third of the word's letters, or one of two.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// "; did you mean 'iris'? Known: iris, wine" to put at the end of a message: the suggestion when
// one is near, and all candidates when they are at most twenty.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace tritgrad
