// Writes language models of random numbers as GGUF files, with what they compute: what
// tests/readers/read_gguf.mjs compares with llama.cpp.
// Usage: tritgrad_gguf_cases FOLDER
//
// Makes a folder of each case in FOLDER: m.gguf; logits, fp32 [tokens x vocabulary] of infer(); and
// case.json: {"tokens": [...], "prompt": how many of them were given, the others being the most
// probable ones, "vocabulary", "pieces": whether tokens are pieces, "cache": the type in which
// llama.cpp is to keep keys and values, "most_kl": the largest mean divergence of its
// probabilities}.
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
  double most_kl;
  const char* cache = "F32";
};

constexpr std::int64_t kContext = 64, kPrompt = 16;

// How far llama.cpp's probabilities may be from ours, by what it rounds.
constexpr double kNothing = 1e-9;  // sums alone, as they are added in another order
constexpr double kToHalf = 1e-5;   // inputs of products to fp16: logits of about 2 change by 2^-11
// The same numbers in the same way, by blocks of 256 that are whole rows: a code that falls to the
// other side by the last bit of a sum changes logits by hundredths.
constexpr double kAlike = 1e-4;
constexpr double kOtherwise = 1e-3;  // inputs by blocks of 32, or of 256 in longer rows

std::vector<GgufCase> gguf_cases() {
  const LlamaSpec usual{.layers = 2,
                        .width = 256,
                        .heads = 4,
                        .kv_heads = 4,
                        .ff = 256,
                        .context = kContext,
                        .vocabulary = 256};
  LlamaSpec grouped = usual;
  grouped.kv_heads = 2;
  grouped.tied = true;
  LlamaSpec wide = usual;
  wide.ff = 512;
  LlamaSpec narrow = usual;  // rows that blocks of 256 do not divide
  narrow.width = 192;
  narrow.heads = 6;
  narrow.kv_heads = 1;
  narrow.ff = 320;
  LlamaSpec with_pieces = usual;
  with_pieces.vocabulary = 300;
  return {{"tq2", {.sizes = usual}, GgufType::kTq2, kAlike},
          {"tq1", {.sizes = usual}, GgufType::kTq1, kAlike},
          {"tq2_pieces", {.sizes = with_pieces, .pieces = true}, GgufType::kTq2, kAlike},
          {"tq1_grouped_tied", {.sizes = grouped, .sharpness = 1.0f}, GgufType::kTq1, kAlike},
          {"tq2_wide_half_cache", {.sizes = wide}, GgufType::kTq2, kOtherwise, "F16"},
          {"q2", {.sizes = narrow}, GgufType::kQ2, kOtherwise},
          {"q2_groups", {.sizes = narrow, .group = 64}, GgufType::kQ2, kOtherwise},
          {"trits_as_f16", {.sizes = grouped}, GgufType::kF16, kToHalf},
          {"trits_as_f32", {.sizes = narrow}, GgufType::kF32, kNothing},
          {"f16", {.sizes = usual, .ternary = false}, GgufType::kF16, kToHalf},
          {"f32", {.sizes = narrow, .ternary = false}, GgufType::kF32, kNothing}};
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
              gguf_model(network, {one.name, {"Random numbers.", export_signature()}},
                         {.gguf_type = one.type}));
  write_bytes(folder / "logits", encode_f32(logits));
  const nlohmann::json json{
      {"tokens", tokens},      {"prompt", kPrompt},  {"vocabulary", network.sizes.vocabulary},
      {"pieces", kind.pieces}, {"cache", one.cache}, {"most_kl", one.most_kl}};
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
