// An inference network as arrays of NumPy, in one .npz file that numpy.load reads without pickles.
//
// docs/EXPORT_PYTHON.md lists the arrays. Weights are there as floats, as trits of a byte each, and as
// trits of which five are a byte; those of convolutions have the axes output, row, column, channel.
#pragma once

#include <string>

#include "models/export/export_target.h"

namespace tritgrad {

// Throws Error for names that are not UTF-8, and for cells of a table that become the mean.
void check_npz(const InferenceNetwork& network, const ExportHead& head);

// Weights are all three forms together.
ExportBytes npz_bytes(const InferenceNetwork& network, const ExportSettings& settings);

// Returns the file, whose last bytes are the last sentence of the provenance. Trits are packed in
// base 3, whatever the settings.
std::string npz(const InferenceNetwork& network, const ExportHead& head,
                const ExportSettings& settings);

}  // namespace tritgrad
