#include "models/export/c_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "engine/check.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

constexpr std::size_t kLineWidth = 100;
constexpr std::int64_t kTritsPerByte = 5;
constexpr std::int64_t kFloatBytes = sizeof(float);

std::int64_t bytes_of_row(const InferenceProduct& product) {
  return (product.inputs + kTritsPerByte - 1) / kTritsPerByte;
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

std::vector<std::uint8_t> pack_rows(const InferenceProduct& product) {
  std::vector<std::uint8_t> packed;
  for (std::int64_t o = 0; o < product.outputs; ++o) {
    const std::int8_t* row = product.trits.data() + o * product.inputs;
    for (std::int64_t first = 0; first < product.inputs; first += kTritsPerByte) {
      int byte = 0;
      for (std::int64_t i = first + kTritsPerByte - 1; i >= first; --i) {
        byte = 3 * byte + (i < product.inputs ? row[i] + 1 : 1);
      }
      packed.push_back(static_cast<std::uint8_t>(byte));
    }
  }
  return packed;
}

// ---- the functions of a layer ----
// In all texts `$` stands for the name and `@` for the same in capitals.

constexpr const char* kQuantize = R"(
/* Rounds x to codes of -127 .. 127; x is about the scale returned times its codes. */
static inline float $_quantize(int8_t *codes, const float *x, int n) {
  const float whole = 12582912.0f; /* 1.5 * 2^23: a sum with it has no bits below one */
  float largest = 0.0f, inverse;
  int i;
  for (i = 0; i < n; i++) {
    float magnitude = x[i] < 0.0f ? -x[i] : x[i];
    if (magnitude > largest) largest = magnitude;
  }
  if (largest < 7.888609052210118e-31f) largest = 0.0f; /* 2^-100 */
  inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
  for (i = 0; i < n; i++) {
    float level = x[i] * inverse;
    if (level > 127.0f) level = 127.0f;
    if (level < -127.0f) level = -127.0f;
    codes[i] = (int8_t)((level + whole) - whole);
  }
  return largest / 127.0f;
}
)";

constexpr const char* kTernary = R"(
/* y = W x: sums of whole numbers, times the scales of x and of each group of inputs. */
static inline void $_ternary(float *y, const int8_t *x, float x_scale, const uint8_t *trits,
                             const float *scales, int inputs, int outputs, int group) {
  unsigned byte = 0;
  int o, i, end;
  for (o = 0; o < outputs; o++) {
    float sum_of_groups = -0.0f;
    for (i = 0; i < inputs;) {
      int32_t sum = 0;
      for (end = inputs - i > group ? i + group : inputs; i < end; i++) {
        if (i % 5 == 0) byte = *trits++;
        sum += ((int)(byte % 3) - 1) * x[i];
        byte /= 3;
      }
      sum_of_groups += x_scale * *scales++ * (float)sum;
    }
    y[o] = sum_of_groups;
  }
}
)";

constexpr const char* kTernaryFloat = R"(
/* y = W x, of trits and an x in floats. */
static inline void $_ternary_float(float *y, const float *x, const uint8_t *trits,
                                   const float *scales, int inputs, int outputs, int group) {
  unsigned byte = 0;
  int o, i, end;
  for (o = 0; o < outputs; o++) {
    float sum_of_groups = -0.0f;
    for (i = 0; i < inputs;) {
      float sum = 0.0f;
      for (end = inputs - i > group ? i + group : inputs; i < end; i++) {
        if (i % 5 == 0) byte = *trits++;
        sum += (float)((int)(byte % 3) - 1) * x[i];
        byte /= 3;
      }
      sum_of_groups += *scales++ * sum;
    }
    y[o] = sum_of_groups;
  }
}
)";

constexpr const char* kDense = R"(
/* y = W x, all of it in floats. */
static inline void $_dense(float *y, const float *x, const float *weights, int inputs,
                           int outputs) {
  int o, i;
  for (o = 0; o < outputs; o++) {
    float sum = 0.0f;
    for (i = 0; i < inputs; i++) sum += *weights++ * x[i];
    y[o] = sum;
  }
}
)";

constexpr const char* kBatchNorm = R"(
/* Batch norm by the statistics of training. */
static inline void $_batch_norm(float *y, const float *x, const float *mean,
                                const float *inverse_std, const float *gain, const float *bias,
                                int n) {
  int i;
  for (i = 0; i < n; i++) y[i] = (x[i] - mean[i]) * inverse_std[i] * gain[i] + bias[i];
}
)";

