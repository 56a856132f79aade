// Writes language models of random numbers as GGUF files, with what they compute: what
// tests/readers/read_gguf.mjs compares with llama.cpp.
// Usage: tritgrad_gguf_cases FOLDER
//
// Makes a folder of each case in FOLDER: m.gguf; logits, fp32 [tokens x vocabulary] of infer(); and
// case.json: {"tokens": [...], "prompt": how many of them were given, the others being the most
// probable ones, "vocabulary", "pieces": whether tokens are pieces, "rounds":
// whether products round their inputs to int8}.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/check.h"
#include "models/export/gguf.h"
#include "tests/support/random_language.h"

namespace tritgrad::test {
namespace {

struct GgufCase {
  const char* name;
  RandomLanguage kind;
  GgufType type;
};

constexpr std::int64_t kContext = 64, kPrompt = 16;

std::vector<GgufCase> gguf_cases() {
  const LanguageSizes usual{.layers = 2,
                            .width = 256,
                            .heads = 4,
                            .kv_heads = 4,
                            .ff = 512,
                            .context = kContext,
                            .vocabulary = 256};
  LanguageSizes grouped = usual;
  grouped.kv_heads = 2;
  grouped.tied = true;
  LanguageSizes odd = usual;  // rows that blocks of 256 do not divide
  odd.width = 192;
  odd.heads = 6;
  odd.kv_heads = 1;
  odd.ff = 320;
  LanguageSizes with_pieces = usual;
  with_pieces.vocabulary = 300;
  return {{"tq2", {.sizes = usual}, GgufType::kTq2},
          {"tq1", {.sizes = usual}, GgufType::kTq1},
          {"tq2_grouped_tied", {.sizes = grouped}, GgufType::kTq2},
          {"q2", {.sizes = odd}, GgufType::kQ2},
          {"q2_groups", {.sizes = odd, .group = 64}, GgufType::kQ2},
          {"trits_as_f16", {.sizes = grouped}, GgufType::kF16},
          {"trits_as_f32", {.sizes = odd}, GgufType::kF32},
          {"f16", {.sizes = usual, .ternary = false}, GgufType::kF16},
          {"f32", {.sizes = odd, .ternary = false}, GgufType::kF32},
          {"pieces", {.sizes = with_pieces, .pieces = true}, GgufType::kTq2}};
}

// Returns tokens of which the first ones are random and each other is the most probable one.
std::vector<std::int32_t> read_on(const LanguageNetwork& network, std::vector<float>& logits) {
  const auto vocabulary = static_cast<float>(network.sizes.vocabulary);
  LanguageReader reader(network);
  std::vector<std::int32_t> tokens;
  std::vector<float> next;
  for (std::uint64_t i = 0; i < kContext; ++i) {
    const auto most_probable = std::max_element(next.begin(), next.end()) - next.begin();
    const float chance = vocabulary * random_uniform({5, 2, 0}, i);
    tokens.push_back(
        static_cast<std::int32_t>(i < kPrompt ? static_cast<std::int64_t>(chance) : most_probable));
    next = reader.read(tokens.back());
    logits.insert(logits.end(), next.begin(), next.end());
  }
  return tokens;
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  check(file.good(), "'", path.string(), "' cannot be written");
}

void write_case(const std::filesystem::path& folder, const GgufCase& one) {
  RandomLanguage kind = one.kind;
  kind.in_integers = is_ternary(one.type);
  const LanguageNetwork network = random_language(kind);
  std::vector<float> logits;
  const std::vector<std::int32_t> tokens = read_on(network, logits);
  std::filesystem::create_directories(folder);
  write_bytes(folder / "m.gguf",
              gguf_model(network, {one.name, {"Random numbers.", export_signature()}}, one.type));
  write_bytes(folder / "logits", encode_f32(logits));
  const nlohmann::json json{{"tokens", tokens},
                            {"prompt", kPrompt},
                            {"vocabulary", network.sizes.vocabulary},
                            {"pieces", kind.pieces},
                            {"rounds", is_ternary(one.type)}};
  write_bytes(folder / "case.json", json.dump());
}

}  // namespace
}  // namespace tritgrad::test

int main(int argc, char** argv) {
  using namespace tritgrad::test;
  if (argc != 2) {
    std::cerr << "usage: tritgrad_gguf_cases FOLDER\n";
    return 2;
  }
  try {
    for (const GgufCase& one : gguf_cases()) {
      write_case(std::filesystem::path(argv[1]) / one.name, one);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
