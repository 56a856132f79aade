// The kinds of files that a model leaves as, one for each ending.
//
// A target is one file beside this one that writes the description of a network or of a language
// model, and a row of the table in export_target.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/names.h"
#include "models/export/gguf_blocks.h"
#include "models/export/inference_network.h"
#include "models/export/language_network.h"

namespace tritgrad {

// How trits become bytes: five to a byte in base 3, four in 2 bits each, which are read faster, or
// a byte each, which are read fastest.
enum class TritPacking { kBase3, kTwoBits, kInt8 };
inline constexpr Names<TritPacking, 3> kTritPackings{"packing of trits",
                                                     {{{TritPacking::kBase3, "base3"},
                                                       {TritPacking::kTwoBits, "2bit"},
                                                       {TritPacking::kInt8, "int8"}}}};

// What a user chooses of a file.
struct ExportSettings {
  TritPacking trits = TritPacking::kBase3;
  bool standard_onnx_ops = false;       // of ONNX alone, not those of com.microsoft
  bool raw_inputs = false;              // inputs are standardised already
  GgufType gguf_type = GgufType::kTq2;  // of the matrices of a language model
};

// What a file says of itself.
struct ExportHead {
  std::string name;  // of the file, without folder and ending
  // Sentences on the model, its data and its accuracy. The last one is "Written by tritgrad
  // VERSION.", by which an export is known.
  std::vector<std::string> provenance;
};

// The bytes of a file, to the byte for what a network is made of.
struct ExportBytes {
  std::int64_t weights = 0;    // trits, or floats
  std::int64_t scales = 0;     // of trits
  std::int64_t others = 0;     // norms, biases, standardisation
  std::int64_t workspace = 0;  // of the caller, in memory that is written; 0: the target has none
  std::int64_t code = 0;       // about so many on a small processor; 0: not known, or none

  std::int64_t tables() const { return weights + scales + others; }
};

// How a target writes networks that read rows of features.
struct NetworkExport {
  // Throws Error, which names the part and the targets that can, for what it cannot express.
  void (*check)(const InferenceNetwork& network, const ExportHead& head) = nullptr;
  ExportBytes (*bytes)(const InferenceNetwork& network, const ExportSettings& settings) = nullptr;
  // Returns the bytes of the file.
  std::string (*write)(const InferenceNetwork& network, const ExportHead& head,
                       const ExportSettings& settings) = nullptr;
  // Whether what reads the file computes the bits that the model does, where
  // InferenceNetwork::is_exact() says that there are such bits; else it does within rounding.
  bool (*is_exact)(const InferenceNetwork& network) = nullptr;
  bool shows_images = false;  // what it writes depends on InferenceNetwork::extent
};

// How a target writes language models. What reads the file computes the same within rounding.
struct LanguageExport {
  void (*check)(const LanguageNetwork& network, const ExportSettings& settings) = nullptr;
  ExportBytes (*bytes)(const LanguageNetwork& network, const ExportSettings& settings) = nullptr;
  std::string (*write)(const LanguageNetwork& network, const ExportHead& head,
                       const ExportSettings& settings) = nullptr;
};

// It takes models of one kind or of both.
struct ExportTarget {
  std::string_view ending;       // ".h"
  std::string_view description;  // "C99", behind "as"
  std::string_view options;      // of the command line that it reads, with a blank between them
  NetworkExport network = {};
  LanguageExport language = {};

  bool takes(bool language_model) const {
    return language_model ? language.write != nullptr : network.write != nullptr;
  }
};

std::span<const ExportTarget> export_targets();

// Returns the target that the path ends in. Throws Error for an unknown ending, with the nearest.
const ExportTarget& export_target_of(const std::string& path);

// Returns the target with this ending, with a dot before it or without. Throws Error for an unknown
// one, with the nearest; the message begins with the option.
const ExportTarget& export_target_with(const std::string& ending, const char* option);

// Throws Error, which begins with the option that named the target, for one that does not take
// language models, or does not take other networks, with those that do.
void check_takes(const ExportTarget& target, bool language_model, const char* option);

// Whether the target reads an option of the command line, such as "--trits".
bool reads_option(const ExportTarget& target, std::string_view option);
// Throws Error, which names the targets that do, where it does not.
void check_option_of(const ExportTarget& target, std::string_view option);

// Returns "Written by tritgrad VERSION.".
std::string export_signature();
// Whether the bytes of a file are those of an export, which may be replaced by another.
bool is_export(std::string_view bytes);

}  // namespace tritgrad
