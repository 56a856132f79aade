#include "models/export/c_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "engine/check.h"
#include "engine/text.h"
#include "models/export/c_functions.h"

namespace tritgrad {
namespace {

constexpr std::size_t kTableWidth = 100;
constexpr std::int64_t kBytesOfFloat = sizeof(float);

struct DigitsOfByte {
  std::int64_t count;
  int base;
};

DigitsOfByte digits_of_byte(TritPacking packing) {
  return packing == TritPacking::kBase3 ? DigitsOfByte{5, 3} : DigitsOfByte{4, 4};
}

std::int64_t bytes_of_row(const InferenceProduct& product, TritPacking packing) {
  const std::int64_t count = digits_of_byte(packing).count;
  return (product.inputs + count - 1) / count;
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string upper_case(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

// Nothing in it can end a comment, nest one, or be a trigraph.
std::string comment_text(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '*' && c != '?' && c != '\\';
    safe += plain ? c : '_';
  }
  return safe;
}

// A C string: what is not plain ASCII is in octal, and no trigraph can come about.
std::string c_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '?') {
      quoted += '\\';
      quoted += c;
    } else if (c >= ' ' && c <= '~') {
      quoted += c;
    } else {
      std::array<char, 8> octal{};
      std::snprintf(octal.data(), octal.size(), "\\%03o", static_cast<unsigned char>(c));
      quoted += octal.data();
    }
  }
  return quoted + '"';
}

// The shortest text that a compiler reads as this number.
template <typename Number>
std::string number_literal(Number x, const char* suffix) {
  std::array<char, 64> digits;
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr;
  std::string text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + suffix;
}
std::string literal(float x) { return number_literal(x, "f"); }
std::string literal(double x) { return number_literal(x, ""); }
std::string literal(std::uint8_t x) { return std::to_string(x); }

std::vector<std::uint8_t> pack_rows(const InferenceProduct& product, TritPacking packing) {
  const auto [count, base] = digits_of_byte(packing);
  std::vector<std::uint8_t> packed;
  for (std::int64_t o = 0; o < product.outputs; ++o) {
    const std::int8_t* row = product.trits.data() + o * product.inputs;
    for (std::int64_t first = 0; first < product.inputs; first += count) {
      int byte = 0;
      for (std::int64_t i = first + count - 1; i >= first; --i) {
        byte = base * byte + (i < product.inputs ? row[i] + 1 : 1);
      }
      packed.push_back(static_cast<std::uint8_t>(byte));
    }
  }
  return packed;
}

// The most numbers that a layer rounds, and that a window of a convolution has.
struct CodesOfNetwork {
  std::int64_t most = 0, window = 0, float_window = 0;

  explicit CodesOfNetwork(const InferenceNetwork& network) {
    for (const InferenceLayer& layer : network.layers) {
      if (layer.product.in_integers) most = std::max(most, layer.inputs());
      if (layer.kind != InferenceLayer::Kind::kConvolution) continue;
      std::int64_t& longest = layer.product.in_integers ? window : float_window;
      longest = std::max(longest, layer.product.inputs);
    }
  }
};

class Writer {
 public:
  Writer(const InferenceNetwork& network, const std::string& name, TritPacking packing)
      : network_(network), name_(name), capitals_(upper_case(name)), packing_(packing) {}

  std::string write(const std::vector<std::string>& provenance) {
    head(provenance);
    for (const InferenceLayer& layer : network_.layers) {
      if (layer.has_product()) tables(layer);
    }
    input_tables();
    functions();
    standardize();
    logits();
    say(R"(
/* Returns the number of the class, the one with the largest logit. */
static inline int $_predict(const % features[@_INPUTS], $_workspace *w) {
  int best = 0, i;
  $_logits(features, w->x, w); /* which reads w->x no more when it writes the logits */
  for (i = 1; i < @_CLASSES; i++) {
    if (w->x[i] > w->x[best]) best = i;
  }
  return best;
}
)");
    class_names();
    say("\n#endif\n");
    return std::move(text_);
  }

 private:
  bool any_layer(bool (*has)(const InferenceLayer&)) const {
    return std::any_of(network_.layers.begin(), network_.layers.end(), has);
  }
  template <Norm kNorm>
  bool has_norm() const {
    return any_layer([](const InferenceLayer& layer) { return layer.norm == kNorm; });
  }
  template <Activation kActivation>
  bool has_activation() const {
    return any_layer([](const InferenceLayer& layer) { return layer.activation == kActivation; });
  }
  template <InferenceLayer::Kind kKind>
  bool has_kind() const {
    return any_layer([](const InferenceLayer& layer) { return layer.kind == kKind; });
  }
  bool rounds() const {
    return any_layer([](const InferenceLayer& layer) { return layer.product.in_integers; });
  }

