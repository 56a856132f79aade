// "Did you mean": the known name that is nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tritgrad {

// Levenshtein distance: insertions, deletions and substitutions of single bytes.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest edit distance (the first of several); empty when there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// "; did you mean 'votes'? Known: fp32, master, votes", to end an error message with.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace tritgrad