constexpr const char* kSumLanes = R"(
/* Adds 32 sums up, the upper half of them to the lower one until one is left. */
static inline double $_sum_lanes(double *lanes) {
  int half, i;
  for (half = 16; half > 0; half /= 2) {
    for (i = 0; i < half; i++) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
)";

constexpr const char* kLayerNorm = R"(
/* Layer norm: zero mean and unit variance, then gain and bias. */
static inline void $_layer_norm(float *y, const float *x, const float *gain, const float *bias,
                                int n) {
  double sums[32] = {0}, squares[32] = {0}, mean;
  float center, inverse_std;
  int i;
  for (i = 0; i < n; i++) sums[i % 32] += (double)x[i];
  mean = $_sum_lanes(sums) / n;
  for (i = 0; i < n; i++) squares[i % 32] += ((double)x[i] - mean) * ((double)x[i] - mean);
  center = (float)mean;
  inverse_std = (float)(1.0 / sqrt($_sum_lanes(squares) / n + (double)1e-5f));
  for (i = 0; i < n; i++) y[i] = (x[i] - center) * inverse_std * gain[i] + bias[i];
}
)";

constexpr const char* kRmsNorm = R"(
/* RMS norm: a mean square of one, then gain. */
static inline void $_rms_norm(float *y, const float *x, const float *gain, int n) {
  double squares[32] = {0};
  float inverse;
  int i;
  for (i = 0; i < n; i++) squares[i % 32] += (double)x[i] * (double)x[i];
  inverse = (float)(1.0 / sqrt($_sum_lanes(squares) / n + (double)1e-6f));
  for (i = 0; i < n; i++) y[i] = x[i] * inverse * gain[i];
}
)";

constexpr const char* kAddBias = R"(
static inline void $_add_bias(float *y, const float *x, const float *bias, int n) {
  int i;
  for (i = 0; i < n; i++) y[i] = x[i] + bias[i];
}
)";

constexpr const char* kRelu = R"(
static inline void $_relu(float *x, int n) {
  int i;
  for (i = 0; i < n; i++) x[i] = x[i] < 0.0f ? 0.0f : x[i];
}
)";

constexpr const char* kSquaredRelu = R"(
static inline void $_squared_relu(float *x, int n) {
  int i;
  for (i = 0; i < n; i++) x[i] = x[i] < 0.0f ? 0.0f : x[i] * x[i];
}
)";

constexpr const char* kTanh = R"(
/* e^x of 0 <= x <= 20: x = k ln 2 + r, and a polynomial in r (Cephes). */
static inline float $_exp(float x) {
  const float whole = 12582912.0f; /* what it is added to loses its fraction */
  float k = (x * 1.44269504f + whole) - whole;
  float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f, power = 1.0f;
  int i;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  for (i = 0; i < (int)k; i++) power *= 2.0f;
  return (p * (r * r) + r + 1.0f) * power;
}

/* A polynomial near 0, elsewhere 1 - 2 / (e^2x + 1). */
static inline void $_tanh(float *x, int n) {
  int i;
  for (i = 0; i < n; i++) {
    float m = x[i] < 0.0f ? -x[i] : x[i], y;
    if (m > 10.0f) m = 10.0f; /* tanh is 1 from 9.02 on */
    if (m < 0.625f) {
      float z = m * m, p = -5.70498872745e-3f;
      p = p * z + 2.06390887954e-2f;
      p = p * z - 5.37397155531e-2f;
      p = p * z + 1.33314422036e-1f;
      p = p * z - 3.33332819422e-1f;
      y = p * z * m + m;
    } else {
      y = 1.0f - 2.0f / ($_exp(2.0f * m) + 1.0f);
    }
    x[i] = x[i] < 0.0f ? -y : y;
  }
}
)";

// ---- the header, from top to bottom ----

class Writer {
 public:
  Writer(const InferenceNetwork& network, const std::string& name)
      : network_(network), name_(name), capitals_(upper_case(name)) {}

