// The kernels of one target. A target file defines
//   TRITGRAD_TARGET  namespace and name of its tables,
//   TRITGRAD_ARCH    the xsimd architecture,
//   Eigen            the private name of Eigen in this object,
//   TRITGRAD_TILES   where products of int8 go through tile registers,
// and includes this file. Nothing here may end up in a symbol without the name of the target
// (tools/scripts/check_symbols.sh): otherwise the linker could give this code to a caller on
// another processor.
#pragma once

#include "ops/kernels/codecs/codecs-inl.h"
#include "ops/kernels/codecs/companded-inl.h"
#include "ops/kernels/codecs/fp8-inl.h"
#include "ops/kernels/codecs/lowbit-inl.h"
#include "ops/kernels/codecs/lowbit_loops-inl.h"
#include "ops/kernels/codecs/split-inl.h"
#include "ops/kernels/codecs/ternary_master_loops-inl.h"
#include "ops/kernels/layers/attention-inl.h"
#include "ops/kernels/layers/attention_query-inl.h"
#include "ops/kernels/layers/layer_loops-inl.h"
#include "ops/kernels/layers/level_loops-inl.h"
#include "ops/kernels/layers/level_sums-inl.h"
#include "ops/kernels/layers/norm_loops-inl.h"
#include "ops/kernels/layers/sums-inl.h"
#include "ops/kernels/layers/transformer_loops-inl.h"
#include "ops/kernels/products/dot_trits-inl.h"
#include "ops/kernels/products/gemm-inl.h"
#include "ops/kernels/products/integer_loops-inl.h"
#include "ops/kernels/products/panels-inl.h"
#include "ops/kernels/products/peak_loops-inl.h"
#include "ops/kernels/products/quantize-inl.h"
#include "ops/kernels/updates/byte_rules-inl.h"
#include "ops/kernels/updates/carry-inl.h"
#include "ops/kernels/updates/feedback-inl.h"
#include "ops/kernels/updates/feedback_loops-inl.h"
#include "ops/kernels/updates/flash-inl.h"
#include "ops/kernels/updates/flips-inl.h"
#include "ops/kernels/updates/levels-inl.h"
#include "ops/kernels/updates/rule_loops-inl.h"
#include "ops/kernels/updates/rules-inl.h"
#include "ops/kernels/updates/selection-inl.h"
#include "ops/kernels/updates/shared-inl.h"
#ifdef TRITGRAD_TILES
#include "ops/kernels/products/tile_product-inl.h"
#else
#include "ops/kernels/products/panel_product-inl.h"
#endif
#include "ops/kernels/tables-inl.h"
