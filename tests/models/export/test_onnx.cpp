// What is in an ONNX model. What it computes is compared by tests/scripts/onnx.sh, in onnxruntime.
#include <doctest/doctest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "models/export/onnx.h"
#include "models/recipes/recipe.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_onnx {
namespace {

using Kind = InferenceLayer::Kind;

// A network that is not trained, with weights of its seed.
InferenceNetwork network_of(const std::string& spec, const std::string& recipe,
                            const std::vector<std::string>& overrides, std::int64_t inputs,
                            const ImageShape& image = {}) {
  const SavedModel plan{spec, {inputs, image}, 10, load_recipe(recipe, overrides)};
  const auto model = make_model(spec, plan.input, plan.outputs, plan.recipe, 1);
  InferenceNetwork network{.inputs = inputs, .means = {0.5f}, .inverse_stds = {2.0f}};
  for (int i = 0; i < 10; ++i) network.class_names.push_back(concat("class ", i));
  network.layers = describe_layers(plan, *model);
  return network;
}

const ExportHead kHeadOfFile{"m", {"A \"test\".", export_signature()}};
constexpr ExportSettings kMicrosoft{};
constexpr ExportSettings kStandard{.standard_onnx_ops = true};
constexpr ExportSettings kRaw{.raw_inputs = true};

onnx::ModelProto parsed(const InferenceNetwork& network, const ExportSettings& settings) {
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(onnx_model(network, kHeadOfFile, settings)));
  return model;
}

std::int64_t size_of(const onnx::TensorProto& tensor) {
  std::int64_t size = 1;
  for (const std::int64_t each : tensor.dims()) size *= each;
  return size;
}

const onnx::TensorProto& initializer(const onnx::ModelProto& model, const std::string& name) {
  for (const onnx::TensorProto& each : model.graph().initializer()) {
    if (each.name() == name) return each;
  }
  FAIL("no initializer " << name);
  return model.graph().initializer(0);
}

std::int64_t int_of(const onnx::NodeProto& node, const std::string& name) {
  for (const onnx::AttributeProto& each : node.attribute()) {
    if (each.name() == name) return each.i();
  }
  FAIL("no attribute " << name);
  return 0;
}

std::map<std::string, int> operators_of(const onnx::ModelProto& model) {
  std::map<std::string, int> counts;
  for (const onnx::NodeProto& node : model.graph().node()) ++counts[node.op_type()];
  return counts;
}

// Every name is made once, and before it is read; nothing is made in vain.
void check_graph(const onnx::ModelProto& model) {
  std::set<std::string> made, read;
  const auto make = [&](const std::string& name) {
    CAPTURE(name);
    CHECK(made.insert(name).second);
  };
  for (const auto& input : model.graph().input()) make(input.name());
  for (const onnx::TensorProto& each : model.graph().initializer()) {
    make(each.name());
    if (each.data_type() == onnx::TensorProto::STRING) {
      CHECK(each.string_data_size() == size_of(each));
      continue;
    }
    const std::map<int, std::int64_t> widths{{onnx::TensorProto::FLOAT, 4},
                                             {onnx::TensorProto::DOUBLE, 8},
                                             {onnx::TensorProto::INT64, 8},
                                             {onnx::TensorProto::UINT8, 1},
                                             {onnx::TensorProto::INT8, 1}};
    CHECK(std::ssize(each.raw_data()) == size_of(each) * widths.at(each.data_type()));
  }
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const std::string& name : node.input()) {
      CAPTURE(name);
      CHECK(made.count(name) == 1);
      read.insert(name);
    }
    for (const std::string& name : node.output()) make(name);
  }
  for (const auto& output : model.graph().output()) read.insert(output.name());
  CHECK(made == read);
}

// The digits of all rows are the trits plus one, and what fills up a row is a zero point.
void check_two_bits(const onnx::ModelProto& model, const onnx::NodeProto& node,
                    const InferenceProduct& w) {
  CAPTURE(w.name);
  const std::int64_t block = int_of(node, "block_size");
  REQUIRE(std::set<std::int64_t>{32, 64, 128}.count(block) == 1);
  const std::int64_t blocks = (w.inputs + block - 1) / block;
  CHECK(int_of(node, "bits") == 2);
  CHECK(int_of(node, "K") == w.inputs);
  CHECK(int_of(node, "N") == w.outputs);
  const onnx::TensorProto& packed = initializer(model, node.input(1));
  REQUIRE(size_of(packed) == w.outputs * blocks * block / 4);
  std::int64_t differing = 0;
  for (std::int64_t i = 0; i < w.outputs * blocks * block; ++i) {
    const auto byte =
        static_cast<unsigned char>(packed.raw_data()[static_cast<std::size_t>(i / 4)]);
    const std::int64_t row = i / (blocks * block), column = i % (blocks * block);
    const int trit =
        column < w.inputs ? w.trits[static_cast<std::size_t>(row * w.inputs + column)] : 0;
    differing += ((byte >> (2 * (i % 4))) & 3) == trit + 1 ? 0 : 1;
  }
  CHECK(differing == 0);
  if (w.groups() == 1) return;
  const onnx::TensorProto& scales = initializer(model, node.input(2));
  REQUIRE(size_of(scales) == w.outputs * blocks);
  CHECK(w.group % block == 0);
}

