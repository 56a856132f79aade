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
#include "tools/report/statistics.h"

namespace tritgrad {
namespace {

constexpr RandomKey kKey{3, random_stream("bench"), 0};

// n numbers, which functions take as a pointer.
template <typename T>
class Array {
 public:
  explicit Array(std::int64_t n)
      : buffer_(static_cast<std::size_t>(n) * sizeof(T), Category::kWorkspace) {}
  template <typename Fill>
  Array(std::int64_t n, const Fill& fill) : Array(n) {
    for (std::int64_t i = 0; i < n; ++i) {
      data()[i] = static_cast<T>(fill(static_cast<std::uint64_t>(i)));
    }
  }
  T* data() const { return buffer_.as<T>(); }
  operator T*() const { return data(); }  // NOLINT(google-explicit-constructor)

 private:
  Buffer buffer_;
};

float random_float(std::uint64_t i) { return 2.0f * random_uniform(kKey, i) - 1.0f; }

// Returns a function of i that gives random integers in [low, high].
auto random_integers(int low, int high) {
  return [low, count = static_cast<std::uint32_t>(high - low + 1)](std::uint64_t i) {
    return low + static_cast<int>(random_below(kKey, i, count));
  };
}

// ---- loops over numbers ------------------------------------------------------------------------

// A call goes through so many numbers. As floats they take 256 KiB, so they stay in a second-level
// cache.
constexpr std::int64_t kNumbers = 1 << 16;
constexpr std::int64_t kRows = 256, kColumns = kNumbers / kRows;
constexpr std::int64_t kPanelDepth = kNumbers / kPanelColumns;

// The arrays that loops read and write. A loop touches a few of them, and only those are in its
// cache.
struct LoopData {
  Array<float> x{kNumbers, random_float};
  Array<float> squares{kNumbers, [this](std::uint64_t i) { return x[i] * x[i]; }};
  Array<std::int8_t> codes{kNumbers, random_integers(-7, 7)};
  Array<std::uint8_t> bytes{kNumbers, random_integers(0, 242)};
  Array<std::uint16_t> words{kNumbers};  // values of split numbers, scales of groups
  Array<std::int8_t> trits{kNumbers, random_integers(-1, 1)};
  Array<std::int8_t> levels{kNumbers, random_integers(-42, 42)};
  Array<std::uint16_t> noise_words{kNumbers, random_integers(0, 0xFFFF)};
  Array<std::uint32_t> noise{kNumbers,
                             [this](std::uint64_t i) { return as_fraction(noise_words[i]); }};
  Direction direction = x.data();
  LevelRounding rounding{5.0f, 0, noise};
  FlipCounts flips;

