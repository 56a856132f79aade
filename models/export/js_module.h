// An inference network as one ES module for browsers and Node, without dependencies.
//
// It is models/export/javascript/model.js, which does what infer() does, with a description of the
// network in its last lines: JSON, in which trits are packed from the first weight of a layer to
// its last, without gaps, and arrays of bytes and floats are in base64.
#pragma once

#include <string>

#include "models/export/export_target.h"

namespace tritgrad {

// Returns the bytes of the tables before they are in base64, which makes four characters of three
// bytes.
ExportBytes js_module_bytes(const InferenceNetwork& network, const ExportSettings& settings);

// Returns the module. It is ASCII without any `</` or `<!--` but those of model.js, which has none,
// so that it can stand within a page.
std::string js_module(const InferenceNetwork& network, const ExportHead& head,
                      const ExportSettings& settings);

}  // namespace tritgrad
