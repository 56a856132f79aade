#include "tools/bench/kernel_cases.h"

#include <memory>

#include "engine/formats/shared_accumulator.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/products.h"
#include "engine/kernels/reductions.h"
#include "engine/kernels/updates.h"
#include "engine/memory/buffer.h"
#include "engine/memory/parallel.h"
#include "ops/products/linear.h"
#include "tools/bench/timing.h"
#include "tools/report/statistics.h"

namespace tritgrad {
namespace {

constexpr RandomKey kKey{3, random_stream("bench"), 0};

// n numbers that whoever holds a copy keeps alive.
template <typename T>
class Array {
 public:
  explicit Array(std::int64_t n)
      : buffer_(std::make_shared<Buffer>(static_cast<std::size_t>(n) * sizeof(T),
                                         Category::kWorkspace)) {}
  template <typename Fill>
  Array(std::int64_t n, const Fill& fill) : Array(n) {
    for (std::int64_t i = 0; i < n; ++i) {
      (*this)[i] = static_cast<T>(fill(static_cast<std::uint64_t>(i)));
    }
  }
  T* data() const { return buffer_->as<T>(); }
  T& operator[](std::int64_t i) const { return data()[i]; }

 private:
  std::shared_ptr<Buffer> buffer_;
};

float random_float(std::uint64_t i) { return 2.0f * random_uniform(kKey, i) - 1.0f; }
int random_int(std::uint64_t i, int low, int high) {
  return low + static_cast<int>(random_below(kKey, i, static_cast<std::uint32_t>(high - low + 1)));
}

// ---- products ----------------------------------------------------------------------------------

// Rows of int8 times one panel of bytes in [0, largest].
KernelSpec panel_spec(const std::string& name, PanelRange range, int largest, Ceiling ceiling) {
  constexpr std::int64_t kRows = 256, kDepth = 4096;
  const auto make = [range, largest]() -> std::function<void()> {
    const Array<std::int8_t> a(kRows * kDepth,
                               [](std::uint64_t i) { return random_int(i, -127, 127); });
    const Array<std::uint8_t> panel(kDepth * kPanelColumns,
                                    [&](std::uint64_t i) { return random_int(i, 0, largest); });
    const Array<std::int32_t> c(kRows * kPanelColumns);
    return [=] {
      kernels().products.multiply_panel(c.data(), kPanelColumns, a.data(), kDepth, kRows,
                                        kPanelColumns, panel.data(), kDepth / 4, range,
                                        /*add=*/false, {});
    };
  };
  return {name, "GOP/s", 2e-9 * kRows * kDepth * kPanelColumns, ceiling, make};
}

KernelSpec gemm_spec() {
  constexpr std::int64_t kRows = 256, kSide = 1024, kTile = 256;
  const auto make = []() -> std::function<void()> {
    const Array<float> x(kRows * kSide, random_float), w(kSide * kSide, random_float);
    const Array<float> y(kRows * kSide);
    return [=] {
      for (std::int64_t n = 0; n < kSide; n += kTile) {
        kernels().products.gemm({.m = kRows, .n = kTile, .k = kSide, .transpose_b = true}, x.data(),
                                kSide, w.data() + n * kSide, kSide, y.data() + n, kSide);
      }
    };
  };
  return {"gemm 256 x 1024 x 1024", "GFLOP/s", 2e-9 * kRows * kSide * kSide, Ceiling::kFp32, make};
}

// y = x W^T with packed trits, through the op that training uses.
class ForwardLayer {
 public:
  static constexpr std::int64_t kSide = 4096;

  explicit ForwardLayer(std::int64_t batch)
      : batch_(batch),
        weight_({"w",
                 Role::kWeight,
                 {kSide, kSide},
                 format(FormatKind::kTrits),
                 {Initial::Kind::kUniform, 1.5f}},
                1),
        scale_({"s",
                Role::kScale,
                {kSide, 1},
                format(FormatKind::kScale16),
                {Initial::Kind::kConstant, 0.01f}},
               1),
        x_(batch * kSide, random_float) {
    tape_.set_recording(false);
  }

  void run() {
    const Var x = tape_.constant({x_.data(), {batch_, kSide}});
    linear(tape_, x, weight_, &scale_, Compute::kInt8);
    tape_.reset();
  }

 private:
  static FormatSpec format(FormatKind kind) {
    FormatSpec format;
    format.kind = kind;
    return format;
  }

