// An inference network as one C99 header: tables of weights and the functions that read them.
//
// The C does what infer() does (models/export/inference_network.h), operation by operation. It
// needs stdint.h, and math.h only for square roots of norms and pixels; it takes nothing from the
// heap and writes to nothing but the workspace of its caller. Five trits are one byte, the first
// one its lowest digit in base 3; each row of weights begins on a byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/export/inference_network.h"

namespace tritgrad {

// Returns the text as a C identifier, by which all names of a header begin: what is no letter or
// digit becomes an underscore, and "model_" is put before a digit or an underscore. Throws Error
// for a text without any letter or digit of ASCII.
std::string c_identifier(const std::string& text);

// The bytes of the tables, to the byte.
struct CHeaderBytes {
  std::int64_t weights;    // trits, or floats
  std::int64_t scales;     // of trits
  std::int64_t others;     // norms, biases, standardisation
  std::int64_t workspace;  // of the caller, in memory that is written

  std::int64_t tables() const { return weights + scales + others; }
};
CHeaderBytes c_header_bytes(const InferenceNetwork& network);

// Returns the header. `name` is an identifier; `provenance` are lines of the comment at its head.
std::string c_header(const InferenceNetwork& network, const std::string& name,
                     const std::vector<std::string>& provenance);

}  // namespace tritgrad
