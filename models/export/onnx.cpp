#include "models/export/onnx.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "engine/check.h"
#include "engine/text.h"
#include "engine/version.h"
#include "models/export/network_arrays.h"
#include "ops/layer_norm.h"

// Numbers of initializers are little-endian in the file.
static_assert(std::endian::native == std::endian::little);

namespace tritgrad {
namespace {

// These are known to Debian 12's python3-onnx, and as old as the operators allow, for other
// runtimes.
constexpr std::int64_t kIrVersion = 7;
constexpr std::int64_t kOpset = 13;
constexpr const char* kMicrosoft = "com.microsoft";

constexpr const char* kInput = "features";
constexpr const char* kLogits = "logits";
constexpr const char* kValue = "value";  // of a regression

using Shape64 = std::vector<std::int64_t>;

// How MatMulNBits keeps a row of weights: blocks of 2-bit numbers, four to a byte, the first one in
// the lowest bits; the last block is filled up with zero points.
struct TwoBitRows {
  std::int64_t block;
  std::int64_t blocks;  // of a row

  std::int64_t bytes() const { return block * blocks / 4; }
};

// Larger blocks are read faster, and fill up more: at most a sixteenth of a row, if there is a
// choice. 128, 64 and 32 are what onnxruntime has fast code for. A scale is that of a block, so a
// group of inputs with a scale of its own is a whole number of blocks.
TwoBitRows two_bit_rows(const InferenceProduct& w) {
  std::int64_t block = 128;
  const bool row_scales = w.groups() == 1;
  const auto fits = [&] {
    const std::int64_t filled = (block - w.inputs % block) % block;
    return row_scales ? 16 * filled <= w.inputs : w.group % block == 0;
  };
  while (block > 32 && !fits()) block /= 2;
  check(row_scales || fits(), "export: '", w.name, "' has groups of ", w.group,
        " inputs, expected a multiple of 32");
  return {block, (w.inputs + block - 1) / block};
}

std::string pack_two_bits(const InferenceProduct& w, const TwoBitRows& rows) {
  std::string packed(static_cast<std::size_t>(rows.bytes() * w.outputs), '\x55');
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    for (std::int64_t i = 0; i < w.inputs; ++i) {
      char& byte = packed[static_cast<std::size_t>(o * rows.bytes() + i / 4)];
      const int shift = static_cast<int>(i % 4) * 2;
      const int digit = w.trits[static_cast<std::size_t>(o * w.inputs + i)] + 1;
      byte = static_cast<char>((byte & ~(3 << shift)) | digit << shift);
    }
  }
  return packed;
}

class OnnxWriter {
 public:
  OnnxWriter(const InferenceNetwork& network, const ExportSettings& settings)
      : network_(network), settings_(settings), graph_(*model_.mutable_graph()) {
    model_.set_ir_version(kIrVersion);
    opset("", kOpset);
    std::string x = settings.raw_inputs ? kInput : standardized();
    if (network.layers.front().kind != InferenceLayer::Kind::kLinear) x = image_of_pixels(x);
    for (const InferenceLayer& layer : network.layers) x = apply(layer, x);
    if (network.is_regression()) in_units(x);
    graph_.mutable_node(graph_.node_size() - 1)->set_output(0, output_name());
    declare_inputs_and_outputs();
  }
  OnnxWriter(const OnnxWriter&) = delete;
  OnnxWriter& operator=(const OnnxWriter&) = delete;

  const ExportBytes& bytes() const { return bytes_; }

  std::string write(const ExportHead& head) {
    model_.set_producer_name("tritgrad");
    model_.set_producer_version(version());
    std::string text;
    for (const std::string& line : head.provenance) text += (text.empty() ? "" : "\n") + line;
    model_.set_doc_string(as_utf8(text));
    graph_.set_name(as_utf8(head.name));
    metadata();
    const std::size_t size = model_.ByteSizeLong();
    check(
        size <= std::numeric_limits<std::int32_t>::max(), "export: the model is ", size,
        " bytes as .onnx, expected at most 2147483647, which is what such a file can be; train a ",
        "smaller one", settings_.standard_onnx_ops ? ", or leave --onnx-ops standard out" : "");
    return model_.SerializeAsString();
  }

 private:
  // ---- parts of a graph ----