  std::int64_t batch_;
  Parameter weight_, scale_;
  Array<float> x_;
  Tape tape_;
};

KernelSpec linear_spec(std::int64_t batch, const std::string& name, const std::string& unit,
                       double amount, Ceiling ceiling) {
  const auto make = [batch]() -> std::function<void()> {
    const auto layer = std::make_shared<ForwardLayer>(batch);
    layer->run();  // grows the tape's arenas; the next run is the first in their joined memory
    return [layer] { layer->run(); };
  };
  return {name, unit, amount, ceiling, make, true};
}

void add_products(std::vector<KernelSpec>& specs) {
  specs.push_back(panel_spec("multiply_panel trits", PanelRange::kTrits, 2, Ceiling::kInt8Trits));
  specs.push_back(
      panel_spec("multiply_panel seven bits", PanelRange::kSevenBits, 127, Ceiling::kInt8Int8));
  specs.push_back(panel_spec("multiply_panel bytes", PanelRange::kBytes, 255, Ceiling::kInt8Int8));
  specs.push_back(gemm_spec());
  constexpr double kElements = 1e-9 * ForwardLayer::kSide * ForwardLayer::kSide;
  specs.push_back(linear_spec(256, "linear 4096 x 4096 trits, batch 256", "GOP/s",
                              2.0 * 256.0 * kElements, Ceiling::kInt8Trits));
  specs.push_back(linear_spec(1, "linear 4096 x 4096 trits, batch 1", "GOP/s", 2.0 * kElements,
                              Ceiling::kInt8Trits));
  specs.push_back(linear_spec(1, "linear 4096 x 4096 trits, batch 1, packed weights", "GB/s",
                              kElements / 5.0, Ceiling::kDramRead));
}

// ---- codecs and loops --------------------------------------------------------------------------

// Numbers a call goes through, 256 KiB of floats: they stay in a second-level cache.
constexpr std::int64_t kNumbers = 1 << 16;
constexpr double kGigaNumbers = 1e-9 * kNumbers;

using Body = std::function<void()>;

KernelSpec loop_spec(const std::string& name, const std::string& unit, double amount,
                     const std::function<Body()>& make) {
  return {name, unit, amount, {}, make};
}

// Adds loops of which a call goes through kNumbers numbers.
auto adder(std::vector<KernelSpec>& specs) {
  return [&specs](const std::string& name, const std::function<Body()>& make) {
    specs.push_back(loop_spec(name, "Gnumber/s", kGigaNumbers, make));
  };
}

std::function<void()> make_decode_trits() {
  const Array<std::uint8_t> packed((kNumbers + 4) / 5,
                                   [](std::uint64_t i) { return random_int(i, 0, 242); });
  const Array<std::int8_t> trits(kNumbers);
  return [=] { kernels().codecs.decode_trits(trits.data(), 0, packed.data(), 0, 1, kNumbers); };
}

std::function<void()> make_pack(bool down) {
  constexpr std::int64_t kDepth = kNumbers / kPanelColumns;
  const Array<std::int8_t> rows(kNumbers, [](std::uint64_t i) { return random_int(i, -127, 127); });
  const Array<std::uint8_t> panel(kNumbers);
  return [=] {
    if (down) {
      kernels().products.pack_down(panel.data(), rows.data(), kPanelColumns, kDepth, kPanelColumns,
                                   128);
    } else {
      kernels().products.pack_across(panel.data(), rows.data(), kDepth, kDepth, kPanelColumns, 128);
    }
  };
}

void add_integer_loops(std::vector<KernelSpec>& specs) {
  specs.push_back(
      loop_spec("decode_trits, packed bytes", "GB/s", kGigaNumbers / 5.0, make_decode_trits));
  specs.push_back(loop_spec("decode_trits", "Gtrit/s", kGigaNumbers, make_decode_trits));
  specs.push_back(
      loop_spec("quantize_int8", "Gnumber/s", kGigaNumbers, []() -> std::function<void()> {
        const Array<float> x(kNumbers, random_float);
        const Array<std::int8_t> codes(kNumbers);
        return [=] {
          kernels().products.quantize_int8(codes.data(), x.data(), nullptr, 127.0f, kNumbers);
        };
      }));
  specs.push_back(
      loop_spec("quantize_columns", "Gnumber/s", kGigaNumbers, []() -> std::function<void()> {
        constexpr std::int64_t kRows = 256, kColumns = kNumbers / kRows;
        const Array<float> x(kNumbers, random_float);
        const Array<float> factors(kRows, random_float);
        const Array<float> inverse(kColumns, random_float);
        const Array<std::int8_t> codes(kNumbers);
        return [=] {
          kernels().products.quantize_columns(codes.data(), kRows, x.data(), kColumns,
                                              factors.data(), inverse.data(), kRows, kColumns);
        };
      }));
  specs.push_back(
      {"max_abs", "GB/s", 4.0 * kGigaNumbers, Ceiling::kL2Read, []() -> std::function<void()> {
         const Array<float> x(kNumbers, random_float);
         const Array<float> largest(1);
         return [=] { largest[0] = kernels().reductions.max_abs(x.data(), kNumbers); };
       }});
  specs.push_back(
      loop_spec("pack_down", "Gnumber/s", kGigaNumbers, [] { return make_pack(true); }));
  specs.push_back(
      loop_spec("pack_across", "Gnumber/s", kGigaNumbers, [] { return make_pack(false); }));
  specs.push_back(loop_spec("random_u16", "Gnumber/s", kGigaNumbers, []() -> std::function<void()> {
    const Array<std::uint16_t> out(kNumbers);
    return [=] { kernels().codecs.random_u16(out.data(), kNumbers, kKey, 0); };
  }));
}

// The numbers, their codes and their noise, for codecs that keep `Code` and 16 bits beside it.
template <typename Code>
struct CodecData {
  Array<float> x{kNumbers, random_float};
  Array<Code> codes{kNumbers};
  Array<std::uint16_t> words{kNumbers};  // values of split numbers, scales of groups
};

void add_codecs(std::vector<KernelSpec>& specs) {
  const auto add = adder(specs);
  add("encode_split8", []() -> Body {
    return [d = CodecData<std::int8_t>{}] {
      kernels().codecs.encode_split8(d.words.data(), d.codes.data(), d.x.data(), nullptr, kNumbers);
    };
  });
  add("decode_split8", []() -> Body {
    const CodecData<std::int8_t> d;
    kernels().codecs.encode_split8(d.words.data(), d.codes.data(), d.x.data(), nullptr, kNumbers);
    return [d] {
      kernels().codecs.decode_split8(d.x.data(), d.words.data(), d.codes.data(), kNumbers);
    };
  });
  add("encode_companded", []() -> Body {
    return [d = CodecData<std::int8_t>{}] {
      kernels().codecs.encode_companded(d.codes.data(), d.words.data(), d.x.data(), nullptr,
                                        nullptr, kNumbers);
    };
  });
  add("decode_companded", []() -> Body {
    const CodecData<std::int8_t> d;
    kernels().codecs.encode_companded(d.codes.data(), d.words.data(), d.x.data(), nullptr, nullptr,
                                      kNumbers);
    return [d] {
      kernels().codecs.decode_companded(d.x.data(), d.codes.data(), d.words.data(), kNumbers);
    };
  });
  const auto squares = [] {
    CodecData<std::uint8_t> d;
    for (std::int64_t i = 0; i < kNumbers; ++i) d.x[i] *= d.x[i];
    return d;
  };
  add("encode_root", [squares]() -> Body {
    return [d = squares()] {
      kernels().codecs.encode_root(d.codes.data(), d.words.data(), d.x.data(), nullptr, nullptr,
                                   kNumbers);
    };
  });
  add("decode_root", [squares]() -> Body {
    const CodecData<std::uint8_t> d = squares();
    kernels().codecs.encode_root(d.codes.data(), d.words.data(), d.x.data(), nullptr, nullptr,
                                 kNumbers);
    return
        [d] { kernels().codecs.decode_root(d.x.data(), d.codes.data(), d.words.data(), kNumbers); };
  });
}

std::function<void()> make_codes(int bits, bool pack) {
  const int largest = (1 << (bits - 1)) - 1;
  const Array<std::int8_t> codes(kNumbers,
                                 [&](std::uint64_t i) { return random_int(i, -largest, largest); });
  const Array<std::uint8_t> packed(kNumbers);
  if (pack)
    return
        [=] { kernels().codecs.pack_codes(packed.data(), codes.data(), bits, largest, kNumbers); };
  kernels().codecs.pack_codes(packed.data(), codes.data(), bits, largest, kNumbers);
  return
      [=] { kernels().codecs.unpack_codes(codes.data(), packed.data(), bits, largest, kNumbers); };
}

void add_low_bits(std::vector<KernelSpec>& specs) {
  const auto add = adder(specs);
  for (const int bits : {6, 5, 4}) {
    const std::string suffix = ", " + std::to_string(bits) + " bits";
    add("pack_codes" + suffix, [bits] { return make_codes(bits, true); });
    add("unpack_codes" + suffix, [bits] { return make_codes(bits, false); });
  }
  add("encode_groups", []() -> Body {
    return [d = CodecData<std::int8_t>{}] {
      kernels().codecs.encode_groups(d.codes.data(), d.words.data(), d.x.data(), 127, nullptr,
                                     kNumbers);
    };
  });
  add("decode_groups", []() -> Body {
    const CodecData<std::int8_t> d;
    kernels().codecs.encode_groups(d.codes.data(), d.words.data(), d.x.data(), 127, nullptr,
                                   kNumbers);
    return [d] {
      kernels().codecs.decode_groups(d.x.data(), d.codes.data(), d.words.data(), 127, kNumbers);
    };
  });
  add("encode_fp8", []() -> Body {
    return [d = CodecData<std::uint8_t>{}] {
      kernels().codecs.encode_fp8(d.codes.data(), d.words.data(), d.x.data(), nullptr, kNumbers);
    };
  });
  add("decode_fp8", []() -> Body {
    const CodecData<std::uint8_t> d;
    kernels().codecs.encode_fp8(d.codes.data(), d.words.data(), d.x.data(), nullptr, kNumbers);
    return [d] { kernels().codecs.decode_fp8(d.x.data(), d.codes.data(), d.words[0], kNumbers); };
  });
  add("float_to_bf16", []() -> Body {
    return [d = CodecData<std::int8_t>{}] {
      kernels().codecs.float_to_bf16(d.words.data(), d.x.data(), nullptr, kNumbers);
    };
  });
}

// Updates of fixed-point formats, whose directions are rounded by the same noise each time.
struct UpdateData {
  Array<float> direction{kNumbers, random_float};
  Array<std::int8_t> trits{kNumbers, [](std::uint64_t i) { return random_int(i, -1, 1); }};
  Array<std::int8_t> levels{kNumbers, [](std::uint64_t i) { return random_int(i, -42, 42); }};
  Array<std::uint32_t> noise{
      kNumbers, [](std::uint64_t i) {
        return as_fraction(static_cast<std::uint16_t>(random_int(i, 0, 0xFFFF)));
      }};
};

// body(a row of them)
template <typename Body>
void with_row(const UpdateData& d, int limit, const Body& body) {
  const Direction direction = d.direction.data();
  const LevelRounding rounding{5.0f, limit, d.noise.data()};
  body(DirectionRows{&direction, &rounding, 1, kNumbers});
}

void add_updates(std::vector<KernelSpec>& specs) {
  const auto add = adder(specs);
  add("descend_latent", []() -> Body {
    return [d = UpdateData{}] {
      with_row(d, 85, [&](const DirectionRows& row) {
        kernels().updates.descend_latent(d.levels.data(), 0, row, 42, 0);
      });
    };
  });
  add("descend_ternary", []() -> Body {
    return [d = UpdateData{}] {
      with_row(d, 85, [&](const DirectionRows& row) {
        FlipCounts counts;
        kernels().updates.descend_ternary(&counts, d.trits.data(), 0, d.levels.data(), 0, row, {});
      });
    };
  });
  add("descend_shared", []() -> Body {
    // Of the levels only as many as fit are read: as bytes of groups of eight.
    return [d = UpdateData{}] {
      with_row(d, shared_threshold(8), [&](const DirectionRows& row) {
        FlipCounts counts;
        kernels().updates.descend_shared(&counts, d.trits.data(), 0, d.levels.data(), 0, row, 8, 0);
      });
    };
  });
}

}  // namespace

std::vector<KernelSpec> kernel_specs() {
  std::vector<KernelSpec> specs;
  add_products(specs);
  add_integer_loops(specs);
  add_codecs(specs);
  add_low_bits(specs);
  add_updates(specs);
  return specs;
}

KernelCase::KernelCase(KernelSpec spec) : spec_(std::move(spec)) {}

void KernelCase::measure() {
  const int copies = spec_.divides_work ? 1 : thread_count();
  std::vector<std::function<void()>> bodies;
  for (int copy = 0; copy < copies; ++copy) bodies.push_back(spec_.make());
  const double seconds = seconds_per_call([&] {
    if (spec_.divides_work) return bodies[0]();
    parallel_for(copies, [&](std::int64_t copy) { bodies[static_cast<std::size_t>(copy)](); });
  });
  seconds_.push_back(seconds / copies);
}

double KernelCase::value() const { return spec_.amount / median(seconds_); }

}  // namespace tritgrad
