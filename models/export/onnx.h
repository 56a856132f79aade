// An inference network as an ONNX model, a graph of operators of opset 13.
//
// The graph does what infer() does (models/export/inference_network.h), each operator rounding as
// there: activations become whole numbers as floats, products of trits are sums of whole numbers,
// and a row's scale is multiplied afterwards. Trits are the 2-bit weights of MatMulNBits, an
// operator of com.microsoft, or with standard operators int8 behind DequantizeLinear.
#pragma once

#include <string>

#include "models/export/export_target.h"

namespace tritgrad {

// Bytes of the initializers; those that only say a shape are not counted.
ExportBytes onnx_bytes(const InferenceNetwork& network, const ExportSettings& settings);

// Whether a runtime computes the bits of infer(): products are in integers, whose rows have one
// scale each, and no tanh is the runtime's own.
bool is_onnx_exact(const InferenceNetwork& network);

// Returns the model. Throws Error if it is larger than 2 GiB, which protobuf cannot hold.
std::string onnx_model(const InferenceNetwork& network, const ExportHead& head,
                       const ExportSettings& settings);

}  // namespace tritgrad
