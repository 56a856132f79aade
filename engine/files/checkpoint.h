// Checkpoints: named planes of bytes and string metadata in one safetensors file.
//
// Saving replaces the file atomically and records hashes; loading verifies everything before the
// first byte of the live state is touched.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/files/safetensors.h"
#include "engine/parameter.h"

namespace tritgrad {

// Returns the planes of all parameters, in order, named "layers.0.weight/trits" and so on.
std::vector<NamedArray> parameter_planes(const ParameterStore& store);

// Returns the SHA-256 over names and bytes, as they lie in files, of all parameter planes, as 64
// hex digits: equal hashes, equal weights, accumulators, scales, biases and statistics.
std::string weights_sha256(const ParameterStore& store);
// Returns that hash of any planes.
std::string planes_sha256(const std::vector<NamedArray>& planes);

// Hands the bytes of a whole checkpoint to `write`; `name` stands for its path in errors.
void write_checkpoint(const ByteSink& write, const Metadata& metadata,
                      const std::vector<NamedArray>& planes, const std::string& name);
void save_checkpoint(const std::string& path, const Metadata& metadata,
                     const std::vector<NamedArray>& planes);

// The key by which the metadata of an export in the same format are known.
inline constexpr const char* kExportKey = "tritgrad.export";

// Opens a checkpoint and verifies all hashes. Throws Error for a file without, for a damaged or
// another one, with what to do, and for an export.
SafetensorsFile open_checkpoint(const std::string& path);
// Does so for bytes in memory, which must outlive it; `name` stands for the path in errors.
SafetensorsFile parse_checkpoint(std::span<const std::byte> bytes, const std::string& name);

// Copies the file's bytes into `planes`. The file must hold exactly these names, types and shapes;
// else Error says which one is missing, left over or different, and nothing is copied.
void load_checkpoint(const SafetensorsFile& file, const std::vector<NamedArray>& planes);

// Copies single planes: for readers that need a part of a checkpoint.
void load_planes(const SafetensorsFile& file, const std::vector<NamedArray>& planes);

}  // namespace tritgrad