  // Appends a text with the names filled in, and with the type of features in the place of `%`.
  void say(std::string_view text) {
    for (const char c : text) {
      if (c == '$') {
        text_ += name_;
      } else if (c == '@') {
        text_ += capitals_;
      } else if (c == '%') {
        text_ += network_.offsets.empty() ? "float" : "double";
      } else {
        text_ += c;
      }
    }
  }
  // Appends a function, whose % is a remainder; # is its name and ~ its type where there are two.
  void say_function(std::string_view text, const char* function = "", const char* type = "") {
    for (const char c : text) {
      if (c == '$') {
        text_ += name_;
      } else if (c == '#') {
        text_ += function;
      } else if (c == '~') {
        text_ += type;
      } else if (c == '|') {
        text_ += std::to_string(digits_of_byte(packing_).count);
      } else if (c == '`') {
        text_ += std::to_string(digits_of_byte(packing_).base);
      } else {
        text_ += c;
      }
    }
  }

  template <typename Number>
  void table(const char* type, const std::string& table_name, const std::vector<Number>& numbers) {
    text_ += concat("static const ", type, " ", table_name, "[", numbers.size(), "] = {\n");
    std::string line = " ";
    for (const Number x : numbers) {
      const std::string word = " " + literal(x) + ",";
      if (line.size() + word.size() > kTableWidth) {
        text_ += line + "\n";
        line = " ";
      }
      line += word;
    }
    text_ += line + "\n};\n";
  }

  // "digits_layers_0_scales".
  std::string table_name(const InferenceLayer& layer, const char* what) const {
    return concat(name_, "_", c_identifier(layer.product.name), "_", what);
  }

  void head(const std::vector<std::string>& provenance) {
    say("/* ");
    for (const std::string& line : provenance) text_ += comment_text(line) + "\n   ";
    say(R"(A network in plain C99. Include this file in one source file, and:
     static $_workspace workspace;
     int number = $_predict(features, &workspace);
   features: @_INPUTS numbers as the data have them; they are standardised here. Nothing is
   written but the workspace. The numbers are those of the program that wrote this file where
   floats are IEEE 754 and the compiler does not fuse products and sums (-ffp-contract=off). */
#ifndef @_H
#define @_H

#include <stdint.h>
)");
    if (has_norm<Norm::kLayer>() || has_norm<Norm::kRms>() || network_.square_roots) {
      say("#include <math.h>\n");
    }
    text_ += concat("\nenum { ", capitals_, "_INPUTS = ", network_.inputs, ", ", capitals_,
                    "_CLASSES = ", network_.classes(), " };\n");
    text_ += concat("\ntypedef struct {\n  float x[", network_.widest(), "], y[", network_.widest(),
                    "];\n");
    const CodesOfNetwork codes(network_);
    if (codes.float_window > 0)
      text_ += concat("  float float_window[", codes.float_window, "];\n");
    if (codes.most > 0) text_ += concat("  int8_t codes[", codes.most, "];\n");
    if (codes.window > 0) text_ += concat("  int8_t window[", codes.window, "];\n");
    say("} $_workspace;\n#define @_WORKSPACE_BYTES sizeof($_workspace)\n");
  }

  void tables(const InferenceLayer& layer) {
    const InferenceProduct& w = layer.product;
    text_ += concat("\n/* ", w.name, ": ", w.inputs, " inputs, ", w.outputs, " outputs",
                    w.trits.empty()                   ? ""
                    : packing_ == TritPacking::kBase3 ? "; five trits a byte"
                                                      : "; four trits a byte",
                    " */\n");
    if (w.trits.empty()) {
      table("float", table_name(layer, "weights"), w.weights);
    } else {
      table("uint8_t", table_name(layer, "trits"), pack_rows(w, packing_));
      table("float", table_name(layer, "scales"), w.scales);
    }
    const std::pair<const char*, const std::vector<float>&> vectors[] = {
        {"mean", layer.mean},
        {"inverse_std", layer.inverse_std},
        {"gain", layer.gain},
        {"bias", layer.bias}};
    for (const auto& [what, numbers] : vectors) {
      if (!numbers.empty()) table("float", table_name(layer, what), numbers);
    }
  }

  void input_tables() {
    say("\n/* inputs: mean and 1 / standard deviation of the training rows */\n");
    if (!network_.offsets.empty()) table("double", name_ + "_offset", network_.offsets);
    table("float", name_ + "_mean", network_.means);
    table("float", name_ + "_inverse_std", network_.inverse_stds);
  }

