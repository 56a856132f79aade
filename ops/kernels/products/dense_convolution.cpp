#include "ops/products/dense_convolution.h"

// Version 3 of oneDNN describes convolutions by other functions.
#ifdef TRITGRAD_WITH_ONEDNN
#include <oneapi/dnnl/dnnl_version.h>
#if DNNL_VERSION_MAJOR == 2
#define TRITGRAD_WITH_ONEDNN_CONVOLUTIONS
#include <oneapi/dnnl/dnnl.hpp>
#endif
#endif

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/check.h"
#include "engine/memory/parallel.h"
#include "ops/kernels/products/onednn.h"

namespace tritgrad {

#ifdef TRITGRAD_WITH_ONEDNN_CONVOLUTIONS

namespace {

using dnnl::memory;

// Whether a product takes less time than through patches: measured on a Zen 5, by its AVX-512 and
// by AVX2. Of small images each has too few pixels for the weights that are read, or too few
// multiplications for a call; the gradient of few channels leaves lanes empty; large weights are as
// fast as matrices, and partial sums of their gradients take memory.
bool is_worth_it(ConvolutionProduct product, const ConvolutionShape& s, FloatCode code) {
  constexpr std::int64_t kFewestPixels = 25, kFewestProducts = 1 << 15, kFewestChannels = 8;
  constexpr std::int64_t kMostWeights = 1 << 20, kMostGradients = 5 << 17, kMostForAvx2 = 16;
  const std::int64_t weights = s.outputs * s.inputs();
  const std::int64_t pixels = s.result().pixels();
  if (pixels < kFewestPixels || pixels * weights < kFewestProducts) return false;
  switch (product) {
    case ConvolutionProduct::kForward:
      return true;
    case ConvolutionProduct::kBackwardInput:
      return s.image.channels >= kFewestChannels && weights <= kMostWeights;
    case ConvolutionProduct::kBackwardWeight:
      return weights <= kMostGradients &&
             (code == FloatCode::kAvx512 || s.image.channels <= kMostForAvx2);
  }
  return false;
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

std::int64_t numbers(const memory::desc& desc) {
  constexpr std::size_t kBytes = sizeof(float);
  return static_cast<std::int64_t>((desc.get_size() + kBytes - 1) / kBytes);
}

memory::desc floats(const memory::dims& dims, memory::format_tag order) {
  return {dims, memory::data_type::f32, order};
}

// oneDNN reads what it is given as constant through the same type.
memory memory_of(const memory::desc& desc, const float* data) {
  return {desc, cpu(), const_cast<float*>(data)};
}

// Calls body() on this thread alone, with oneDNN's errors as ours.
template <typename Body>
void by_onednn(const Body& body) {
  const OnThisThread held;
  try {
    body();
  } catch (const dnnl::error& error) {
    fail("dense_convolution: oneDNN says '", error.what(), "', status ",
         static_cast<int>(error.status),
         error.status == dnnl_out_of_memory ? "; it found no memory, free some" : "");
  }
}

class OnednnConvolution final : public DenseConvolution {
 public:
  // Throws dnnl::error where oneDNN has no such product.
  OnednnConvolution(ConvolutionProduct product, const ConvolutionShape& s)
      : product_(product), w_({s.outputs, s.image.channels, s.size, s.size}) {
    const ImageShape y = s.result();
    x_desc_ = floats({s.images, s.image.channels, s.image.height, s.image.width},
                     memory::format_tag::nhwc);
    y_desc_ = floats({s.images, s.outputs, y.height, y.width}, memory::format_tag::nhwc);
    // Half a window on every side; that there are as many windows as result() says follows.
    make({s.stride, s.stride}, {s.size / 2, s.size / 2});
    make_orders(s);
  }

  // Whether oneDNN has code of its own for it, and does not take patches itself or pixel by pixel.
  bool is_direct() const { return name_.starts_with("brg") || name_.starts_with("jit"); }

  std::int64_t packed_numbers() const override { return numbers(packed_desc_); }
  std::int64_t scratch_numbers() const override { return numbers(scratch_desc_); }

  void pack_weights(std::int64_t first, const float* rows, float* packed) const override {
    by_onednn([&] {
      const Panel& panel = panels_[static_cast<std::size_t>(first / kPackedRows)];
      execute(panel.pack, {{DNNL_ARG_FROM, memory_of(panel.rows, rows)},
                           {DNNL_ARG_TO, memory_of(panel.packed, packed)}});
    });
  }

  void unpack_weights(const float* packed, float* w) const override {
    by_onednn([&] {
      execute(unpack_, {{DNNL_ARG_FROM, memory_of(packed_desc_, packed)},
                        {DNNL_ARG_TO, memory_of(rows_of(w_[0]), w)}});
    });
  }

  void run(std::int64_t runs, float* x, float* packed, float* y, float* scratch) const override {
    by_onednn([&] {
      const bool forward = product_ == ConvolutionProduct::kForward;
      const bool to_x = product_ == ConvolutionProduct::kBackwardInput;
      const bool to_w = product_ == ConvolutionProduct::kBackwardWeight;
      const memory images = memory_of(x_desc_, x), results = memory_of(y_desc_, y);
      const std::unordered_map<int, memory> operands = {
          {to_x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, images},
          {to_w ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, memory_of(packed_desc_, packed)},
          {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, results},
          {DNNL_ARG_SCRATCHPAD, memory_of(scratch_desc_, scratch)}};
      dnnl::stream stream(cpu());
      for (std::int64_t i = 0; i < runs; ++i) {
        images.set_data_handle(x + i * numbers(x_desc_));
        results.set_data_handle(y + i * numbers(y_desc_));
        primitive_.execute(stream, operands);
      }
    });
  }

 private:
  // So many rows of W as files have them, and in their place among the packed ones.
  struct Panel {
    memory::desc rows, packed;
    dnnl::reorder pack;
  };

  static void execute(const dnnl::primitive& primitive,
                      const std::unordered_map<int, memory>& operands) {
    dnnl::stream stream(cpu());
    primitive.execute(stream, operands);
  }

  // W lies [outputs x size x size x channels].
  memory::desc rows_of(std::int64_t rows) const {
    return floats({rows, w_[1], w_[2], w_[3]}, memory::format_tag::ohwi);
  }

  template <typename Primitive>
  void take(const typename Primitive::primitive_desc& made, const memory::desc& packed) {
    primitive_ = Primitive(made);
    packed_desc_ = packed;
    scratch_desc_ = made.scratchpad_desc();
    name_ = made.impl_info_str();
  }

  void make(const memory::dims& strides, const memory::dims& border) {
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const memory::desc any = floats(w_, memory::format_tag::any);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, kDirect, x_desc_, any, y_desc_, strides, border,
         border},
        attributes, cpu());
    switch (product_) {
      case ConvolutionProduct::kForward:
        return take<dnnl::convolution_forward>(forward, forward.weights_desc());
      case ConvolutionProduct::kBackwardInput: {
        const dnnl::convolution_backward_data::primitive_desc made(
            {kDirect, x_desc_, any, y_desc_, strides, border, border}, attributes, cpu(), forward);
        return take<dnnl::convolution_backward_data>(made, made.weights_desc());
      }
      case ConvolutionProduct::kBackwardWeight: {
        const dnnl::convolution_backward_weights::primitive_desc made(
            {kDirect, x_desc_, any, y_desc_, strides, border, border}, attributes, cpu(), forward);
        return take<dnnl::convolution_backward_weights>(made, made.diff_weights_desc());
      }
    }
  }

