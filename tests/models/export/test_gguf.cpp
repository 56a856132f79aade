// GGUF files: the header byte by byte, what a model becomes, and what is refused. What llama.cpp
// computes of them is compared by tests/scripts/llama_cpp.sh.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/export/gguf.h"
#include "models/export/gguf_file.h"
#include "models/export/network_arrays.h"
#include "tests/support/gguf_reader.h"
#include "tests/support/random_language.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_gguf {
namespace {

const ExportHead kHead{"lm", {"A test.", export_signature()}};

LlamaSpec small_sizes() {
  return {.layers = 2,
          .width = 256,
          .heads = 4,
          .kv_heads = 2,
          .ff = 512,
          .context = 32,
          .vocabulary = 256};
}

std::string refusal(const LanguageNetwork& network, GgufType type) {
  try {
    check_gguf(network, {.gguf_type = type});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void check_matrix(const GgufContents& file, const std::string& name, const InferenceProduct& w,
                  std::uint32_t type) {
  CAPTURE(name);
  const GgufTensor& tensor = file.tensor(name);
  CHECK(tensor.type == type);
  CHECK(tensor.axes == std::vector<std::uint64_t>{static_cast<std::uint64_t>(w.inputs),
                                                  static_cast<std::uint64_t>(w.outputs)});
  CHECK(tensor.numbers == decoded_weights(w));
}

void check_floats(const GgufContents& file, const std::string& name,
                  const std::vector<float>& numbers, std::vector<std::uint64_t> axes) {
  CAPTURE(name);
  CHECK(file.tensor(name).axes == axes);
  CHECK(file.tensor(name).type == 0);
  CHECK(file.tensor(name).numbers == numbers);
}

void check_layer(const GgufContents& file, const std::string& prefix, const LanguageLayer& layer,
                 std::uint32_t type) {
  check_floats(file, prefix + "attn_norm.weight", layer.attention_gain, {256});
  check_matrix(file, prefix + "attn_q.weight", layer.query, type);
  check_matrix(file, prefix + "attn_k.weight", layer.key, type);
  check_matrix(file, prefix + "attn_v.weight", layer.value, type);
  check_matrix(file, prefix + "attn_output.weight", layer.output, type);
  check_floats(file, prefix + "ffn_norm.weight", layer.mlp_gain, {256});
  check_matrix(file, prefix + "ffn_gate.weight", layer.gate, type);
  check_matrix(file, prefix + "ffn_up.weight", layer.up, type);
  check_matrix(file, prefix + "ffn_down.weight", layer.down, type);
}

std::size_t bytes_of_tensors(const GgufContents& file) {
  std::size_t bytes = 0;
  for (const GgufTensor& tensor : file.tensors) {
    const auto traits = {GgufType::kF32, GgufType::kF16, GgufType::kTq1, GgufType::kTq2,
                         GgufType::kQ2};
    for (const GgufType type : traits) {
      if (gguf_traits(type).id == tensor.type) {
        bytes += static_cast<std::size_t>(gguf_traits(type).bytes_of(std::ssize(tensor.numbers)));
      }
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("gguf: the bytes of a file with every kind of key and two tensors") {
  GgufWriter writer;
  writer.add_u32("a", 258);
  writer.add_f32("b", 1.0f);
  writer.add_bool("c", true);
  writer.add_text("d", "xy");
  writer.add_texts("e", std::vector<std::string>{"x", ""});
  writer.add_i32s("f", std::vector<std::int32_t>{-1});
  writer.add_f32s("g", std::vector<float>{-2.0f});
  writer.add_tensor("t", 3, 1, GgufType::kF32, std::string(12, '\1'));
  writer.add_tensor("u", 0, 2, GgufType::kF16, std::string(4, '\2'));
  const auto u32 = [](int low) { return std::string{static_cast<char>(low), 0, 0, 0}; };
  const auto u64 = [&u32](int low) { return u32(low) + u32(0); };
  std::string expected = "GGUF" + u32(3) + u64(2) + u64(7);
  expected += u64(1) + "a" + u32(4) + std::string{2, 1, 0, 0};
  expected += u64(1) + "b" + u32(6) + std::string{0, 0, '\x80', '\x3F'};
  expected += u64(1) + "c" + u32(7) + std::string{1};
  expected += u64(1) + "d" + u32(8) + u64(2) + "xy";
  expected += u64(1) + "e" + u32(9) + u32(8) + u64(2) + u64(1) + "x" + u64(0);
  expected += u64(1) + "f" + u32(9) + u32(5) + u64(1) + std::string(4, '\xFF');
  expected += u64(1) + "g" + u32(9) + u32(6) + u64(1) + std::string{0, 0, 0, '\xC0'};
  expected += u64(1) + "t" + u32(2) + u64(1) + u64(3) + u32(0) + u64(0);
  expected += u64(1) + "u" + u32(1) + u64(2) + u32(1) + u64(32);
  expected.resize((expected.size() + 31) / 32 * 32, '\0');
  expected += std::string(12, '\1') + std::string(20, '\0');
  expected += std::string(4, '\2') + std::string(28, '\0');
  CHECK(writer.bytes() == expected);
  CHECK_THROWS_AS(writer.add_u32("h", std::int64_t{1} << 32), Error);
}

TEST_CASE("gguf: a model of trits keeps all numbers, in every ternary type") {
  for (const GgufType type : {GgufType::kTq2, GgufType::kTq1, GgufType::kQ2}) {
    CAPTURE(kGgufTypes.name(type));
    const LanguageNetwork network = random_language({.sizes = small_sizes()});
    const std::string bytes = gguf_model(network, kHead, {.gguf_type = type});
    CHECK(is_export(bytes));
    CHECK(bytes == gguf_model(network, kHead, {.gguf_type = type}));
    const GgufContents file = read_gguf(bytes);
    const std::uint32_t id = gguf_traits(type).id;
    CHECK(file.tensors.size() == 3 + 2 * 9);
    check_floats(file, "token_embd.weight", network.embedding, {256, 256});
    check_layer(file, "blk.0.", network.layers[0], id);
    check_layer(file, "blk.1.", network.layers[1], id);
    check_floats(file, "output_norm.weight", network.head_gain, {256});
    check_floats(file, "output.weight", network.head, {256, 256});
    CHECK(file.at<std::uint32_t>("general.file_type") == gguf_traits(type).file_type);
    const ExportBytes counted = gguf_bytes(network, {.gguf_type = type});
    CHECK(counted.tables() == static_cast<std::int64_t>(bytes_of_tensors(file)));
    CHECK(counted.scales == network.weights() / gguf_traits(type).block * 2);
    CHECK(largest_scale_change(network) == 0.0);
  }
}

TEST_CASE("gguf: floats, and trits as floats, without a head where it is the embedding") {
  LlamaSpec sizes = small_sizes();
  sizes.width = 40;  // no block divides it
  sizes.tied = true;
  for (const bool ternary : {true, false}) {
    const LanguageNetwork network = random_language({.sizes = sizes, .ternary = ternary});
    const GgufContents file = read_gguf(gguf_model(network, kHead, {.gguf_type = GgufType::kF32}));
    CHECK(file.tensors.size() == 2 + 2 * 9);
    check_matrix(file, "blk.1.ffn_down.weight", network.layers[1].down, 0);
    CHECK(file.at<std::uint32_t>("general.file_type") == 0);

    const GgufContents halves =
        read_gguf(gguf_model(network, kHead, {.gguf_type = GgufType::kF16}));
    CHECK(halves.at<std::uint32_t>("general.file_type") == 1);
    CHECK(halves.tensor("token_embd.weight").type == 1);
    CHECK(halves.tensor("blk.0.attn_norm.weight").type == 0);
    const std::vector<float> found = halves.tensor("blk.0.attn_q.weight").numbers;
    const std::vector<float> expected = decoded_weights(network.layers[0].query);
    // fp16 has 11 bits of mantissa, and 2^-24 is its smallest number.
    const bool near = std::equal(
        found.begin(), found.end(), expected.begin(), expected.end(),
        [](float a, float b) { return std::abs(a - b) <= std::abs(b) * 0x1p-11f + 0x1p-25f; });
    CHECK(near);
  }
}

TEST_CASE("gguf: keys of a model of bytes") {
  const LanguageNetwork network = random_language({.sizes = small_sizes()});
  const GgufContents file = read_gguf(gguf_model(network, kHead, {.gguf_type = GgufType::kTq2}));
  CHECK(file.at<std::string>("general.architecture") == "llama");
  CHECK(file.at<std::string>("general.name") == "lm");
  CHECK(file.at<std::string>("general.description") == "A test. " + export_signature());
  const std::pair<const char*, std::uint32_t> sizes[] = {{"vocab_size", 256},
                                                         {"context_length", 32},
                                                         {"embedding_length", 256},
                                                         {"block_count", 2},
                                                         {"feed_forward_length", 512},
                                                         {"attention.head_count", 4},
                                                         {"attention.head_count_kv", 2},
                                                         {"rope.dimension_count", 64}};
  for (const auto& [key, size] : sizes) {
    CHECK(file.at<std::uint32_t>(std::string("llama.") + key) == size);
  }
  CHECK(file.at<float>("llama.attention.layer_norm_rms_epsilon") == 1e-6f);
  CHECK(file.at<float>("llama.rope.freq_base") == 10000.0f);
  CHECK(file.at<std::string>("tokenizer.ggml.model") == "gpt2");
  CHECK(file.at<std::string>("tokenizer.ggml.pre") == "gpt-2");
  CHECK(file.at<std::vector<std::string>>("tokenizer.ggml.merges").empty());
  CHECK(!file.at<bool>("tokenizer.ggml.add_bos_token"));
  CHECK(file.at<std::uint32_t>("tokenizer.ggml.eos_token_id") == 0);
  const auto kinds = file.at<std::vector<std::int32_t>>("tokenizer.ggml.token_type");
  CHECK(kinds[0] == 3);
  CHECK(std::count(kinds.begin(), kinds.end(), 1) == 255);
  // Names of GPT-2 (Radford et al. 2019, encoder.py): the first other byte is U+0100, a newline
  // U+010A, a blank U+0120, 0x7F U+0121, 0xA0 U+0142, 0xAD U+0143.
  const auto tokens = file.at<std::vector<std::string>>("tokenizer.ggml.tokens");
  REQUIRE(tokens.size() == 256);
  CHECK(std::set<std::string>(tokens.begin(), tokens.end()).size() == 256);
  CHECK(tokens[0] == "\u0100");
  CHECK(tokens['\n'] == "\u010A");
  CHECK(tokens[' '] == "\u0120");
  CHECK(tokens['a'] == "a");
  CHECK(tokens[0x7F] == "\u0121");
  CHECK(tokens[0xA0] == "\u0142");
  CHECK(tokens[0xAD] == "\u0143");
  CHECK(tokens[0xE9] == "\u00E9");
}

TEST_CASE("gguf: keys of a model of pieces") {
  LlamaSpec sizes = small_sizes();
  sizes.vocabulary = 300;
  LanguageNetwork network = random_language({.sizes = sizes, .pieces = true});
  network.tokens.unknown = -1;
  const GgufContents file = read_gguf(gguf_model(network, kHead, {.gguf_type = GgufType::kTq2}));
  CHECK(file.at<std::string>("tokenizer.ggml.model") == "llama");
  CHECK(file.at<std::vector<std::string>>("tokenizer.ggml.tokens") == network.tokens.pieces);
  CHECK(file.at<std::vector<float>>("tokenizer.ggml.scores") == network.tokens.scores);
  const auto kinds = file.at<std::vector<std::int32_t>>("tokenizer.ggml.token_type");
  CHECK(kinds.size() == 300);
  CHECK(kinds[3] == 6);
  CHECK(!file.keys.contains("tokenizer.ggml.unknown_token_id"));
  CHECK(file.at<std::uint32_t>("tokenizer.ggml.eos_token_id") == 2);
  CHECK(file.at<bool>("tokenizer.ggml.add_space_prefix"));
}

TEST_CASE("gguf: what cannot be expressed is refused, with what would work") {
  LlamaSpec sizes = small_sizes();
  CHECK(refusal(random_language({.sizes = sizes, .ternary = false}), GgufType::kTq2) ==
        "export: 'layers.0.attention.query' has floats, but --type tq2_0 holds trits alone; take "
        "--type f16 or f32, or train with a ternary recipe");
  CHECK(refusal(random_language({.sizes = sizes, .group = 64}), GgufType::kTq1) ==
        "export: 'layers.0.attention.query' has a scale for every 64 inputs, but a block of --type "
        "tq1_0 has one for 256; train with --set weight.group=\"row\", or take --type q2_0, f16 or "
        "f32");
  CHECK(refusal(random_language({.sizes = sizes, .group = 64}), GgufType::kQ2).empty());
  CHECK(refusal(random_language({.sizes = sizes, .group = 32}), GgufType::kQ2)
            .ends_with("or take --type f16 or f32"));
  sizes.width = 320;
  CHECK(refusal(random_language({.sizes = sizes}), GgufType::kTq2) ==
        "export: --type tq2_0 cuts rows into blocks of 256, but the width is 320; train with width "
        "256 or 512, or take --type q2_0, f16 or f32");
  sizes.ff = 200;
  CHECK(refusal(random_language({.sizes = sizes}), GgufType::kTq2) ==
        "export: --type tq2_0 cuts rows into blocks of 256, but the width is 320; train with width "
        "256 or 512 and ff=256, or take --type f16 or f32");
  CHECK(refusal(random_language({.sizes = sizes}), GgufType::kQ2) ==
        "export: --type q2_0 cuts rows into blocks of 64, but ff is 200; train with ff=192 or 256, "
        "or take --type f16 or f32");
}

TEST_CASE("gguf: tokenizers that do not fit, or cannot spell every byte, are refused") {
  LlamaSpec sizes = small_sizes();
  sizes.vocabulary = 300;
  CHECK(refusal(random_language({.sizes = sizes}), GgufType::kF32) ==
        "export: the model has a vocabulary of 300 and no pieces, but bytes are 256; name its "
        "tokenizer");
  LanguageNetwork network = random_language({.sizes = sizes, .pieces = true});
  CHECK(refusal(network, GgufType::kF32).empty());
  network.tokens.kinds[3 + 'a'] = PieceType::kNormal;
  CHECK(
      refusal(network, GgufType::kF32) ==
      "export: the tokenizer has pieces for 255 of 256 bytes, and llama.cpp ends where a text has "
      "a character without piece; train it with --byte_fallback=true");
  network.sizes.vocabulary = 301;
  CHECK(refusal(network, GgufType::kF32) ==
        "export: the tokenizer has 300 pieces, but the model a vocabulary of 301; name the "
        "tokenizer that it was trained with");
}

TEST_CASE("gguf: scales that fp16 rounds are told") {
  LanguageNetwork network = random_language({.sizes = small_sizes()});
  network.layers[1].up.scales[7] = 1.0f + 0x1p-12f;  // becomes 1
  CHECK(largest_scale_change(network) == doctest::Approx(0x1p-12).epsilon(1e-3));
}

}  // namespace tritgrad::test::test_gguf
