#include "models/export/c_header.h"

#include <algorithm>
#include <string_view>

#include "engine/text.h"
#include "models/export/c_encoder.h"
#include "models/export/c_functions.h"
#include "models/export/c_text.h"
#include "models/export/network_arrays.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kBytesOfFloat = sizeof(float);

// Between what tests/scripts/cortex_m4.sh says of flash without tables, 3.5 k with gcc 12 -Os and
// 3.0 k with gcc 14: the header's functions, its caller and sums in double; and the square root in
// double of layer norm and RMS norm.
constexpr std::int64_t kCodeBytes = 3250;
constexpr std::int64_t kCodeBytesOfRowNorm = 2600;

// The digits of a byte, and in C what is left of it without its lowest digit.
struct CDigits : TritDigits {
  const char* rest;
  const char* comment;
};

CDigits digits_of_byte(TritPacking packing) {
  switch (packing) {
    case TritPacking::kBase3:
      return {{kBase3Digits}, "byte * 171 >> 9", "five trits a byte"};
    case TritPacking::kTwoBits:
      return {{4, 4}, "byte >> 2", "four trits a byte"};
    case TritPacking::kInt8:
      break;
  }
  return {{1, 256}, "", "a trit a byte"};
}

// A workspace has room for the most numbers that a product makes, that a layer rounds, that a
// window of a convolution has, and that a residual block keeps.
struct WorkspaceSizes {
  std::int64_t made = 0, rounded = 0, window = 0, float_window = 0, kept = 0;

