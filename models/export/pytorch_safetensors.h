// An inference network as the state dictionary of a torch.nn.Sequential, in one .safetensors file.
//
// Weights are floats under the names and in the layouts of PyTorch's modules. The metadata carry
// the modules themselves, as text of Python; docs/EXPORT_PYTHON.md lists its keys.
#pragma once

#include <string>

#include "models/export/export_target.h"

namespace tritgrad {

// Throws Error for names that are not UTF-8, for cells of a table that become the mean, and for
// inputs of a standard deviation that running_var, its square in fp32, cannot hold.
void check_pytorch_safetensors(const InferenceNetwork& network, const ExportHead& head);

ExportBytes pytorch_safetensors_bytes(const InferenceNetwork& network,
                                      const ExportSettings& settings);

// Returns the file. No settings change it.
std::string pytorch_safetensors(const InferenceNetwork& network, const ExportHead& head,
                                const ExportSettings& settings);

}  // namespace tritgrad
