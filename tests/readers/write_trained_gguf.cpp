// Writes what a trained language model computes of the end of a text: what
// tests/readers/read_gguf.mjs compares with llama.cpp's reading of the model's GGUF file.
// Usage: tritgrad_trained_gguf CHECKPOINT FILE.gguf TEXT WINDOWS FOLDER
//
// Makes a folder in FOLDER for each of the last windows of the context's length: a link to the file
// as m.gguf; logits, fp32 [tokens x vocabulary] of the model; and case.json (write_gguf.cpp), in
// which "trained" says that the tokens are those of a text.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/check.h"
#include "engine/data/token_text.h"
#include "models/networks/llama.h"
#include "models/training/evaluate.h"
#include "models/training/saved_run.h"

namespace tritgrad::test {
namespace {

// The largest mean divergence, in nats, and what llama.cpp keeps of keys and values by default.
constexpr double kMostKl = 1e-3;
constexpr const char* kCache = "F16";

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  check(file.good(), "'", path.string(), "' cannot be written");
}

void write_window(Model& model, const std::vector<std::int32_t>& tokens, std::int64_t vocabulary,
                  const std::filesystem::path& gguf, const std::filesystem::path& folder) {
  std::vector<float> x(tokens.begin(), tokens.end());
  Tape tape;
  tape.set_recording(false);
  const Tensor logits = model.forward(tape, {x.data(), {1, std::ssize(x)}}, {}).value;
  std::string bytes(static_cast<std::size_t>(logits.size()) * sizeof(float), '\0');
  std::memcpy(bytes.data(), logits.data, bytes.size());
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(std::filesystem::absolute(gguf), folder / "m.gguf");
  write_bytes(folder / "logits", bytes);
  const nlohmann::json json{{"tokens", tokens},
                            {"trained", true},
                            {"vocabulary", vocabulary},
                            {"cache", kCache},
                            {"most_kl", kMostKl}};
  write_bytes(folder / "case.json", json.dump());
}

void write_windows(const std::string& checkpoint, const std::string& gguf, const std::string& path,
                   std::int64_t windows, const std::filesystem::path& folder) {
  const SavedRun saved(checkpoint);
  const LoadedModel loaded = load_model(saved);
  const std::int64_t context = context_of(loaded.plan.model);
  const TokenText text = open_tokens(path, saved.vocabulary());
  for (std::int64_t i = 0; i < windows; ++i) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(context));
    text.read(text.size() - (i + 1) * context, context, tokens.data());
    write_window(*loaded.model, tokens, loaded.plan.outputs, gguf, folder / concat("window", i));
  }
}

}  // namespace
}  // namespace tritgrad::test

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: tritgrad_trained_gguf CHECKPOINT FILE.gguf TEXT WINDOWS FOLDER\n";
    return 2;
  }
  try {
    tritgrad::test::write_windows(argv[1], argv[2], argv[3], std::atoll(argv[4]), argv[5]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
