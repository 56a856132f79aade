// Text from people and from files: misspelt names, numbers, and bytes that may be no UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tritgrad {

// Returns the fewest insertions, deletions, substitutions and swaps of neighbours that turn one
// word into the other (optimal string alignment); letters of different case cost nothing.
int edit_distance(std::string_view a, std::string_view b);

// Returns the candidate closest to `word` (the first of equals), or "" when none is close: a
// suggestion costs at most a third of the word's letters, or one of two.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// Returns "; did you mean 'iris'? Known: iris, wine" to put at the end of a message: the suggestion
// when one is near, and all candidates when they are at most twenty.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

// Returns the text without the leading + that std::from_chars does not know.
std::string_view without_plus(std::string_view text);

// Returns the value of a whole cell, read the same in every locale: decimal or scientific notation,
// with or without a sign; "nan" and "inf" are numbers too, and a number beyond the range of double
// counts as infinite. Returns nothing for other text.
std::optional<double> parse_number(std::string_view text);

// Returns the shortest text that reads as the same number.
std::string number_text(double value);

// Returns "1 row", "2 rows": for nouns whose plural is an s or, as that of class, an es more.
std::string counted(std::int64_t count, std::string_view noun);

// Returns the text with '?' in place of control characters, which could speak to a terminal: those
// of ASCII and, as UTF-8 has them, U+0080 to U+009F.
std::string printable(std::string_view text);

// Returns "a, b, c": the first eight names, printable, and how many more there are.
std::string enumerated(std::span<const std::string> names);

// Whether the bytes are UTF-8 (RFC 3629), as JSON demands: no overlong forms, no surrogates,
// nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// Returns the text with U+FFFD in place of whatever belongs to no character.
std::string as_utf8(std::string_view text);

}  // namespace tritgrad
