#include "models/export/gguf.h"

#include <algorithm>
#include <cmath>

#include "engine/check.h"
#include "engine/formats/half_bits.h"
#include "models/export/gguf_file.h"
#include "models/export/network_arrays.h"
#include "ops/layer_norm.h"
#include "ops/rotary.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kBytes = 256;

// ---- what it cannot express ----

// "256 or 512": the multiples of a block around a size.
std::string widths_beside(std::int64_t size, std::int64_t block) {
  const std::int64_t below = size / block * block;
  return below == 0 ? concat(block) : concat(below, " or ", below + block);
}

void check_rows(const LlamaSpec& sizes, GgufType type) {
  const std::int64_t block = gguf_traits(type).block;
  const bool width = sizes.width % block == 0, ff = sizes.ff % block == 0;
  if (width && ff) return;
  const std::string_view name = kGgufTypes.name(type);
  const std::string is = width ? concat("ff is ", sizes.ff) : concat("the width is ", sizes.width);
  const std::string needed =
      width ? concat("ff=", widths_beside(sizes.ff, block))
            : concat("width ", widths_beside(sizes.width, block),
                     ff ? "" : concat(" and ff=", widths_beside(sizes.ff, block)));
  const std::int64_t finer = gguf_traits(GgufType::kQ2).block;
  const bool q2 = sizes.width % finer == 0 && sizes.ff % finer == 0 && block > finer;
  fail("export: --type ", name, " cuts rows into blocks of ", block, ", but ", is, "; train with ",
       needed, ", or take --type ", q2 ? concat(kGgufTypes.name(GgufType::kQ2), ", f16") : "f16",
       " or f32");
}

void check_product(const InferenceProduct& w, GgufType type) {
  const std::string_view name = kGgufTypes.name(type);
  check(!w.trits.empty(), "export: '", w.name, "' has floats, but --type ", name,
        " holds trits alone; take --type f16 or f32, or train with a ternary recipe");
  const std::int64_t block = gguf_traits(type).block;
  check(w.group >= w.inputs || w.group % block == 0, "export: '", w.name,
        "' has a scale for every ", w.group, " inputs, but a block of --type ", name,
        " has one for ", block, "; train with --set weight.group=\"row\", or take ",
        w.group % gguf_traits(GgufType::kQ2).block == 0 ? "--type q2_0, f16 or f32"
                                                        : "--type f16 or f32");
}

void check_tokens(const LanguageNetwork& network) {
  const std::int64_t vocabulary = network.sizes.vocabulary;
  if (network.reads_bytes()) {
    check(vocabulary == kBytes, "export: the model has a vocabulary of ", vocabulary,
          " and no pieces, but bytes are ", kBytes, "; name its tokenizer");
    return;
  }
  const TokenPieces& tokens = network.tokens;
  check(std::ssize(tokens.pieces) == vocabulary && tokens.scores.size() == tokens.pieces.size() &&
            tokens.kinds.size() == tokens.pieces.size(),
        "export: the tokenizer has ", tokens.pieces.size(),
        " pieces, but the model a vocabulary of ", vocabulary,
        "; name the tokenizer that it was trained with");
  const auto bytes = std::count(tokens.kinds.begin(), tokens.kinds.end(), PieceType::kByte);
  check(bytes == kBytes, "export: the tokenizer has pieces for ", bytes, " of ", kBytes,
        " bytes, and llama.cpp ends where a text has a character without piece; train it with "
        "--byte_fallback=true");
}

// ---- keys ----

std::string utf8_of(unsigned code_point) {  // below U+0800
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 63u))};
}

// Returns GPT-2's name of each byte: the character of that number where it is a visible one, and
// those from U+0100 on for the others, in their order.
std::vector<std::string> names_of_bytes() {
  std::vector<std::string> names;
  unsigned others = 0x100;
  for (unsigned byte = 0; byte < kBytes; ++byte) {
    const bool visible = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    names.push_back(utf8_of(visible ? byte : others++));
  }
  return names;
}

void add_byte_tokens(GgufWriter& file) {
  std::vector<std::int32_t> kinds(kBytes, static_cast<std::int32_t>(PieceType::kNormal));
  kinds[0] = static_cast<std::int32_t>(PieceType::kControl);
  file.add_text("tokenizer.ggml.model", "gpt2");
  file.add_text("tokenizer.ggml.pre", "gpt-2");
  file.add_texts("tokenizer.ggml.tokens", names_of_bytes());
  file.add_i32s("tokenizer.ggml.token_type", kinds);
  file.add_texts("tokenizer.ggml.merges", {});
  file.add_u32("tokenizer.ggml.bos_token_id", 0);
  file.add_u32("tokenizer.ggml.eos_token_id", 0);
  file.add_bool("tokenizer.ggml.add_bos_token", false);
  file.add_bool("tokenizer.ggml.add_eos_token", false);
}

void add_pieces(GgufWriter& file, const TokenPieces& tokens) {
  std::vector<std::int32_t> kinds;
  for (const PieceType kind : tokens.kinds) kinds.push_back(static_cast<std::int32_t>(kind));
  file.add_text("tokenizer.ggml.model", "llama");
  file.add_text("tokenizer.ggml.pre", "default");
  file.add_texts("tokenizer.ggml.tokens", tokens.pieces);
  file.add_f32s("tokenizer.ggml.scores", tokens.scores);
  file.add_i32s("tokenizer.ggml.token_type", kinds);
  const auto add_special = [&file](const char* key, std::int32_t token) {
    if (token >= 0) file.add_u32(key, token);
  };
  add_special("tokenizer.ggml.unknown_token_id", tokens.unknown);
  add_special("tokenizer.ggml.bos_token_id", tokens.begin);
  add_special("tokenizer.ggml.eos_token_id", tokens.end);
  file.add_bool("tokenizer.ggml.add_bos_token", false);
  file.add_bool("tokenizer.ggml.add_eos_token", false);
  file.add_bool("tokenizer.ggml.add_space_prefix", tokens.begins_with_blank);
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& each : sentences) text += concat(text.empty() ? "" : " ", each);
  return text;
}

