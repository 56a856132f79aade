// A language model as a GGUF file for llama.cpp, of its architecture `llama`.
//
// Matrices are in one of the types of models/export/gguf_blocks.h: a ternary one, or decoded as
// floats. Embedding and head are fp32 beside trits and beside fp32, and fp16 beside fp16; norms are
// fp32. Tokens that are bytes become llama.cpp's byte-level vocabulary (`gpt2`) without merges,
// whose end of a text is the byte 0; SentencePiece's pieces become its vocabulary `llama`.
#pragma once

#include <string>

#include "models/export/export_target.h"
#include "models/export/gguf_blocks.h"
#include "models/export/language_network.h"

namespace tritgrad {

// Throws Error, with what would work, for floats and for scales of fewer inputs than a ternary
// block has, for rows that no such block divides, and for pieces that cannot spell every byte.
void check_gguf(const LanguageNetwork& network, const ExportSettings& settings);

// Returns the bytes of the tensors. Scales of blocks count as such, all else of a ternary matrix as
// weights.
ExportBytes gguf_bytes(const LanguageNetwork& network, const ExportSettings& settings);

// Returns the file. Throws Error for numbers that fp16 cannot hold.
std::string gguf_model(const LanguageNetwork& network, const ExportHead& head,
                       const ExportSettings& settings);

// Returns by how much scales become another number in fp16, relatively, at most; 0 where they are
// kept in scale16.
double largest_scale_change(const LanguageNetwork& network);

}  // namespace tritgrad