  void opset(const char* domain, std::int64_t version_of_domain) {
    onnx::OperatorSetIdProto& import = *model_.add_opset_import();
    import.set_domain(domain);
    import.set_version(version_of_domain);
  }

  // Appends an operator and returns the name of its output: that of the place and the operator,
  // numbered.
  std::string node(const char* op, const std::vector<std::string>& inputs) {
    onnx::NodeProto& added = *graph_.add_node();
    const std::string name = concat(place_, "/", op, "_", graph_.node_size());
    added.set_op_type(op);
    added.set_name(name);
    for (const std::string& input : inputs) added.add_input(input);
    added.add_output(name);
    return name;
  }
  // Adds an attribute to the operator that was appended last.
  onnx::AttributeProto& attribute(const char* name, onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& added = *graph_.mutable_node(graph_.node_size() - 1)->add_attribute();
    added.set_name(name);
    added.set_type(type);
    return added;
  }
  void set_attribute(const char* name, std::int64_t value) {
    attribute(name, onnx::AttributeProto::INT).set_i(value);
  }
  void set_attribute(const char* name, const Shape64& values) {
    onnx::AttributeProto& added = attribute(name, onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) added.add_ints(value);
  }

  static void fill(onnx::TensorProto& tensor, onnx::TensorProto::DataType type,
                   const Shape64& shape, std::string bytes) {
    tensor.set_data_type(type);
    for (const std::int64_t size : shape) tensor.add_dims(size);
    tensor.set_raw_data(std::move(bytes));
  }
  template <typename Number>
  static std::string bytes_of(const std::vector<Number>& numbers) {
    std::string bytes(numbers.size() * sizeof(Number), '\0');
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return bytes;
  }

  // Adds an initializer, whose bytes count as what it is.
  template <typename Number>
  std::string table(const char* what, std::int64_t ExportBytes::*counted, const Shape64& shape,
                    const std::vector<Number>& numbers) {
    constexpr auto kType = std::is_same_v<Number, float>    ? onnx::TensorProto::FLOAT
                           : std::is_same_v<Number, double> ? onnx::TensorProto::DOUBLE
                           : std::is_same_v<Number, char>   ? onnx::TensorProto::UINT8
                                                            : onnx::TensorProto::INT8;
    onnx::TensorProto& added = *graph_.add_initializer();
    added.set_name(concat(place_, "/", what));
    bytes_.*counted += static_cast<std::int64_t>(numbers.size() * sizeof(Number));
    fill(added, kType, shape, bytes_of(numbers));
    return added.name();
  }
  // Adds a number, of which the graph has one however often it is read.
  std::string number(const char* name, onnx::TensorProto::DataType type, std::string bytes) {
    if (numbers_.insert(name).second) {
      onnx::TensorProto& added = *graph_.add_initializer();
      added.set_name(name);
      fill(added, type, {}, std::move(bytes));
    }
    return name;
  }
  std::string number(const char* name, float value) {
    return number(name, onnx::TensorProto::FLOAT, bytes_of(std::vector<float>{value}));
  }
  std::string number(const char* name, double value) {
    return number(name, onnx::TensorProto::DOUBLE, bytes_of(std::vector<double>{value}));
  }
  std::string shape(const char* what, const Shape64& sizes) {
    onnx::TensorProto& added = *graph_.add_initializer();
    added.set_name(concat(place_, "/", what));
    fill(added, onnx::TensorProto::INT64, {std::ssize(sizes)}, bytes_of(sizes));
    return added.name();
  }
  std::string cast(const std::string& x, onnx::TensorProto::DataType type) {
    const std::string y = node("Cast", {x});
    set_attribute("to", static_cast<std::int64_t>(type));
    return y;
  }
  std::string to_float(const std::string& x) { return cast(x, onnx::TensorProto::FLOAT); }
  std::string to_double(const std::string& x) { return cast(x, onnx::TensorProto::DOUBLE); }

  // ---- inputs ----