  void make_orders(const ConvolutionShape& s) {
    const auto reorder = [](const memory::desc& from, const memory::desc& to) {
      return dnnl::reorder(dnnl::reorder::primitive_desc(cpu(), from, cpu(), to));
    };
    if (product_ == ConvolutionProduct::kBackwardWeight) {
      unpack_ = reorder(packed_desc_, rows_of(s.outputs));
      return;
    }
    for (std::int64_t first = 0; first < s.outputs; first += kPackedRows) {
      memory::dims part = w_;
      part[0] = std::min(kPackedRows, s.outputs - first);
      Panel panel{rows_of(part[0]), packed_desc_.submemory_desc(part, {first, 0, 0, 0}), {}};
      panel.pack = reorder(panel.rows, panel.packed);
      panels_.push_back(std::move(panel));
    }
  }

  ConvolutionProduct product_;
  memory::dims w_;  // outputs, channels, lines and columns of windows
  memory::desc x_desc_, y_desc_, packed_desc_, scratch_desc_;
  dnnl::primitive primitive_;
  std::vector<Panel> panels_;
  dnnl::reorder unpack_;
  std::string name_;
};

std::shared_ptr<const DenseConvolution> make_convolution(ConvolutionProduct product,
                                                         const ConvolutionShape& shape) {
  const OnThisThread held;
  try {
    auto made = std::make_shared<const OnednnConvolution>(product, shape);
    if (made->is_direct()) return made;
  } catch (const dnnl::error&) {
    // It has none; patches have.
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const DenseConvolution> dense_convolution(ConvolutionProduct product,
                                                          const ConvolutionShape& s) {
  // More than a network has; whoever makes many networks begins anew.
  constexpr std::size_t kMostKept = 512;
  static std::mutex mutex;
  static std::map<std::array<std::int64_t, 8>, std::shared_ptr<const DenseConvolution>> kept;
  const FloatCode code = onednn_code(kernels());
  if (code == FloatCode::kOther || !is_worth_it(product, s, code)) return nullptr;
  const std::array<std::int64_t, 8> key = {static_cast<std::int64_t>(product),
                                           s.images,
                                           s.image.height,
                                           s.image.width,
                                           s.image.channels,
                                           s.outputs,
                                           s.size,
                                           s.stride};
  const std::lock_guard lock(mutex);
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (kept.size() == kMostKept) kept.clear();
  return kept[key] = make_convolution(product, s);
}

const char* dense_convolution_library() { return onednn_serves(kernels()) ? "oneDNN" : "patches"; }

#else

std::shared_ptr<const DenseConvolution> dense_convolution(ConvolutionProduct,
                                                          const ConvolutionShape&) {
  return nullptr;
}

const char* dense_convolution_library() { return "patches"; }

#endif

}  // namespace tritgrad