  std::string write(const std::vector<std::string>& provenance) {
    head(provenance);
    for (std::size_t i = 0; i < network_.layers.size(); ++i) tables(i);
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
  // Appends a text of this language's functions, where a % is a remainder.
  void say_function(std::string_view text) {
    for (const char c : text) {
      if (c == '$') {
        text_ += name_;
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
      if (line.size() + word.size() > kLineWidth) {
        text_ += line + "\n";
        line = " ";
      }
      line += word;
    }
    text_ += line + "\n};\n";
  }

  // "digits_layer0_scales"; the last layer is the head.
  std::string table_name(std::size_t layer, const char* what) const {
    const bool head = layer + 1 == network_.layers.size();
    return concat(name_, head ? "_head_" : concat("_layer", layer, "_"), what);
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
    if (rounds()) text_ += concat("  int8_t codes[", network_.widest(), "];\n");
    say("} $_workspace;\n#define @_WORKSPACE_BYTES sizeof($_workspace)\n");
  }

  void tables(std::size_t i) {
    const InferenceLayer& layer = network_.layers[i];
    const InferenceProduct& w = layer.product;
    text_ += concat("\n/* ", w.name, ": ", w.inputs, " inputs, ", w.outputs, " outputs",
                    w.trits.empty() ? "" : "; five trits a byte", " */\n");
    if (w.trits.empty()) {
      table("float", table_name(i, "weights"), w.weights);
    } else {
      table("uint8_t", table_name(i, "trits"), pack_rows(w));
      table("float", table_name(i, "scales"), w.scales);
    }
    const std::pair<const char*, const std::vector<float>&> vectors[] = {
        {"mean", layer.mean},
        {"inverse_std", layer.inverse_std},
        {"gain", layer.gain},
        {"bias", layer.bias}};
    for (const auto& [what, numbers] : vectors) {
      if (!numbers.empty()) table("float", table_name(i, what), numbers);
    }
  }

  void input_tables() {
    say("\n/* inputs: mean and 1 / standard deviation of the training rows */\n");
    if (!network_.offsets.empty()) table("double", name_ + "_offset", network_.offsets);
    table("float", name_ + "_mean", network_.means);
    table("float", name_ + "_inverse_std", network_.inverse_stds);
  }

  void functions() {
    const auto in_floats = [](const InferenceLayer& layer) { return layer.product.trits.empty(); };
    const auto in_trits_and_floats = [](const InferenceLayer& layer) {
      return !layer.product.trits.empty() && !layer.product.in_integers;
    };
    const bool row_norms = has_norm<Norm::kLayer>() || has_norm<Norm::kRms>();
    const std::pair<bool, const char*> all[] = {
        {rounds(), kQuantize},
        {rounds(), kTernary},
        {any_layer(in_trits_and_floats), kTernaryFloat},
        {any_layer(in_floats), kDense},
        {has_norm<Norm::kBatch>(), kBatchNorm},
        {row_norms, kSumLanes},
        {has_norm<Norm::kLayer>(), kLayerNorm},
        {has_norm<Norm::kRms>(), kRmsNorm},
        {true, kAddBias},
        {has_activation<Activation::kRelu>(), kRelu},
        {has_activation<Activation::kSquaredRelu>(), kSquaredRelu},
        {has_activation<Activation::kTanh>(), kTanh}};
    for (const auto& [used, text] : all) {
      if (used) say_function(text);
    }
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
    say("  $_standardize(w->x, features);\n");
    for (std::size_t i = 0; i < network_.layers.size(); ++i) layer(i);
    say("}\n");
  }

  void layer(std::size_t i) {
    const InferenceLayer& layer = network_.layers[i];
    const InferenceProduct& w = layer.product;
    const std::string sizes = concat(w.inputs, ", ", w.outputs);
    const auto of = [&](const char* what) { return table_name(i, what); };
    say(concat("\n  /* ", w.name, " */\n"));
    if (w.in_integers) say(concat("  scale = $_quantize(w->codes, w->x, ", w.inputs, ");\n"));
    if (w.trits.empty()) {
      say(concat("  $_dense(w->y, w->x, ", of("weights"), ", ", sizes, ");\n"));
    } else {
      say(concat(
          w.in_integers ? "  $_ternary(w->y, w->codes, scale, " : "  $_ternary_float(w->y, w->x, ",
          of("trits"), ", ", of("scales"), ", ", sizes, ", ", w.group, ");\n"));
    }
    const std::string to = i + 1 == network_.layers.size() ? "logits" : "w->x";
    say(concat("  $_", norm_call(layer.norm), "(", to, ", w->y, "));
    if (!layer.mean.empty()) say(concat(of("mean"), ", ", of("inverse_std"), ",\n      "));
    if (!layer.gain.empty()) say(of("gain") + ", ");
    if (!layer.bias.empty()) say(of("bias") + ", ");
    say(concat(w.outputs, ");\n"));
    if (layer.activation) {
      say(concat("  $_", activation_call(*layer.activation), "(w->x, ", w.outputs, ");\n"));
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

CHeaderBytes c_header_bytes(const InferenceNetwork& network) {
  const auto floats = [](const auto& numbers) { return std::ssize(numbers) * kFloatBytes; };
  CHeaderBytes bytes{};
  bool rounds = false;
  for (const InferenceLayer& layer : network.layers) {
    const InferenceProduct& w = layer.product;
    bytes.weights += w.trits.empty() ? floats(w.weights) : bytes_of_row(w) * w.outputs;
    bytes.scales += floats(w.scales);
    bytes.others +=
        floats(layer.mean) + floats(layer.inverse_std) + floats(layer.gain) + floats(layer.bias);
    rounds = rounds || w.in_integers;
  }
  bytes.others += floats(network.means) + floats(network.inverse_stds) +
                  std::ssize(network.offsets) * static_cast<std::int64_t>(sizeof(double));
  const std::int64_t widest = network.widest();
  bytes.workspace = 2 * kFloatBytes * widest +
                    (rounds ? (widest + kFloatBytes - 1) / kFloatBytes * kFloatBytes : 0);
  return bytes;
}

std::string c_header(const InferenceNetwork& network, const std::string& name,
                     const std::vector<std::string>& provenance) {
  return Writer(network, name).write(provenance);
}

}  // namespace tritgrad
