// An inference network as one C99 header: tables of weights and the functions that read them.
//
// The C does what infer() does (models/export/inference_network.h), operation by operation. It
// needs stdint.h, and math.h only for square roots of norms and pixels; it takes nothing from the
// heap and writes to nothing but the workspace of its caller. Trits are digits of a byte,
// the first one the lowest, or a byte each; each row of weights begins on a byte. The features of a
// table have names, and where they are not its cells a function makes them (c_encoder.h).
#pragma once

#include <string>

#include "models/export/export_target.h"

namespace tritgrad {

// Throws Error for a name without letters and digits.
void check_c_header(const InferenceNetwork& network, const ExportHead& head);

// Returns the bytes of the tables and of the workspace, exactly, and about those of the code on a
// Cortex-M4, compiled for size.
ExportBytes c_header_bytes(const InferenceNetwork& network, const ExportSettings& settings);

// Returns the header, in which c_identifier(head.name) begins all names.
std::string c_header(const InferenceNetwork& network, const ExportHead& head,
                     const ExportSettings& settings);

}  // namespace tritgrad
