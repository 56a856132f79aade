// An inference network as one C99 header: tables of weights and the functions that read them.
//
// The C does what infer() does (models/export/inference_network.h), operation by operation. It
// needs stdint.h, and math.h only for square roots of norms and pixels; it takes nothing from the
// heap and writes to nothing but the workspace of its caller. Trits are digits of a byte,
// the first one the lowest; each row of weights begins on a byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/names.h"
#include "models/export/inference_network.h"

namespace tritgrad {

// How trits become bytes: five to a byte in base 3, or four in 2 bits each, which are read faster.
enum class TritPacking { kBase3, kTwoBits };
inline constexpr Names<TritPacking, 2> kTritPackings{
    "packing of trits", {{{TritPacking::kBase3, "base3"}, {TritPacking::kTwoBits, "2bit"}}}};

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
CHeaderBytes c_header_bytes(const InferenceNetwork& network,
                            TritPacking packing = TritPacking::kBase3);

// Returns the header. `name` is an identifier; `provenance` are lines of the comment at its head.
std::string c_header(const InferenceNetwork& network, const std::string& name,
                     const std::vector<std::string>& provenance,
                     TritPacking packing = TritPacking::kBase3);

}  // namespace tritgrad