  // A missing number is filled as the data have it. In double, as in training, numbers are
  // standardised and rounded once; what is still missing is the mean.
  std::string standardized() {
    place_ = "inputs";
    std::string value = network_.fills.empty() ? kInput : filled_inputs();
    if (!network_.offsets.empty()) {
      const std::string offset =
          table("offset", &ExportBytes::others, {network_.inputs}, network_.offsets);
      value = to_float(node("Sub", {value, offset}));
    }
    if (network_.square_roots) value = node("Sqrt", {value});
    const Shape64 size{std::ssize(network_.means)};
    const std::string mean = table("mean", &ExportBytes::others, size, network_.means);
    const std::string inverse =
        table("inverse_std", &ExportBytes::others, size, network_.inverse_stds);
    const std::string centered = node("Sub", {to_double(value), to_double(mean)});
    const std::string z = node("Mul", {centered, to_double(inverse)});
    constexpr double kMost = std::numeric_limits<float>::max();
    std::string x =
        to_float(node("Clip", {z, number("least_float", -kMost), number("most_float", kMost)}));
    if (!network_.table) return x;
    return node("Where", {node("IsNaN", {value}), number("zero", 0.0f), x});
  }

  // Returns the inputs with fills in the place of missing numbers, in the type of the inputs.
  std::string filled_inputs() {
    const Shape64 size{network_.inputs};
    const std::string fill =
        network_.offsets.empty()
            ? table("fill", &ExportBytes::others, size,
                    std::vector<float>(network_.fills.begin(), network_.fills.end()))
            : table("fill", &ExportBytes::others, size, network_.fills);
    return node("Where", {node("IsNaN", {kInput}), fill, kInput});
  }

  // Returns [batch, channels, rows, columns] of [batch, rows x columns x channels].
  std::string image_of_pixels(const std::string& x) {
    place_ = "inputs";
    const ImageShape& image = network_.layers.front().image;
    const std::string y =
        node("Reshape", {x, shape("image", {-1, image.height, image.width, image.channels})});
    const std::string turned = node("Transpose", {y});
    set_attribute("perm", Shape64{0, 3, 1, 2});
    return turned;
  }

  // Returns [batch, rows x columns x channels] of [batch, channels, rows, columns].
  std::string row_of_pixels(const InferenceLayer& layer, const std::string& x) {
    const std::string turned = node("Transpose", {x});
    set_attribute("perm", Shape64{0, 2, 3, 1});
    return node("Reshape", {turned, shape("row", {-1, layer.inputs()})});
  }

  // ---- layers ----

  std::string apply(const InferenceLayer& layer, std::string x) {
    if (!layer.has_product()) return pool(layer, x);
    place_ = layer.product.name;
    if (layer.begins_block) kept_ = x;
    const bool reads_pixels = layer.kind == InferenceLayer::Kind::kLinear && layer.image.size() > 0;
    x = normalized(layer, multiplied(layer, reads_pixels ? row_of_pixels(layer, x) : x));
    if (layer.ends_block) x = node("Add", {x, kept_});
    if (!layer.activation) return x;
    if (*layer.activation == Activation::kTanh) return node("Tanh", {x});
    x = node("Relu", {x});
    return *layer.activation == Activation::kSquaredRelu ? node("Mul", {x, x}) : x;
  }

  std::string pool(const InferenceLayer& layer, const std::string& x) {
    place_ = concat("pool_", ++pools_);
    if (layer.kind == InferenceLayer::Kind::kMaxPool) {
      const std::string y = node("MaxPool", {x});
      set_attribute("kernel_shape", Shape64{2, 2});
      set_attribute("strides", Shape64{2, 2});
      return y;
    }
    const std::string mean = node("ReduceMean", {to_double(x)});
    set_attribute("axes", Shape64{2, 3});
    set_attribute("keepdims", 0);
    return to_float(mean);
  }

  struct RoundedRows {
    std::string codes, scale;
  };

  // Rounds to whole numbers of -127..127, by the largest magnitude of a row or an image. Where that
  // is below 2^-100, infer() makes zeros of it; here it is the least to divide by, and what comes
  // of it is as small.
  RoundedRows rounded(const InferenceLayer& layer, const std::string& x) {
    const std::string largest = node("ReduceMax", {node("Abs", {x})});
    set_attribute("axes",
                  layer.kind == InferenceLayer::Kind::kLinear ? Shape64{1} : Shape64{1, 2, 3});
    set_attribute("keepdims", 1);
    const std::string most = number("most_level", 127.0f);
    const std::string divisor = node("Max", {largest, number("least_divisor", 0x1p-100f)});
    const std::string level = node("Mul", {x, node("Div", {most, divisor})});
    const std::string limited = node("Clip", {level, number("least_level", -127.0f), most});
    return {node("Round", {limited}), node("Div", {divisor, most})};
  }