  void functions() {
    const auto in_floats = [](const InferenceLayer& layer) {
      return layer.has_product() && layer.product.trits.empty();
    };
    const auto in_trits_and_floats = [](const InferenceLayer& layer) {
      return !layer.product.trits.empty() && !layer.product.in_integers;
    };
    const bool row_norms = has_norm<Norm::kLayer>() || has_norm<Norm::kRms>();
    const std::pair<bool, const char*> all[] = {
        {rounds(), c_functions::kQuantize},
        {rounds(), c_functions::kTernary},
        {any_layer(in_trits_and_floats), c_functions::kTernaryFloat},
        {any_layer(in_floats), c_functions::kDense},
        {has_norm<Norm::kBatch>(), c_functions::kBatchNorm},
        {row_norms, c_functions::kSumLanes},
        {has_norm<Norm::kLayer>(), c_functions::kLayerNorm},
        {has_norm<Norm::kRms>(), c_functions::kRmsNorm},
        {true, c_functions::kAddBias},
        {has_activation<Activation::kRelu>(), c_functions::kRelu},
        {has_activation<Activation::kSquaredRelu>(), c_functions::kSquaredRelu},
        {has_activation<Activation::kTanh>(), c_functions::kTanh}};
    for (const auto& [used, text] : all) {
      if (used) say_function(text);
    }
    const CodesOfNetwork codes(network_);
    if (codes.window > 0) say_function(c_functions::kWindow, "window", "int8_t");
    if (codes.float_window > 0) say_function(c_functions::kWindow, "float_window", "float");
    if (has_kind<InferenceLayer::Kind::kMaxPool>()) say_function(c_functions::kMaxPool);
    if (has_kind<InferenceLayer::Kind::kAveragePool>()) say_function(c_functions::kAveragePool);
  }