  // The direction of an update of a fixed-point format, rounded by the same noise each time.
  DirectionRows update(int limit) {
    rounding.limit = limit;
    return {&direction, &rounding, 1, kNumbers};
  }
};

using Loop = void (*)(LoopData& d);

void decode_trits(LoopData& d) {
  kernels().codecs.decode_trits(d.trits, 0, d.bytes, 0, 1, kNumbers);
}
void encode_split8(LoopData& d) {
  kernels().codecs.encode_split8(d.words, d.codes, d.x, nullptr, kNumbers);
}
void encode_companded(LoopData& d) {
  kernels().codecs.encode_companded(d.codes, d.words, d.x, nullptr, nullptr, kNumbers);
}
void encode_root(LoopData& d) {
  kernels().codecs.encode_root(d.bytes, d.words, d.squares, nullptr, nullptr, kNumbers);
}
void encode_groups(LoopData& d) {
  kernels().codecs.encode_groups(d.codes, d.words, d.x, 127, nullptr, kNumbers);
}
void encode_fp8(LoopData& d) {
  kernels().codecs.encode_fp8(d.bytes, d.words, d.x, nullptr, kNumbers);
}

// The codes of LoopData fit four bits, and so any number of them.
template <int bits>
void pack_codes(LoopData& d) {
  kernels().codecs.pack_codes(d.bytes, d.codes, bits, (1 << (bits - 1)) - 1, kNumbers);
}
template <int bits>
void unpack_codes(LoopData& d) {
  kernels().codecs.unpack_codes(d.codes, d.bytes, bits, (1 << (bits - 1)) - 1, kNumbers);
}

struct LoopRow {
  const char* name;
  Loop run;
  Loop prepare = nullptr;  // runs once before the loop: the encoder of what it decodes
  const char* unit = "Gnumber/s";
  double units_per_number = 1.0;
  std::optional<Ceiling> ceiling = {};
};

constexpr LoopRow kLoopRows[] = {
    {"decode_trits, packed bytes", decode_trits, nullptr, "GB/s", 0.2},
    {"decode_trits", decode_trits, nullptr, "Gtrit/s"},
    {"quantize_int8",
     [](LoopData& d) {
       kernels().products.quantize_int8(d.codes, d.x, nullptr, 127.0f, kNumbers);
     }},
    {"quantize_columns",
     [](LoopData& d) {
       kernels().products.quantize_columns(d.codes, kRows, d.x, kColumns, d.squares, d.squares,
                                           kRows, kColumns);
     }},
    {"max_abs", [](LoopData& d) { d.squares[0] = kernels().reductions.max_abs(d.x, kNumbers); },
     nullptr, "GB/s", 4.0, Ceiling::kL2Read},
    {"pack_down",
     [](LoopData& d) {
       kernels().products.pack_down(d.bytes, d.codes, kPanelColumns, kPanelDepth, kPanelColumns,
                                    128);
     }},
    {"pack_across",
     [](LoopData& d) {
       kernels().products.pack_across(d.bytes, d.codes, kPanelDepth, kPanelDepth, kPanelColumns,
                                      128);
     }},
    {"random_u16", [](LoopData& d) { kernels().codecs.random_u16(d.words, kNumbers, kKey, 0); }},
    {"encode_split8", encode_split8},
    {"decode_split8",
     [](LoopData& d) { kernels().codecs.decode_split8(d.x, d.words, d.codes, kNumbers); },
     encode_split8},
    {"encode_companded", encode_companded},
    {"decode_companded",
     [](LoopData& d) { kernels().codecs.decode_companded(d.x, d.codes, d.words, kNumbers); },
     encode_companded},
    {"encode_root", encode_root},
    {"decode_root",
     [](LoopData& d) { kernels().codecs.decode_root(d.x, d.bytes, d.words, kNumbers); },
     encode_root},
    {"pack_codes, 6 bits", pack_codes<6>},
    {"unpack_codes, 6 bits", unpack_codes<6>, pack_codes<6>},
    {"pack_codes, 5 bits", pack_codes<5>},
    {"unpack_codes, 5 bits", unpack_codes<5>, pack_codes<5>},
    {"pack_codes, 4 bits", pack_codes<4>},
    {"unpack_codes, 4 bits", unpack_codes<4>, pack_codes<4>},
    {"encode_groups", encode_groups},
    {"decode_groups",
     [](LoopData& d) { kernels().codecs.decode_groups(d.x, d.codes, d.words, 127, kNumbers); },
     encode_groups},
    {"encode_fp8", encode_fp8},
    {"decode_fp8",
     [](LoopData& d) { kernels().codecs.decode_fp8(d.x, d.bytes, d.words[0], kNumbers); },
     encode_fp8},
    {"float_to_bf16",
     [](LoopData& d) { kernels().codecs.float_to_bf16(d.words, d.x, nullptr, kNumbers); }},
    {"descend_latent",
     [](LoopData& d) { kernels().updates.descend_latent(d.levels, 0, d.update(85), 42, 0); }},
    {"descend_ternary",
     [](LoopData& d) {
       kernels().updates.descend_ternary(&d.flips, d.trits, 0, d.levels, 0, d.update(85), {});
     }},
    // The first levels serve as the bytes that groups of eight share.
    {"descend_shared",
     [](LoopData& d) {
       const DirectionRows update = d.update(shared_threshold(8));
       kernels().updates.descend_shared(&d.flips, d.trits, 0, d.levels, 0, update, 8, 0);
     }},
};

KernelSpec loop_spec(const LoopRow& row) {
  const auto make = [row]() -> std::function<void()> {
    const auto data = std::make_shared<LoopData>();
    if (row.prepare != nullptr) row.prepare(*data);
    return [row, data] { row.run(*data); };
  };
  return {row.name, row.unit, 1e-9 * row.units_per_number * kNumbers, row.ceiling, make};
}

// ---- products ----------------------------------------------------------------------------------

// Rows of int8 times one panel of bytes in [0, largest].
KernelSpec panel_spec(const char* name, PanelRange range, int largest, Ceiling ceiling) {
  constexpr std::int64_t kDepth = 4096;
  struct Data {
    explicit Data(int largest) : panel(kDepth * kPanelColumns, random_integers(0, largest)) {}
    Array<std::int8_t> a{kRows * kDepth, random_integers(-127, 127)};
    Array<std::uint8_t> panel;
    Array<std::int32_t> c{kRows * kPanelColumns};
  };
  const auto make = [range, largest]() -> std::function<void()> {
    return [range, d = std::make_shared<Data>(largest)] {
      kernels().products.multiply_panel(d->c, kPanelColumns, d->a, kDepth, kRows, kPanelColumns,
                                        d->panel, kDepth / 4, range, /*add=*/false, {});
    };
  };
  return {name, "GOP/s", 2e-9 * kRows * kDepth * kPanelColumns, ceiling, make};
}

KernelSpec gemm_spec() {
  constexpr std::int64_t kSide = 1024, kTile = 256;
  struct Data {
    Array<float> x{kRows * kSide, random_float}, w{kSide * kSide, random_float};
    Array<float> y{kRows * kSide};
  };
  const auto make = []() -> std::function<void()> {
    return [d = std::make_shared<Data>()] {
      for (std::int64_t n = 0; n < kSide; n += kTile) {
        kernels().products.gemm({.m = kRows, .n = kTile, .k = kSide, .transpose_b = true}, d->x,
                                kSide, d->w + n * kSide, kSide, d->y + n, kSide);
      }
    };
  };
  return {"gemm 256 x 1024 x 1024", "GFLOP/s", 2e-9 * kRows * kSide * kSide, Ceiling::kFp32, make};
}

// y = x W^T with packed trits, through the op that training uses.
class ForwardLayer {
 public:
  static constexpr std::int64_t kSide = 4096;