  // Returns y = x W^T. Trits whose rows have one scale are added as they are, and scaled as infer()
  // does.
  std::string multiplied(const InferenceLayer& layer, const std::string& x) {
    const InferenceProduct& w = layer.product;
    RoundedRows input{x, ""};
    if (w.in_integers) input = rounded(layer, x);
    const std::string y = layer.kind == InferenceLayer::Kind::kLinear && !w.trits.empty() &&
                                  !settings_.standard_onnx_ops
                              ? two_bit_product(w, input.codes)
                              : float_product(layer, input.codes);
    if (w.trits.empty()) return y;
    if (w.groups() > 1) return w.in_integers ? node("Mul", {y, input.scale}) : y;
    std::string scale =
        table("scales", &ExportBytes::scales, of_columns(layer, w.outputs), w.scales);
    if (w.in_integers) scale = node("Mul", {input.scale, scale});
    return node("Mul", {y, scale});
  }

  std::string two_bit_product(const InferenceProduct& w, const std::string& x) {
    if (!uses_microsoft_) opset(kMicrosoft, 1);
    uses_microsoft_ = true;
    const TwoBitRows rows = two_bit_rows(w);
    const std::string packed = pack_two_bits(w, rows);
    const std::string weights =
        table("trits", &ExportBytes::weights, {w.outputs, rows.blocks, rows.block / 4},
              std::vector<char>(packed.begin(), packed.end()));
    const std::int64_t zero_bytes = (rows.blocks + 3) / 4;
    const std::string scales =
        w.groups() == 1 ? filled("ones", {w.outputs * rows.blocks}, onnx::TensorProto::FLOAT,
                                 bytes_of(std::vector<float>{1.0f}))
                        : table("scales", &ExportBytes::scales, {w.outputs * rows.blocks},
                                scales_of_blocks(w, rows));
    const std::string zeros =
        filled("zero_points", {w.outputs * zero_bytes}, onnx::TensorProto::UINT8, "\x55");
    const std::string y = node("MatMulNBits", {x, weights, scales, zeros});
    graph_.mutable_node(graph_.node_size() - 1)->set_domain(kMicrosoft);
    set_attribute("K", w.inputs);
    set_attribute("N", w.outputs);
    set_attribute("bits", 2);
    set_attribute("block_size", rows.block);
    return y;
  }

  // Returns a tensor of one number, which is a few bytes of the file however large it is.
  std::string filled(const char* what, const Shape64& sizes, onnx::TensorProto::DataType type,
                     std::string bytes) {
    const std::string y = node("ConstantOfShape", {shape(what, sizes)});
    onnx::AttributeProto& value = attribute("value", onnx::AttributeProto::TENSOR);
    fill(*value.mutable_t(), type, {1}, std::move(bytes));
    return y;
  }

  static std::vector<float> scales_of_blocks(const InferenceProduct& w, const TwoBitRows& rows) {
    std::vector<float> scales;
    for (std::int64_t o = 0; o < w.outputs; ++o) {
      for (std::int64_t b = 0; b < rows.blocks; ++b) {
        const std::int64_t group = b * rows.block / w.group;
        scales.push_back(w.scales[static_cast<std::size_t>(o * w.groups() + group)]);
      }
    }
    return scales;
  }

  // The product multiplies floats, or int8 behind DequantizeLinear.
  std::string float_product(const InferenceLayer& layer, const std::string& x) {
    const InferenceProduct& w = layer.product;
    if (layer.kind == InferenceLayer::Kind::kLinear) {
      const std::string y = node("Gemm", {x, weights_of(layer, {w.outputs, w.inputs})});
      set_attribute("transB", 1);
      return y;
    }
    const std::int64_t channels = layer.image.channels;
    const std::string y =
        node("Conv", {x, weights_of(layer, {w.outputs, channels, kWindowSide, kWindowSide})});
    set_attribute("kernel_shape", Shape64{kWindowSide, kWindowSide});
    set_attribute("pads", Shape64{1, 1, 1, 1});
    if (layer.stride > 1) set_attribute("strides", Shape64{layer.stride, layer.stride});
    return y;
  }