void add_keys(GgufWriter& file, const LanguageNetwork& network, const ExportHead& head,
              GgufType type) {
  const LlamaSpec& sizes = network.sizes;
  file.add_text("general.architecture", "llama");
  file.add_text("general.name", head.name);
  file.add_text("general.description", joined(head.provenance));
  file.add_u32("general.file_type", gguf_traits(type).file_type);
  file.add_u32("general.quantization_version", 2);
  file.add_u32("llama.vocab_size", sizes.vocabulary);
  file.add_u32("llama.context_length", sizes.context);
  file.add_u32("llama.embedding_length", sizes.width);
  file.add_u32("llama.block_count", sizes.layers);
  file.add_u32("llama.feed_forward_length", sizes.ff);
  file.add_u32("llama.attention.head_count", sizes.heads);
  file.add_u32("llama.attention.head_count_kv", sizes.kv_heads);
  file.add_f32("llama.attention.layer_norm_rms_epsilon", kRmsNormEps);
  file.add_u32("llama.rope.dimension_count", sizes.head_size());
  file.add_f32("llama.rope.freq_base", static_cast<float>(kRotaryBase));
  network.reads_bytes() ? add_byte_tokens(file) : add_pieces(file, network.tokens);
}

// ---- tensors ----

GgufType type_of_tables(GgufType type) {
  return type == GgufType::kF16 ? GgufType::kF16 : GgufType::kF32;
}

std::string encode_floats(std::span<const float> numbers, const std::string& name, GgufType type) {
  return type == GgufType::kF16 ? encode_f16(numbers, name) : encode_f32(numbers);
}

class TensorWriter {
 public:
  TensorWriter(GgufWriter& file, GgufType type) : file_(file), type_(type) {}

  void table(const std::string& name, const std::vector<float>& rows, std::int64_t width) {
    const GgufType type = type_of_tables(type_);
    file_.add_tensor(name, std::ssize(rows) / width, width, type, encode_floats(rows, name, type));
  }
  void gain(const std::string& name, const std::vector<float>& gain) {
    file_.add_tensor(name, 0, std::ssize(gain), GgufType::kF32, encode_f32(gain));
  }
  void matrix(const std::string& name, const InferenceProduct& w) {
    file_.add_tensor(name, w.outputs, w.inputs, type_,
                     is_ternary(type_) ? encode_trits(w, type_)
                                       : encode_floats(decoded_weights(w), w.name, type_));
  }
  void layer(const std::string& prefix, const LanguageLayer& layer) {
    gain(prefix + "attn_norm.weight", layer.attention_gain);
    matrix(prefix + "attn_q.weight", layer.query);
    matrix(prefix + "attn_k.weight", layer.key);
    matrix(prefix + "attn_v.weight", layer.value);
    matrix(prefix + "attn_output.weight", layer.output);
    gain(prefix + "ffn_norm.weight", layer.mlp_gain);
    matrix(prefix + "ffn_gate.weight", layer.gate);
    matrix(prefix + "ffn_up.weight", layer.up);
    matrix(prefix + "ffn_down.weight", layer.down);
  }

 private:
  GgufWriter& file_;
  GgufType type_;
};

}  // namespace

void check_gguf(const LanguageNetwork& network, const ExportSettings& settings) {
  const GgufType type = settings.gguf_type;
  check_tokens(network);
  if (!is_ternary(type)) return;
  for (const InferenceProduct* product : network.products()) check_product(*product, type);
  check_rows(network.sizes, type);
}

ExportBytes gguf_bytes(const LanguageNetwork& network, const ExportSettings& settings) {
  const GgufType type = settings.gguf_type;
  const GgufTypeTraits& traits = gguf_traits(type);
  ExportBytes bytes;
  bytes.weights = traits.bytes_of(network.weights());
  if (is_ternary(type)) {
    bytes.scales =
        network.weights() / traits.block * static_cast<std::int64_t>(sizeof(std::uint16_t));
    bytes.weights -= bytes.scales;
  }
  const auto tables = std::ssize(network.embedding) + std::ssize(network.head);
  bytes.others = gguf_traits(type_of_tables(type)).bytes_of(tables);
  const std::int64_t gains = (2 * network.sizes.layers + 1) * network.sizes.width;
  bytes.others += gguf_traits(GgufType::kF32).bytes_of(gains);
  return bytes;
}

std::string gguf_model(const LanguageNetwork& network, const ExportHead& head,
                       const ExportSettings& settings) {
  check_gguf(network, settings);
  const GgufType type = settings.gguf_type;
  GgufWriter file;
  add_keys(file, network, head, type);
  TensorWriter tensors(file, type);
  const std::int64_t width = network.sizes.width;
  tensors.table("token_embd.weight", network.embedding, width);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    tensors.layer(concat("blk.", i, "."), network.layers[i]);
  }
  tensors.gain("output_norm.weight", network.head_gain);
  if (!network.head.empty()) tensors.table("output.weight", network.head, width);
  return file.bytes();
}

double largest_scale_change(const LanguageNetwork& network) {
  double largest = 0.0;
  for (const InferenceProduct* product : network.products()) {
    for (const float scale : product->scales) {
      if (scale == 0.0f) continue;
      const float stored = float_of_half(half_bits(scale));
      largest = std::max(largest,
                         std::abs(static_cast<double>(stored) / static_cast<double>(scale) - 1.0));
    }
  }
  return largest;
}

}  // namespace tritgrad