void check_products(const InferenceNetwork& network, const onnx::ModelProto& model) {
  auto node = model.graph().node().begin();
  for (const InferenceLayer& layer : network.layers) {
    if (layer.kind != Kind::kLinear || layer.product.trits.empty()) continue;
    const auto is_product = [](const onnx::NodeProto& n) { return n.op_type() == "MatMulNBits"; };
    node = std::find_if(node, model.graph().node().end(), is_product);
    REQUIRE(node != model.graph().node().end());
    CHECK(node->domain() == "com.microsoft");
    check_two_bits(model, *node++, layer.product);
  }
}

std::vector<InferenceNetwork> all_kinds() {
  std::vector<InferenceNetwork> all{
      network_of("mlp:40,300", "latent8", {}, 784),
      network_of("mlp:96:norm=layer:activation=tanh", "votes", {"weight.group=64"}, 150),
      network_of("mlp:33:norm=rms:activation=squared_relu", "trits", {"weight.group=32"}, 33),
      network_of("mlp:", "master", {}, 7),
      network_of("mlp:20:norm=none", "fp32", {}, 5),
      network_of("conv:6,M,9", "latent8", {}, 7 * 6 * 2, {7, 6, 2}),
      network_of("conv:6,M,9", "latent8", {"weight.group=32"}, 7 * 6 * 5, {7, 6, 5}),
      network_of("conv:M,9", "fp32", {}, 5 * 6, {5, 6, 1}),
      network_of("conv:6,R,9/2,F70,F8", "latent8", {}, 7 * 6 * 2, {7, 6, 2}),
  };
  all[1].offsets.assign(150, 1e9);
  all[3].table.emplace();
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    all[3].table->columns.emplace_back().name = name;
  }
  all[3].table->columns.back().has_indicator = true;
  all[5].square_roots = true;
  return all;
}

std::string metadata(const onnx::ModelProto& model, const std::string& key) {
  for (const auto& entry : model.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "";
}

}  // namespace

TEST_CASE("onnx: graphs are in order, their weights are the trits, and their bytes are counted") {
  for (const InferenceNetwork& network : all_kinds()) {
    for (const ExportSettings& settings : {kMicrosoft, kStandard, kRaw}) {
      const onnx::ModelProto model = parsed(network, settings);
      check_graph(model);
      if (!settings.standard_onnx_ops) check_products(network, model);
      CHECK(model.opset_import(0).domain().empty());
      const bool needs_microsoft = operators_of(model).count("MatMulNBits") > 0;
      CHECK(model.opset_import_size() == (needs_microsoft ? 2 : 1));
      CHECK(!(settings.standard_onnx_ops && needs_microsoft));
      // All that is larger than a number is a table, or says a shape.
      std::int64_t bytes = 0;
      for (const onnx::TensorProto& each : model.graph().initializer()) {
        if (each.dims_size() > 0 && each.data_type() != onnx::TensorProto::INT64) {
          bytes += std::ssize(each.raw_data());
        }
      }
      CHECK(bytes == onnx_bytes(network, settings).tables());
    }
  }
}

TEST_CASE("onnx: the same network has the same bytes, which are known as an export") {
  for (const InferenceNetwork& network : all_kinds()) {
    const std::string bytes = onnx_model(network, kHeadOfFile, kMicrosoft);
    CHECK(bytes == onnx_model(network, kHeadOfFile, kMicrosoft));
    CHECK(bytes == parsed(network, kMicrosoft).SerializeAsString());
    CHECK(is_export(bytes));
  }
}

TEST_CASE("onnx: mlp:512,512 on images of 28 x 28 is smaller than a twelfth of the one in floats") {
  const InferenceNetwork ternary = network_of("mlp:512,512", "latent8", {}, 784);
  const InferenceNetwork dense = network_of("mlp:512,512", "fp32", {}, 784);
  const auto size = [](const InferenceNetwork& network) {
    return std::ssize(onnx_model(network, kHeadOfFile, kMicrosoft));
  };
  CHECK(size(ternary) * 12 < size(dense));
  const ExportBytes bytes = onnx_bytes(ternary, kMicrosoft);
  // Rows of 784 are 13 blocks of 64; those of 512 are 4 of 128, without padding.
  CHECK(bytes.weights == (512 * 13 * 64 + 512 * 512 + 10 * 512) / 4);
  CHECK(bytes.scales == 4 * (512 + 512 + 10));
  CHECK(onnx_bytes(ternary, kStandard).weights == ternary.weights());
  CHECK(onnx_bytes(dense, kStandard).weights == 4 * dense.weights());
}