  std::string weights_of(const InferenceLayer& layer, const Shape64& sizes) {
    const InferenceProduct& w = layer.product;
    const bool windows = layer.kind == InferenceLayer::Kind::kConvolution;
    if (w.trits.empty()) {
      return table(
          "weights", &ExportBytes::weights, sizes,
          windows ? channels_first(w.weights, layer.image.channels, kWindowPixels) : w.weights);
    }
    if (w.groups() > 1) return weights_in_groups(layer);
    const std::string trits =
        table("trits", &ExportBytes::weights, sizes,
              windows ? channels_first(w.trits, layer.image.channels, kWindowPixels) : w.trits);
    return node("DequantizeLinear", {trits, number("one", 1.0f)});
  }

  // A scale is that of a row of DequantizeLinear, so each group is a row, the last one of an output
  // filled up with zeros.
  std::string weights_in_groups(const InferenceLayer& layer) {
    const InferenceProduct& w = layer.product;
    const std::int64_t groups = w.outputs * w.groups(), padded = w.groups() * w.group;
    std::vector<std::int8_t> trits(static_cast<std::size_t>(w.outputs * padded), 0);
    for (std::int64_t o = 0; o < w.outputs; ++o) {
      std::copy_n(w.trits.begin() + o * w.inputs, w.inputs, trits.begin() + o * padded);
    }
    std::string y =
        node("DequantizeLinear", {table("trits", &ExportBytes::weights, {groups, w.group}, trits),
                                  table("scales", &ExportBytes::scales, {groups}, w.scales)});
    set_attribute("axis", 0);
    y = node("Reshape", {y, shape("rows", {w.outputs, padded})});
    if (padded > w.inputs) {
      y = node("Slice", {y, shape("first", {0}), shape("last", {w.inputs}), shape("axis", {1})});
    }
    if (layer.kind == InferenceLayer::Kind::kLinear) return y;
    y = node("Reshape",
             {y, shape("windows", {w.outputs, kWindowSide, kWindowSide, layer.image.channels})});
    y = node("Transpose", {y});
    set_attribute("perm", Shape64{0, 3, 1, 2});
    return y;
  }

  // Returns the shape of a number for each output, or for each channel of an image.
  static Shape64 of_columns(const InferenceLayer& layer, std::int64_t outputs) {
    return layer.kind == InferenceLayer::Kind::kLinear ? Shape64{outputs} : Shape64{outputs, 1, 1};
  }

  std::string normalized(const InferenceLayer& layer, std::string x) {
    const auto vector = [&](const char* what, const std::vector<float>& numbers) {
      return table(what, &ExportBytes::others, of_columns(layer, layer.product.outputs), numbers);
    };
    if (layer.norm == Norm::kBatch) {
      x = node("Mul", {node("Sub", {x, vector("mean", layer.mean)}),
                       vector("inverse_std", layer.inverse_std)});
    } else if (layer.norm != Norm::kNone) {
      x = normalized_rows(layer.norm, x);
    }
    if (!layer.gain.empty()) x = node("Mul", {x, vector("gain", layer.gain)});
    return layer.bias.empty() ? x : node("Add", {x, vector("bias", layer.bias)});
  }

  // Returns normalised rows before gain and bias. Sums are made in double, as in training.
  std::string normalized_rows(Norm norm, std::string x) {
    std::string wide = to_double(x);
    if (norm == Norm::kLayer) {
      const std::string mean = mean_of_rows(wide);
      wide = node("Sub", {wide, mean});
      x = node("Sub", {x, to_float(mean)});
    }
    const std::string squares = mean_of_rows(node("Mul", {wide, wide}));
    const std::string eps = norm == Norm::kLayer
                                ? number("layer_norm_eps", static_cast<double>(kLayerNormEps))
                                : number("rms_norm_eps", static_cast<double>(kRmsNormEps));
    const std::string deviation = node("Sqrt", {node("Add", {squares, eps})});
    return node("Mul", {x, to_float(node("Div", {number("one_in_double", 1.0), deviation}))});
  }
  std::string mean_of_rows(const std::string& x) {
    const std::string y = node("ReduceMean", {x});
    set_attribute("axes", Shape64{1});
    set_attribute("keepdims", 1);
    return y;
  }

  // ---- what the graph says of itself ----

  static void describe(onnx::ValueInfoProto& value, const char* name,
                       onnx::TensorProto::DataType type, std::int64_t columns) {
    value.set_name(name);
    onnx::TypeProto_Tensor& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape()->add_dim()->set_dim_param("batch");
    if (columns > 0) tensor.mutable_shape()->add_dim()->set_dim_value(columns);
  }