  explicit WorkspaceSizes(const InferenceNetwork& network) {
    for (const InferenceLayer& layer : network.layers) {
      if (layer.has_product()) made = std::max(made, layer.outputs());
      if (layer.product.in_integers) rounded = std::max(rounded, layer.inputs());
      if (layer.begins_block) kept = std::max(kept, layer.inputs());
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
    workspace();
    for (const InferenceLayer& layer : network_.layers) {
      if (layer.has_product()) tables(layer);
    }
    input_tables();
    functions();
    standardize();
    outputs();
    if (network_.is_regression()) {
      predict_value();
    } else {
      predict_class();
      class_names();
    }
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

  bool encodes() const { return network_.table && has_encoder(*network_.table); }

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
    const CDigits digits = digits_of_byte(packing_);
    const char other = packing_ == TritPacking::kInt8 ? '<' : '>';
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at) + 1;
      std::string_view line = text.substr(at, end - at);
      at = end;
      if (line[0] == other) continue;
      if (line[0] == '<' || line[0] == '>') line.remove_prefix(1);
      for (const char c : line) say_of_function(c, digits, function, type);
    }
  }
  void say_of_function(char c, const CDigits& digits, const char* function, const char* type) {
    if (c == '$') {
      text_ += name_;
    } else if (c == '@') {
      text_ += capitals_;
    } else if (c == '#') {
      text_ += function;
    } else if (c == '~') {
      text_ += type;
    } else if (c == '|') {
      text_ += std::to_string(digits.count);
    } else if (c == '\'') {
      text_ += std::to_string(digits.base);
    } else if (c == '`') {
      text_ += digits.rest;
    } else {
      text_ += c;
    }
  }

  template <typename Number>
  void table(const char* type, const std::string& table_name, const std::vector<Number>& numbers) {
    text_ += c_table(concat(capitals_, "_FLASH ", type), table_name, numbers);
  }

  // Returns such a name as "digits_layers_0_scales".
  std::string table_name(const InferenceLayer& layer, const char* what) const {
    return concat(name_, "_", c_identifier(layer.product.name), "_", what);
  }

  void head(const std::vector<std::string>& provenance) {
    say("/* ");
    for (const std::string& line : provenance) text_ += c_comment_text(line) + "\n   ";
    say(R"(A network in plain C99. Include this file in one source file, and:
     static $_workspace workspace;
)");
    say(network_.is_regression() ? "     double value = $_predict(features, &workspace);\n"
                                 : "     int number = $_predict(features, &workspace);\n");
    say(encodes()
            ? "   features: what $_encode() makes of the cells of a row; they are standardised "
              "here. "
            : "   features: @_INPUTS numbers as the data have them; they are standardised here. ");
    say(R"(Nothing is
   written but the workspace. The numbers are those of the program that wrote this file where
   floats are IEEE 754 and the compiler does not fuse products and sums (-ffp-contract=off). */
#ifndef @_H
#define @_H

#include <stdint.h>
)");
    if (has_norm<Norm::kLayer>() || has_norm<Norm::kRms>() || network_.square_roots || encodes()) {
      say("#include <math.h>\n");
    }
    say(R"(
#ifdef __FLASH /* of avr-gcc with -std=gnu99: tables are read where they are */
#define @_FLASH __flash
#else
#define @_FLASH
#endif
)");
    text_ += concat("\nenum { ", capitals_, "_INPUTS = ", network_.inputs);
    if (!network_.is_regression()) {
      text_ += concat(", ", capitals_, "_CLASSES = ", network_.classes());
    }
    text_ += " };\n";
    if (network_.table && has_column_names(*network_.table)) {
      text_ += c_feature_names(*network_.table, capitals_);
    }
  }

  void workspace() {
    const WorkspaceSizes sizes(network_);
    text_ +=
        concat("\ntypedef struct {\n  float x[", network_.widest(), "], y[", sizes.made, "];\n");
    if (sizes.float_window > 0)
      text_ += concat("  float float_window[", sizes.float_window, "];\n");
    if (sizes.kept > 0) text_ += concat("  float kept[", sizes.kept, "];\n");
    if (sizes.rounded > 0) text_ += concat("  int8_t codes[", sizes.rounded, "];\n");
    if (sizes.window > 0) text_ += concat("  int8_t window[", sizes.window, "];\n");
    say("} $_workspace;\n#define @_WORKSPACE_BYTES sizeof($_workspace)\n");
  }

  void tables(const InferenceLayer& layer) {
    const InferenceProduct& w = layer.product;
    text_ += concat("\n/* ", w.name, ": ", w.inputs, " inputs, ", w.outputs, " outputs",
                    w.trits.empty() ? "" : concat("; ", digits_of_byte(packing_).comment), " */\n");
    if (w.trits.empty()) {
      table("float", table_name(layer, "weights"), w.weights);
    } else {
      if (packing_ == TritPacking::kInt8) {
        table("int8_t", table_name(layer, "trits"), w.trits);
      } else {
        table("uint8_t", table_name(layer, "trits"),
              pack_trits(w.trits, w.inputs, digits_of_byte(packing_), 1));
      }
      table("float", table_name(layer, "scales"), w.scales);
    }
    for (const auto& [what, numbers] : norm_vectors(layer)) {
      if (!numbers.empty()) table("float", table_name(layer, what), numbers);
    }
  }

  void input_tables() {
    say("\n/* inputs: mean and 1 / standard deviation of the training rows */\n");
    if (!network_.offsets.empty()) table("double", name_ + "_offset", network_.offsets);
    table("float", name_ + "_mean", network_.means);
    table("float", name_ + "_inverse_std", network_.inverse_stds);
    if (encodes()) {
      text_ += c_encoder_tables(*network_.table, name_, !network_.offsets.empty());
    }
  }

  void functions() {
    const auto in_floats = [](const InferenceLayer& layer) {
      return layer.has_product() && layer.product.trits.empty();
    };
    const auto in_trits_and_floats = [](const InferenceLayer& layer) {
      return !layer.product.trits.empty() && !layer.product.in_integers;
    };
    const bool row_norms = has_norm<Norm::kLayer>() || has_norm<Norm::kRms>();
    const char* trits = packing_ == TritPacking::kInt8 ? "int8_t" : "uint8_t";
    if (rounds()) say_function(c_functions::kQuantize);
    if (rounds()) say_function(c_functions::kTernary, "", trits);
    if (any_layer(in_trits_and_floats)) say_function(c_functions::kTernaryFloat, "", trits);
    const std::pair<bool, const char*> all[] = {
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
    const WorkspaceSizes sizes(network_);
    if (sizes.kept > 0) say_function(c_functions::kBlock);
    if (sizes.window > 0) say_function(c_functions::kWindow, "window", "int8_t");
    if (sizes.float_window > 0) say_function(c_functions::kWindow, "float_window", "float");
    if (has_kind<InferenceLayer::Kind::kMaxPool>()) say_function(c_functions::kMaxPool);
    if (has_kind<InferenceLayer::Kind::kAveragePool>()) say_function(c_functions::kAveragePool);
  }

  void standardize() {
    const char* at = network_.means.size() == 1 ? "0" : "i";
    say(R"(
static inline void $_standardize(float *x, const % features[@_INPUTS]) {
  const float most = 3.4028234663852886e38f; /* the largest float */
  int i;
  for (i = 0; i < @_INPUTS; i++) {
)");
    const char* value = !network_.offsets.empty() ? "(float)(features[i] - $_offset[i])"
                        : network_.square_roots   ? "sqrtf(features[i])"
                                                  : "features[i]";
    say(concat("    double z = ((double)", value, " - (double)$_mean[", at,
               "]) * (double)$_inverse_std[", at, "];\n    float y = (float)z;\n"));
    if (network_.table) say("    if (y != y) y = 0.0f; /* a missing number becomes the mean */\n");
    say("    x[i] = y > most ? most : y < -most ? -most : y;\n  }\n}\n");
    if (encodes()) say(kCEncoder);
  }

  void outputs() {
    if (network_.is_regression()) {
      say(R"(
/* Writes the value before it is brought into the units of the label. */
static inline void $_output(const % features[@_INPUTS], float output[1], $_workspace *w) {
)");
    } else {
      say(R"(
/* Writes the logits, one number for each class. */
static inline void $_logits(const % features[@_INPUTS], float logits[@_CLASSES],
                            $_workspace *w) {
)");
    }
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

  // Writes y = W x of a row `x`, with `y` and `x` as C names them.
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
    if (layer.begins_block) say(concat("  $_keep(w->kept, w->x, ", layer.inputs(), ");\n"));
    if (w.in_integers) say(concat("  scale = $_quantize(w->codes, w->x, ", layer.inputs(), ");\n"));
    if (layer.kind == InferenceLayer::Kind::kConvolution) {
      const ImageShape& image = layer.image;
      const std::string window = w.in_integers ? "window" : "float_window";
      const ImageShape made = layer.convolved_image();
      const std::string loop = concat("  for (i = 0; i < ", made.pixels(), "; i++) {\n    ");
      // Line * width + column of pixel i, without a remainder: its % would become a type.
      const std::string center = layer.stride == 1
                                     ? "i"
                                     : concat("(i / ", made.width, " * ", image.width - made.width,
                                              " + i) * ", layer.stride);
      const std::string place = concat(" + i * ", w.outputs);
      say(loop + concat("$_", window, "(w->", window, w.in_integers ? ", w->codes" : ", w->x", ", ",
                        center, ", ", image.height, ", ", image.width, ", ", image.channels,
                        ");\n    "));
      product(layer, "w->y" + place, "w->" + window);
      say("  }\n" + loop);
      norm(layer, "w->x" + place, "w->y" + place);
      say("  }\n");
    } else {
      say("  ");
      product(layer, "w->y", w.in_integers ? "w->codes" : "w->x");
      say("  ");
      norm(layer, !is_last ? "w->x" : network_.is_regression() ? "output" : "logits", "w->y");
    }
    if (layer.ends_block) say(concat("  $_add(w->x, w->kept, ", layer.outputs(), ");\n"));
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

  void predict_value() {
    const TargetScale& scale = network_.target_scale;
    say(R"(
/* Returns the value, in the units of the label. */
static inline double $_predict(const % features[@_INPUTS], $_workspace *w) {
  $_output(features, w->x, w); /* which reads w->x no more when it writes the value */
)");
    say(concat("  return ", c_literal(scale.mean), " + ", c_literal(scale.deviation),
               " * (double)w->x[0];\n}\n"));
  }

  void predict_class() {
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

void check_c_header(const InferenceNetwork&, const ExportHead& head) { c_identifier(head.name); }

ExportBytes c_header_bytes(const InferenceNetwork& network, const ExportSettings& settings) {
  ExportBytes bytes = bytes_without_trits(network);
  const TritDigits digits = digits_of_byte(settings.trits);
  for (const InferenceLayer& layer : network.layers) {
    const InferenceProduct& w = layer.product;
    if (!w.trits.empty()) bytes.weights += w.outputs * digits.bytes_of(w.inputs);
  }
  if (network.table && has_encoder(*network.table)) {
    bytes.others += c_encoder_bytes(*network.table, !network.offsets.empty());
  }
  const WorkspaceSizes sizes(network);
  const std::int64_t int8s = sizes.rounded + sizes.window;
  bytes.workspace =
      kBytesOfFloat * (network.widest() + sizes.made + sizes.float_window + sizes.kept) +
      (int8s + kBytesOfFloat - 1) / kBytesOfFloat * kBytesOfFloat;
  const bool row_norm =
      std::any_of(network.layers.begin(), network.layers.end(), [](const InferenceLayer& layer) {
        return layer.norm == Norm::kLayer || layer.norm == Norm::kRms;
      });
  bytes.code = kCodeBytes + (row_norm ? kCodeBytesOfRowNorm : 0);
  return bytes;
}

std::string c_header(const InferenceNetwork& network, const ExportHead& head,
                     const ExportSettings& settings) {
  return Writer(network, c_identifier(head.name), settings.trits).write(head.provenance);
}

}  // namespace tritgrad