  void standardize() {
    const char* at = network_.means.size() == 1 ? "0" : "i";
    say(R"(
static inline void $_standardize(float *x, const % features[@_INPUTS]) {
  const double most = 3.4028234663852886e38; /* the largest float */
  int i;
  for (i = 0; i < @_INPUTS; i++) {
)");
    const char* value = !network_.offsets.empty() ? "(float)(features[i] - $_offset[i])"
                        : network_.square_roots   ? "sqrtf(features[i])"
                                                  : "features[i]";
    say(concat("    double z = ((double)", value, " - (double)$_mean[", at,
               "]) * (double)$_inverse_std[", at, "];\n"));
    say("    x[i] = (float)(z > most ? most : z < -most ? -most : z);\n  }\n}\n");
  }

  void logits() {
    say(R"(
/* Writes the logits, one number for each class. */
static inline void $_logits(const % features[@_INPUTS], float logits[@_CLASSES],
                            $_workspace *w) {
)");
    if (rounds()) say("  float scale;\n");
    if (has_kind<InferenceLayer::Kind::kConvolution>()) say("  int i;\n");
    say("  $_standardize(w->x, features);\n");
    for (const InferenceLayer& each : network_.layers) layer(each);
    say("}\n");
  }

  void pool(const InferenceLayer& layer) {
    const ImageShape& image = layer.image;
    if (layer.kind == InferenceLayer::Kind::kMaxPool) {
      say(concat("\n  $_max_pool(w->x, ", image.height, ", ", image.width, ", ", image.channels,
                 ");\n"));
    } else {
      say(concat("\n  $_average_pool(w->x, ", image.pixels(), ", ", image.channels, ");\n"));
    }
  }

  // y = W x of a row `x`, with `y` and `x` as C names them.
  void product(const InferenceLayer& layer, const std::string& y, const std::string& x) {
    const InferenceProduct& w = layer.product;
    const auto of = [&](const char* what) { return table_name(layer, what); };
    say(concat(w.trits.empty() ? "$_dense("
               : w.in_integers ? "$_ternary("
                               : "$_ternary_float(",
               y, ", ", x, w.in_integers ? ", scale, " : ", "));
    say(w.trits.empty() ? of("weights") : concat(of("trits"), ", ", of("scales")));
    say(concat(", ", w.inputs, ", ", w.outputs));
    say(w.trits.empty() ? ");\n" : concat(", ", w.group, ");\n"));
  }

  void norm(const InferenceLayer& layer, const std::string& to, const std::string& from) {
    const auto of = [&](const char* what) { return table_name(layer, what); };
    say(concat("$_", norm_call(layer.norm), "(", to, ", ", from, ", "));
    if (!layer.mean.empty()) say(concat(of("mean"), ", ", of("inverse_std"), ",\n      "));
    if (!layer.gain.empty()) say(of("gain") + ", ");
    if (!layer.bias.empty()) say(of("bias") + ", ");
    say(concat(layer.product.outputs, ");\n"));
  }

  void layer(const InferenceLayer& layer) {
    if (!layer.has_product()) return pool(layer);
    const InferenceProduct& w = layer.product;
    const bool is_last = &layer == &network_.layers.back();
    say(concat("\n  /* ", w.name, " */\n"));
    if (w.in_integers) say(concat("  scale = $_quantize(w->codes, w->x, ", layer.inputs(), ");\n"));
    if (layer.kind == InferenceLayer::Kind::kConvolution) {
      const ImageShape& image = layer.image;
      const std::string window = w.in_integers ? "window" : "float_window";
      const std::string loop = concat("  for (i = 0; i < ", image.pixels(), "; i++) {\n    ");
      const std::string place = concat(" + i * ", w.outputs);
      say(loop + concat("$_", window, "(w->", window, w.in_integers ? ", w->codes" : ", w->x",
                        ", i, ", image.height, ", ", image.width, ", ", image.channels,
                        ");\n    "));
      product(layer, "w->y" + place, "w->" + window);
      say("  }\n" + loop);
      norm(layer, "w->x" + place, "w->y" + place);
      say("  }\n");
    } else {
      say("  ");
      product(layer, "w->y", w.in_integers ? "w->codes" : "w->x");
      say("  ");
      norm(layer, is_last ? "logits" : "w->x", "w->y");
    }
    if (layer.activation) {
      say(concat("  $_", activation_call(*layer.activation), "(w->x, ", layer.outputs(), ");\n"));
    }
  }

  static const char* norm_call(Norm norm) {
    switch (norm) {
      case Norm::kBatch:
        return "batch_norm";
      case Norm::kLayer:
        return "layer_norm";
      case Norm::kRms:
        return "rms_norm";
      case Norm::kNone:
        break;
    }
    return "add_bias";
  }
  static const char* activation_call(Activation activation) {
    switch (activation) {
      case Activation::kSquaredRelu:
        return "squared_relu";
      case Activation::kTanh:
        return "tanh";
      case Activation::kRelu:
        break;
    }
    return "relu";
  }

  void class_names() {
    say(R"(
static inline const char *$_class_name(int number) {
  static const char *const names[@_CLASSES] = {
)");
    for (const std::string& name : network_.class_names) {
      text_ += "      " + c_string(name) + ",\n";
    }
    say("  };\n  return names[number];\n}\n");
  }

  const InferenceNetwork& network_;
  std::string name_, capitals_;
  TritPacking packing_;
  std::string text_;
};

}  // namespace

std::string c_identifier(const std::string& text) {
  check(std::any_of(text.begin(), text.end(), is_letter_or_digit), "export: '", printable(text),
        "' has no letter or digit from which a name in C could be made; give the file another "
        "name, such as digits.h");
  std::string name = text;
  for (char& c : name) {
    if (!is_letter_or_digit(c)) c = '_';
  }
  const bool starts_well = name[0] != '_' && !(name[0] >= '0' && name[0] <= '9');
  return starts_well ? name : "model_" + name;
}

void check_c_header(const InferenceNetwork& network, const ExportHead& head) {
  c_identifier(head.name);
  if (!network.table) return;
  for (const TableFeature& column : network.table->columns) {
    check(column.words.empty(), "export: column '", printable(column.name),
          "' holds words, which .h cannot express yet; train with --drop of it, or on numbers "
          "alone");
    check(!column.has_indicator && !column.fill_number, "export: column '", printable(column.name),
          "' has missing cells that are filled, which .h cannot express yet; train with "
          "--missing drop");
  }
}

ExportBytes c_header_bytes(const InferenceNetwork& network, const ExportSettings& settings) {
  const auto floats = [](const auto& numbers) { return std::ssize(numbers) * kBytesOfFloat; };
  ExportBytes bytes;
  for (const InferenceLayer& layer : network.layers) {
    const InferenceProduct& w = layer.product;
    bytes.weights +=
        w.trits.empty() ? floats(w.weights) : bytes_of_row(w, settings.trits) * w.outputs;
    bytes.scales += floats(w.scales);
    bytes.others +=
        floats(layer.mean) + floats(layer.inverse_std) + floats(layer.gain) + floats(layer.bias);
  }
  bytes.others += floats(network.means) + floats(network.inverse_stds) +
                  std::ssize(network.offsets) * static_cast<std::int64_t>(sizeof(double));
  const CodesOfNetwork codes(network);
  const std::int64_t int8s = codes.most + codes.window;
  bytes.workspace = kBytesOfFloat * (2 * network.widest() + codes.float_window) +
                    (int8s + kBytesOfFloat - 1) / kBytesOfFloat * kBytesOfFloat;
  return bytes;
}

std::string c_header(const InferenceNetwork& network, const ExportHead& head,
                     const ExportSettings& settings) {
  return Writer(network, c_identifier(head.name), settings.trits).write(head.provenance);
}

}  // namespace tritgrad
