// That who multiplies asks for what is read after it: seen by kernels that note what they are given
// before they do what they always do.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/kernels/codecs.h"
#include "engine/kernels/products.h"
#include "engine/kernels/updates.h"
#include "engine/memory/parallel.h"
#include "ops/products/linear.h"
#include "optim/optimizer.h"
#include "tests/support/given_gradient.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_memory_ahead_calls {
namespace {

// The codes of one latent8 matrix: which bytes were asked for, and how many were read that had not
// been; and how many bytes of others were asked for.
class Watch {
 public:
  explicit Watch(Storage& storage) : codes_(storage.planes()[0].bytes) { begin(); }

  void begin() {
    asked_.assign(codes_.size(), false);
    read = unasked = others = 0;
  }
  void ask(const MemoryAhead& ahead) {
    for (const MemoryRuns& runs : ahead.planes) {
      if (runs.count == 0) continue;
      if (offset(runs.first) >= codes_.size()) {
        others += runs.count * runs.bytes;
        continue;
      }
      for (std::int64_t r = 0; r < runs.count; ++r) {
        const std::size_t first = offset(runs.first) + static_cast<std::size_t>(r * runs.stride);
        std::fill_n(asked_.begin() + static_cast<std::ptrdiff_t>(first), runs.bytes, true);
      }
    }
  }
  void look(const void* codes, std::int64_t n) {
    read += n;
    for (std::int64_t i = 0; i < n; ++i) {
      unasked += !asked_[offset(codes) + static_cast<std::size_t>(i)];
    }
  }

  std::int64_t read = 0, unasked = 0, others = 0;

 private:
  std::size_t offset(const void* p) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(p) - codes_.data());
  }

  std::span<std::byte> codes_;
  std::vector<bool> asked_;
};

Watch* g_watch = nullptr;
const KernelTables* g_kernels = nullptr;

// While it lives, kernels tell g_watch.
class WatchedKernels {
 public:
  explicit WatchedKernels(Watch& watch) {
    g_watch = &watch;
    g_kernels = &kernels();
    products_.multiply_panel = [](std::int32_t* c, std::int64_t ldc, const std::int8_t* a,
                                  std::int64_t lda, std::int64_t rows, std::int64_t columns,
                                  const std::uint8_t* panel, std::int64_t groups, PanelRange range,
                                  bool add, const MemoryAhead& ahead) {
      g_watch->ask(ahead);
      g_kernels->products.multiply_panel(c, ldc, a, lda, rows, columns, panel, groups, range, add,
                                         ahead);
    };
    codecs_.latent_to_trits = [](std::int8_t* trits, const std::int8_t* codes, int threshold,
                                 std::int64_t n) {
      g_watch->look(codes, n);
      g_kernels->codecs.latent_to_trits(trits, codes, threshold, n);
    };
    products_.pack_latents_across = [](std::uint8_t* panel, const std::int8_t* codes,
                                       std::int64_t ld, std::int64_t depth, int threshold) {
      for (std::int64_t r = 0; r < kPanelColumns; ++r) g_watch->look(codes + r * ld, depth);
      g_kernels->products.pack_latents_across(panel, codes, ld, depth, threshold);
    };
    products_.pack_latents_down = [](std::uint8_t* panels, std::int64_t ld_panels,
                                     const std::int8_t* codes, std::int64_t ld, std::int64_t rows,
                                     std::int64_t columns, int threshold) {
      for (std::int64_t r = 0; r < rows; ++r) g_watch->look(codes + r * ld, columns);
      g_kernels->products.pack_latents_down(panels, ld_panels, codes, ld, rows, columns, threshold);
    };
    updates_.descend_latent = [](std::int8_t* codes, std::int64_t ld, const DirectionRows& rows,
                                 int threshold, int hysteresis) {
      for (std::int64_t r = 0; r < rows.count; ++r) g_watch->look(codes + r * ld, rows.n);
      return g_kernels->updates.descend_latent(codes, ld, rows, threshold, hysteresis);
    };
    kernels_in_use.store(&tables_);
  }
  ~WatchedKernels() { kernels_in_use.store(g_kernels); }
  WatchedKernels(const WatchedKernels&) = delete;
  WatchedKernels& operator=(const WatchedKernels&) = delete;

 private:
  ProductKernels products_ = kernels().products;
  CodecKernels codecs_ = kernels().codecs;
  UpdateKernels updates_ = kernels().updates;
  const KernelTables tables_{kernels().name, products_,        codecs_,
                             updates_,       kernels().layers, kernels().reductions};
};

}  // namespace

TEST_CASE("memory ahead: products ask for all weights but the first tile before they are read") {
  set_thread_count(1);
  // Two depths of dx, two blocks of columns and a shorter one; one pass over the batch, and two.
  constexpr std::int64_t kOutputs = 300, kInputs = 700, kAll = kOutputs * kInputs;
  for (const std::int64_t batch : {20, 260}) {
    CAPTURE(batch);
    ParameterStore store;
    store.add({"w",
               Role::kWeight,
               {kOutputs, kInputs},
               spec_of(FormatKind::kLatent8),
               {Initial::Kind::kUniform, 1.0f}},
              1);
    store.add({"scale",
               Role::kScale,
               {kOutputs, 1},
               spec_of(FormatKind::kFp32),
               {Initial::Kind::kConstant, 0.5f}},
              1);
    Parameter& weight = store.find("w");
    Parameter& scale = store.find("scale");
    GroupSpec group;
    group.rule.kind = RuleKind::kNormalized;
    Optimizer optimizer(
        store, [&](const ParameterSpec&) { return group; }, 10, 1, NonFinite::kRefuse);
    Watch watch(weight.storage());
    const WatchedKernels watched(watch);
    const std::int64_t passes = (batch + 255) / 256;

    Tape tape;
    const Var x = tape.variable({batch, kInputs});
    const std::vector<float> values = numbers(batch * kInputs, 3),
                             dy = numbers(batch * kOutputs, 4);
    std::copy(values.begin(), values.end(), x.value.data);
    const Var y = linear(tape, x, weight, &scale, Compute::kInt8);
    CHECK(watch.read == passes * kAll);
    CHECK(watch.unasked == kPanelColumns * kBlock);
    CHECK(watch.others == 0);

    watch.begin();
    bool updated = false;
    tape.backward(loss_with_gradient(tape, y, dy), [&](Parameter& p) {
      if (&p != &weight) return;
      CHECK(watch.read == passes * kAll);
      CHECK(watch.unasked == 256 * kBlock);
      CHECK(watch.others == 0);
      watch.begin();
      optimizer.step(weight);
      CHECK(watch.read == kAll);
      CHECK(watch.unasked == 0);
      CHECK(watch.others == kAll * static_cast<std::int64_t>(sizeof(float)));  // v
      updated = true;
    });
    CHECK(updated);
  }
  set_thread_count(0);
}

}  // namespace tritgrad::test::test_memory_ahead_calls
