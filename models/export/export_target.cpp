#include "models/export/export_target.h"

#include <algorithm>
#include <filesystem>

#include "engine/check.h"
#include "engine/text.h"
#include "engine/version.h"
#include "models/export/c_header.h"
#include "models/export/gguf.h"
#include "models/export/html_page.h"
#include "models/export/js_module.h"
#include "models/export/npz.h"
#include "models/export/onnx.h"
#include "models/export/pytorch_safetensors.h"

namespace tritgrad {
namespace {

// It stands in the rows of targets that can express whatever a network is.
void check_nothing(const InferenceNetwork&, const ExportHead&) {}

// It stands in the rows of targets that do the operations of infer() in its order.
bool is_exact_as_described(const InferenceNetwork& network) { return network.is_exact(); }

// PyTorch multiplies and adds floats in an order of its own.
bool is_never_exact(const InferenceNetwork&) { return false; }

constexpr ExportTarget kTargets[] = {
    {".h", "C99", "--trits", {check_c_header, c_header_bytes, c_header, is_exact_as_described}},
    {".onnx",
     "ONNX",
     "--onnx-ops --raw-inputs",
     {check_nothing, onnx_bytes, onnx_model, is_onnx_exact}},
    {".js",
     "an ES module",
     "",
     {check_nothing, js_module_bytes, js_module, is_exact_as_described, true}},
    {".html",
     "a page",
     "",
     {check_html_page, js_module_bytes, html_page, is_exact_as_described, true}},
    {".npz", "arrays of NumPy", "", {check_npz, npz_bytes, npz, is_exact_as_described}},
    {".safetensors",
     "a state dictionary of PyTorch",
     "",
     {check_pytorch_safetensors, pytorch_safetensors_bytes, pytorch_safetensors, is_never_exact}},
    {".gguf", "GGUF for llama.cpp", "--type", {}, {check_gguf, gguf_bytes, gguf_model}},
};

// Fails with the complaint, and the nearest ending, unless a target has this one.
const ExportTarget& target_with(const std::string& ending, const std::string& complaint) {
  std::vector<std::string> endings;
  for (const ExportTarget& target : kTargets) {
    if (ending == target.ending) return target;
    endings.emplace_back(target.ending);
  }
  fail(complaint, did_you_mean(ending, endings));
}

constexpr std::string_view kSignature = "Written by tritgrad ";

}  // namespace

std::span<const ExportTarget> export_targets() { return kTargets; }

const ExportTarget& export_target_of(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  return target_with(ending, concat("--to: '", path,
                                    ending.empty() ? "' has no ending to name the kind of export"
                                                   : concat("' ends in '", ending,
                                                            "', which names no kind of export")));
}

const ExportTarget& export_target_with(const std::string& ending, const char* option) {
  return target_with(ending.starts_with('.') ? ending : "." + ending,
                     concat(option, ": '", ending, "' names no kind of export"));
}

void check_takes(const ExportTarget& target, bool language_model, const char* option) {
  if (target.takes(language_model)) return;
  std::string others;
  for (const ExportTarget& each : kTargets) {
    if (each.takes(language_model)) others += concat(others.empty() ? "" : ", ", each.ending);
  }
  fail(option, ": ", target.ending,
       language_model ? " is for networks that read rows of features, and this is a language model"
                      : " is for language models, and this model reads rows of features",
       "; name an ending of ", others);
}

bool reads_option(const ExportTarget& target, std::string_view option) {
  return concat(" ", target.options, " ").find(concat(" ", option, " ")) != std::string::npos;
}

void check_option_of(const ExportTarget& target, std::string_view option) {
  if (reads_option(target, option)) return;
  std::string readers;
  for (const ExportTarget& each : kTargets) {
    if (reads_option(each, option)) readers += concat(readers.empty() ? "" : ", ", each.ending);
  }
  fail(option, ": it is for ", readers, ", and ", target.ending, " does not read it; leave it out");
}

std::string export_signature() { return concat(kSignature, version(), "."); }

bool is_export(std::string_view bytes) { return bytes.find(kSignature) != bytes.npos; }

}  // namespace tritgrad