  void in_units(const std::string& x) {
    const TargetScale& scale = network_.target_scale;
    node("Add", {node("Mul", {to_double(x), number("target_deviation", scale.deviation)}),
                 number("target_mean", scale.mean)});
  }

  const char* output_name() const { return network_.is_regression() ? kValue : kLogits; }

  void declare_inputs_and_outputs() {
    const bool wide = !network_.offsets.empty() && !settings_.raw_inputs;
    describe(*graph_.add_input(), kInput,
             wide ? onnx::TensorProto::DOUBLE : onnx::TensorProto::FLOAT, network_.inputs);
    if (network_.is_regression()) {
      describe(*graph_.add_output(), kValue, onnx::TensorProto::DOUBLE, 1);
      return;
    }
    node("Softmax", {kLogits});
    set_attribute("axis", 1);
    graph_.mutable_node(graph_.node_size() - 1)->set_output(0, "probabilities");
    node("ArgMax", {kLogits});
    set_attribute("axis", 1);
    set_attribute("keepdims", 0);
    graph_.mutable_node(graph_.node_size() - 1)->set_output(0, "label");
    name_of_label();
    describe(*graph_.add_output(), kLogits, onnx::TensorProto::FLOAT, network_.classes());
    describe(*graph_.add_output(), "probabilities", onnx::TensorProto::FLOAT, network_.classes());
    describe(*graph_.add_output(), "label", onnx::TensorProto::INT64, 0);
    describe(*graph_.add_output(), "class", onnx::TensorProto::STRING, 0);
  }

  // Looks the name of the class up by its number.
  void name_of_label() {
    onnx::TensorProto& names = *graph_.add_initializer();
    names.set_name("class_names");
    names.set_data_type(onnx::TensorProto::STRING);
    names.add_dims(network_.classes());
    for (const std::string& name : network_.class_names) names.add_string_data(as_utf8(name));
    node("Gather", {"class_names", "label"});
    graph_.mutable_node(graph_.node_size() - 1)->set_output(0, "class");
  }

  void metadata() {
    const auto add = [&](const char* key, const nlohmann::json& value) {
      onnx::StringStringEntryProto& entry = *model_.add_metadata_props();
      entry.set_key(key);
      entry.set_value(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    };
    if (!network_.is_regression()) add("class_names", network_.class_names);
    if (network_.table) {
      add("feature_names", network_.table->feature_names());
      const nlohmann::json words = fill_words(*network_.table);
      if (!words.empty()) add("fill_words", words);
    }
    if (!settings_.raw_inputs) return;
    // These numbers make the inputs that a raw graph takes.
    if (!network_.fills.empty()) add("fills", network_.fills);
    if (!network_.offsets.empty()) add("offsets", network_.offsets);
    if (network_.square_roots) add("square_roots", true);
    add("means", network_.means);
    add("inverse_stds", network_.inverse_stds);
  }

  // Returns the words that stand for missing cells, by the names of their columns.
  static nlohmann::json fill_words(const TableSchema& schema) {
    nlohmann::json words = nlohmann::json::object();
    for (const TableFeature& column : schema.columns) {
      if (!column.fill_word.empty()) words[column.name] = column.fill_word;
    }
    return words;
  }

  const InferenceNetwork& network_;
  const ExportSettings& settings_;
  onnx::ModelProto model_;
  onnx::GraphProto& graph_;
  std::string place_;  // what the names of operators and initializers begin with
  std::string kept_;   // what the residual block read, within one
  std::set<std::string> numbers_;
  ExportBytes bytes_;
  int pools_ = 0;
  bool uses_microsoft_ = false;
};

}  // namespace

ExportBytes onnx_bytes(const InferenceNetwork& network, const ExportSettings& settings) {
  return OnnxWriter(network, settings).bytes();
}

bool is_onnx_exact(const InferenceNetwork& network) {
  const auto keeps_bits = [](const InferenceLayer& layer) {
    return layer.activation != Activation::kTanh &&
           (!layer.has_product() || layer.product.groups() == 1);
  };
  return network.is_exact() &&
         std::all_of(network.layers.begin(), network.layers.end(), keeps_bits);
}

std::string onnx_model(const InferenceNetwork& network, const ExportHead& head,
                       const ExportSettings& settings) {
  return OnnxWriter(network, settings).write(head);
}

}  // namespace tritgrad