  explicit ForwardLayer(std::int64_t batch) : batch_(batch), x_(batch * kSide, random_float) {
    tape_.set_recording(false);
  }

  void run() {
    const Var x = tape_.constant({x_, {batch_, kSide}});
    linear(tape_, x, weight_, &scale_, Compute::kInt8);
    tape_.reset();
  }

 private:
  std::int64_t batch_;
  Parameter weight_{{.name = "w",
                     .role = Role::kWeight,
                     .shape = {kSide, kSide},
                     .format = {.kind = FormatKind::kTrits, .flips = {}},
                     .initial = {Initial::Kind::kUniform, 1.5f}},
                    1};
  Parameter scale_{{.name = "s",
                    .role = Role::kScale,
                    .shape = {kSide, 1},
                    .format = {.kind = FormatKind::kScale16, .flips = {}},
                    .initial = {Initial::Kind::kConstant, 0.01f}},
                   1};
  Array<float> x_;
  Tape tape_;
};

KernelSpec linear_spec(const char* name, std::int64_t batch, const char* unit,
                       double units_per_weight, Ceiling ceiling) {
  const auto make = [batch]() -> std::function<void()> {
    const auto layer = std::make_shared<ForwardLayer>(batch);
    layer->run();  // grows the tape's arenas; the next run is the first in their joined memory
    return [layer] { layer->run(); };
  };
  const double amount = 1e-9 * units_per_weight * ForwardLayer::kSide * ForwardLayer::kSide;
  return {name, unit, amount, ceiling, make, true};
}

}  // namespace

std::vector<KernelSpec> kernel_specs() {
  using enum Ceiling;
  std::vector<KernelSpec> specs = {
      panel_spec("multiply_panel trits", PanelRange::kTrits, 2, kInt8Trits),
      panel_spec("multiply_panel seven bits", PanelRange::kSevenBits, 127, kInt8Int8),
      panel_spec("multiply_panel bytes", PanelRange::kBytes, 255, kInt8Int8),
      gemm_spec(),
      linear_spec("linear 4096 x 4096 trits, batch 256", 256, "GOP/s", 512.0, kInt8Trits),
      linear_spec("linear 4096 x 4096 trits, batch 1", 1, "GOP/s", 2.0, kInt8Trits),
      linear_spec("linear 4096 x 4096 trits, batch 1, packed weights", 1, "GB/s", 0.2, kDramRead),
  };
  for (const LoopRow& row : kLoopRows) specs.push_back(loop_spec(row));
  return specs;
}

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

KernelResult KernelCase::result() const {
  return {spec_.name, spec_.unit, spec_.amount / median(seconds_), spec_.ceiling};
}

}  // namespace tritgrad