TEST_CASE("onnx: inputs, outputs, and what a model says of itself") {
  InferenceNetwork network = all_kinds()[1];  // with offsets
  network.class_names[0] = "\"na\xC3\xAFve\"";
  network.class_names[1] = "no UTF-8: \xFF";
  const onnx::ModelProto model = parsed(network, kMicrosoft);
  CHECK(model.producer_name() == "tritgrad");
  CHECK(model.doc_string() == "A \"test\".\n" + export_signature());
  const auto names = nlohmann::json::parse(metadata(model, "class_names"));
  CHECK(names.size() == 10);
  CHECK(names[0] == network.class_names[0]);
  CHECK(names[1] == "no UTF-8: \xEF\xBF\xBD");
  CHECK(metadata(model, "means").empty());
  REQUIRE(model.graph().input_size() == 1);
  const auto& input = model.graph().input(0).type().tensor_type();
  CHECK(model.graph().input(0).name() == "features");
  CHECK(input.elem_type() == onnx::TensorProto::DOUBLE);
  CHECK(input.shape().dim(0).dim_param() == "batch");
  CHECK(input.shape().dim(1).dim_value() == 150);
  const char* outputs[] = {"logits", "probabilities", "label", "class"};
  REQUIRE(model.graph().output_size() == 4);
  CHECK(initializer(model, "class_names").string_data(0) == network.class_names[0]);
  CHECK(initializer(model, "class_names").string_data_size() == 10);
  for (int i = 0; i < 4; ++i) CHECK(model.graph().output(i).name() == outputs[i]);

  const onnx::ModelProto raw = parsed(network, kRaw);
  CHECK(raw.graph().input(0).type().tensor_type().elem_type() == onnx::TensorProto::FLOAT);
  CHECK(nlohmann::json::parse(metadata(raw, "means"))[0] == 0.5);
  CHECK(nlohmann::json::parse(metadata(raw, "inverse_stds"))[0] == 2.0);
  CHECK(nlohmann::json::parse(metadata(raw, "offsets"))[149] == 1e9);
  CHECK(operators_of(raw)["Sub"] == operators_of(model)["Sub"] - 2);  // the offset and the mean
}

TEST_CASE("onnx: gaps of tables and square roots of pixels are part of the graph") {
  const std::vector<InferenceNetwork> all = all_kinds();
  const onnx::ModelProto table = parsed(all[3], kMicrosoft);
  CHECK(operators_of(table)["IsNaN"] == 1);
  CHECK(metadata(table, "feature_names") == R"(["a","b","c","d","e","f","f is missing"])");
  CHECK(operators_of(parsed(all[3], kRaw)).count("IsNaN") == 0);
  CHECK(operators_of(parsed(all[5], kMicrosoft))["Sqrt"] == 1);
  CHECK(metadata(parsed(all[5], kRaw), "square_roots") == "true");
  InferenceNetwork filled = all[3];  // 7 inputs, without offsets and with them
  filled.fills = {1.5, 2, 3, 4, 5, 6, std::numeric_limits<double>::quiet_NaN()};
  filled.table->columns[1].fill_word = "red";
  const onnx::ModelProto in_floats = parsed(filled, kMicrosoft);
  CHECK(operators_of(in_floats)["IsNaN"] == 2);
  CHECK(initializer(in_floats, "inputs/fill").data_type() == onnx::TensorProto::FLOAT);
  CHECK(metadata(in_floats, "fill_words") == R"({"b":"red"})");
  check_graph(in_floats);
  const onnx::ModelProto raw = parsed(filled, kRaw);
  CHECK(operators_of(raw).count("IsNaN") == 0);
  CHECK(metadata(raw, "fills") == "[1.5,2.0,3.0,4.0,5.0,6.0,null]");
  filled.offsets.assign(7, 1e9);
  CHECK(initializer(parsed(filled, kMicrosoft), "inputs/fill").data_type() ==
        onnx::TensorProto::DOUBLE);
  // A layer is rounded once, and scaled once by what is one number for each row.
  CHECK(operators_of(parsed(all[0], kMicrosoft))["Round"] == 3);
  CHECK(operators_of(parsed(all[4], kMicrosoft)).count("Round") == 0);
}

}  // namespace tritgrad::test::test_onnx
