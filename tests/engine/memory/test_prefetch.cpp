// The memory that is asked for before it is read. That it is the memory which is read then cannot
// be seen from results, only from where it lies; and who multiplies asks for what is read after it,
// which is seen by kernels that note what they are given before they do what they always do.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/formats/storage.h"
#include "engine/kernels/codecs.h"
#include "engine/kernels/products.h"
#include "engine/kernels/updates.h"
#include "engine/memory/parallel.h"
#include "ops/products/linear.h"
#include "optim/optimizer.h"
#include "tests/support/given_gradient.h"
#include "tests/support/support.h"
#include "tests/support/support_formats.h"
#define TRITGRAD_TARGET in_test
#include "ops/kernels/products/gradual_prefetch-inl.h"

namespace tritgrad::test::test_prefetch {
namespace {

// All bytes of a storage: those in memory, and whether runs of `ahead` hold them.
struct Bytes {
  std::vector<std::byte> values;
  std::vector<bool> asked;
  std::int64_t outside = 0;  // of the runs, not of the storage
};
Bytes bytes_of(const Storage& storage, const PrefetchList& ahead) {
  Bytes all;
  std::int64_t inside = 0, in_runs = 0;
  for (const Plane& plane : storage.planes()) {
    for (const std::byte& byte : plane.bytes) {
      bool asked = false;
      for (const PrefetchRows& runs : ahead.planes) {
        for (std::int64_t r = 0; r < runs.count; ++r) {
          const auto* first = static_cast<const std::byte*>(runs.first) + r * runs.stride;
          asked |= &byte >= first && &byte < first + runs.bytes;
        }
      }
      all.values.push_back(byte);
      all.asked.push_back(asked);
      inside += asked;
    }
  }
  for (const PrefetchRows& runs : ahead.planes) in_runs += runs.count * runs.bytes;
  all.outside = in_runs - inside;
  return all;
}

}  // namespace

TEST_CASE("prefetch: of a tile, all that an update of it changes and nothing else") {
  for (const FormatKind kind : formats_for(kWeight)) {
    for (const std::int64_t cols : {320, 700}) {
      CAPTURE(std::string(format_name(kind)));
      CAPTURE(cols);
      constexpr std::int64_t kRows = 9;
      Storage storage(spec_of(kind), {kRows, cols}, Category::kWeights);
      if (!storage.spec().traits().holds_trits) continue;
      encode_all(storage, std::vector<float>(static_cast<std::size_t>(kRows * cols), 0.0f));
      for (std::int64_t col = 0; col < cols; col += kBlock) {
        const MatrixPiece tile{3, 7, col};
        const Bytes before = bytes_of(storage, storage.memory_of(tile, Reading::kMaster));
        CHECK(before.outside == 0);
        // Enough steps for every byte to change in one of them, also of accumulators that sixteen
        // trits have by turns.
        const std::int64_t n = std::min(kBlock, cols - col);
        std::vector<bool> changed(before.values.size());
        for (std::uint32_t step = 1; step <= 64; ++step) {
          const Descent descent(1.0f, RandomKey{1, 2, step});
          const std::vector<float> direction = numbers(n, step);
          for (std::int64_t row = tile.row_begin; row < tile.row_end; ++row) {
            descend_block(storage, Block{row, col, n}, {direction.data(), 1.0f, false}, descent);
          }
          const Bytes now = bytes_of(storage, {});
          for (std::size_t i = 0; i < changed.size(); ++i) {
            if (now.values[i] != before.values[i]) changed[i] = true;
          }
        }
        CHECK(changed == before.asked);
      }
    }
  }
}

TEST_CASE("prefetch: of moments in fp32 and int8, the elements of the tile") {
  constexpr std::int64_t kRows = 9, kCols = 700;
  for (const FormatKind kind : {FormatKind::kFp32, FormatKind::kInt8}) {
    const Storage storage(spec_of(kind), {kRows, kCols}, Category::kMoments);
    const auto size = static_cast<std::int64_t>(kind == FormatKind::kFp32 ? sizeof(float) : 1);
    for (std::int64_t col = 0; col < kCols; col += kBlock) {
      CAPTURE(col);
      const std::int64_t n = std::min(kBlock, kCols - col);
      const Bytes bytes = bytes_of(storage, storage.memory_of({3, 7, col}, Reading::kMaster));
      CHECK(bytes.outside == 0);
      for (std::size_t i = 0; i < bytes.asked.size(); ++i) {
        const auto element = static_cast<std::int64_t>(i) / size;
        const std::int64_t row = element / kCols, at = element % kCols;
        // Scales of int8 lie behind its codes.
        REQUIRE(bytes.asked[i] == (row >= 3 && row < 7 && at >= col && at < col + n));
      }
    }
  }
}

TEST_CASE("prefetch: a moment's planes follow the weight's, as long as there is room") {
  const std::vector<char> memory(100);
  const auto runs = [&](std::int64_t count) { return PrefetchRows{memory.data(), count, 5, 11}; };
  PrefetchList ahead{{runs(1)}};
  ahead.add({});
  ahead.add({{runs(2), runs(0), runs(3)}});
  ahead.add({{runs(4)}});
  for (int plane = 0; plane < PrefetchList::kPlanes; ++plane) {
    CHECK(ahead.planes[plane].count == plane + 1);
  }
}

TEST_CASE("prefetch: trits are in the first plane, and there is nothing beyond a matrix") {
  for (const FormatKind kind : formats_for(kWeight)) {
    CAPTURE(std::string(format_name(kind)));
    const Storage storage(spec_of(kind), {5, 330}, Category::kWeights);
    const PrefetchList value = storage.memory_of({1, 4, 320}, Reading::kValue);
    const bool asks = storage.spec().traits().holds_trits || kind == FormatKind::kFp32 ||
                      kind == FormatKind::kInt8;
    if (!asks) {
      CHECK(value.planes[0].count == 0);
      continue;
    }
    CHECK(value.planes[0].count == 3);
    CHECK(value.planes[1].count == 0);
    CHECK(storage.memory_of({3, 9, 0}, Reading::kValue).planes[0].count == 2);
    for (const MatrixPiece& tile : {MatrixPiece{5, 9, 0}, MatrixPiece{0, 2, 640}}) {
      for (const PrefetchRows& runs : storage.memory_of(tile, Reading::kMaster).planes) {
        CHECK(runs.count == 0);
      }
    }
  }
}

TEST_CASE("prefetch: what is taken off is all of it, once") {
  const std::vector<char> memory(100);
  for (const std::int64_t count : {0, 1, 4, 7}) {
    for (const std::int64_t n : {1, 3, 5}) {
      CAPTURE(count);
      CAPTURE(n);
      const PrefetchRows runs{memory.data(), count, 5, 11};
      PrefetchList left{{runs, runs, runs}};
      std::int64_t seen = 0;
      while (left.planes[2].count > 0) {
        const PrefetchRows taken = left.take(n).planes[2];
        CHECK(taken.first == memory.data() + seen * runs.stride);
        CHECK(taken.count == std::min(n, count - seen));
        CHECK(taken.bytes == runs.bytes);
        CHECK(taken.stride == runs.stride);
        seen += taken.count;
      }
      CHECK(seen == count);
      CHECK(left.take(n).planes[0].count == 0);
    }
  }
}

TEST_CASE("prefetch: shares are all lines that the runs touch, none twice in a run") {
  const std::vector<char> memory(4096);
  for (const std::int64_t offset : {0, 1, 63}) {
    for (const std::int64_t bytes : {0, 1, 64, 65, 320}) {
      for (const std::int64_t shares : {0, 1, 2, 5, 40}) {
        CAPTURE(offset);
        CAPTURE(bytes);
        CAPTURE(shares);
        const PrefetchList ahead{
            {{memory.data() + offset, 3, bytes, 400}, {memory.data(), 2, 1, 7}}};
        std::vector<std::uintptr_t> expected, asked;
        for (const PrefetchRows& runs : ahead.planes) {
          for (std::int64_t r = 0; r < runs.count && runs.bytes > 0; ++r) {
            const auto first = reinterpret_cast<std::uintptr_t>(runs.first) +
                               static_cast<std::uintptr_t>(r * runs.stride);
            const std::uintptr_t last = first + static_cast<std::uintptr_t>(runs.bytes) - 1;
            for (std::uintptr_t line = first / 64; line <= last / 64; ++line) {
              expected.push_back(line);
            }
          }
        }
        in_test::GradualPrefetch gradual(ahead, shares);
        std::size_t largest = 0;
        for (std::int64_t i = 0; i < std::max<std::int64_t>(1, shares); ++i) {
          const std::size_t before = asked.size();
          gradual.for_each_line([&](const char* line) {
            asked.push_back(reinterpret_cast<std::uintptr_t>(line) / 64);
          });
          largest = std::max(largest, asked.size() - before);
        }
        CHECK(asked == expected);
        // A run may begin anywhere in its first line, so it is taken for one line more.
        const std::int64_t most = 3 * ((bytes + 126) / 64) + 2;
        if (shares > 0) CHECK(static_cast<std::int64_t>(largest) <= (most + shares - 1) / shares);
      }
    }
  }
}

namespace {

// The codes of one latent8 matrix are watched: which bytes were asked for, and how many were read
// that had not been; and how many bytes of others were asked for.
class Watch {
 public:
  explicit Watch(Storage& storage) : codes_(storage.planes()[0].bytes) { begin(); }

  void begin() {
    asked_.assign(codes_.size(), false);
    read = unasked = others = 0;
  }
  void ask(const PrefetchList& ahead) {
    for (const PrefetchRows& runs : ahead.planes) {
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
                                  const std::uint8_t* panel, const PanelDepth& depth,
                                  PanelRange range, bool add, const PrefetchList& ahead) {
      g_watch->ask(ahead);
      g_kernels->products.multiply_panel(c, ldc, a, lda, rows, columns, panel, depth, range, add,
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
  const KernelTables tables_{kernels().name,
                             products_,
                             codecs_,
                             updates_,
                             kernels().layers,
                             kernels().attention,
                             kernels().reductions,
                             kernels().peak_loops};
};

}  // namespace

TEST_CASE("prefetch: products ask for all weights but the first tile before they are read") {
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

}  // namespace tritgrad::test::test_prefetch
