#include "engine/storage.h"

#include "engine/kernel_table.h"
#include "engine/long_blocks.h"
#include "engine/nearest.h"
#include "engine/parallel.h"

namespace tritgrad {
namespace {

struct FormatRow {
  FormatKind kind;
  const char* name;
};
constexpr FormatRow kFormats[] = {
    {FormatKind::kFp32, "fp32"},
    {FormatKind::kBf16, "bf16"},
    {FormatKind::kTernary, "ternary"},
    {FormatKind::kLatent8, "latent8"},
    {FormatKind::kTernaryMaster, "ternary_master"},
    {FormatKind::kScale16, "scale16"},
    {FormatKind::kTrits, "trits"},
    {FormatKind::kSplit24, "split24"},
    {FormatKind::kSplit32, "split32"},
    {FormatKind::kCompanded8, "companded8"},
    {FormatKind::kRoot8, "root8"},
    {FormatKind::kLatent6, "latent6"},
    {FormatKind::kLatent5, "latent5"},
    {FormatKind::kLatent4, "latent4"},
    {FormatKind::kInt8, "int8"},
    {FormatKind::kInt4, "int4"},
    {FormatKind::kFp8, "fp8"},
    {FormatKind::kScalar, "scalar"},
    {FormatKind::kFactored, "factored"},
    {FormatKind::kShared4, "shared4"},
    {FormatKind::kShared8, "shared8"},
    {FormatKind::kShared16, "shared16"},
};
static_assert(std::size(kFormats) == kFormatCount);
static_assert(
    [] {
      for (std::size_t i = 0; i < std::size(kFormats); ++i) {
        if (kFormats[i].kind != static_cast<FormatKind>(i)) return false;
      }
      return true;
    }(),
    "rows are in the order of FormatKind");

// Calls visitor with a tag value of the format's type: the one place where a kind becomes a type.
template <typename Visitor>
auto with_format(FormatKind kind, Visitor&& visitor) {
  switch (kind) {
    case FormatKind::kFp32:
      return visitor(std::type_identity<Fp32>{});
    case FormatKind::kBf16:
      return visitor(std::type_identity<Bf16>{});
    case FormatKind::kTernary:
      return visitor(std::type_identity<Ternary>{});
    case FormatKind::kLatent8:
      return visitor(std::type_identity<Latent8>{});
    case FormatKind::kTernaryMaster:
      return visitor(std::type_identity<TernaryMaster>{});
    case FormatKind::kScale16:
      return visitor(std::type_identity<Scale16>{});
    case FormatKind::kScalar:
      return visitor(std::type_identity<Scalar>{});
    case FormatKind::kFactored:
      return visitor(std::type_identity<Factored>{});
    case FormatKind::kTrits:
      return visitor(std::type_identity<Trits>{});
    case FormatKind::kSplit24:
      return visitor(std::type_identity<Split24>{});
    case FormatKind::kSplit32:
      return visitor(std::type_identity<Split32>{});
    case FormatKind::kCompanded8:
      return visitor(std::type_identity<Companded8>{});
    case FormatKind::kRoot8:
      return visitor(std::type_identity<Root8>{});
    case FormatKind::kLatent6:
      return visitor(std::type_identity<LatentPacked<6>>{});
    case FormatKind::kLatent5:
      return visitor(std::type_identity<LatentPacked<5>>{});
    case FormatKind::kLatent4:
      return visitor(std::type_identity<LatentPacked<4>>{});
    case FormatKind::kShared4:
      return visitor(std::type_identity<Shared<4>>{});
    case FormatKind::kShared8:
      return visitor(std::type_identity<Shared<8>>{});
    case FormatKind::kShared16:
      return visitor(std::type_identity<Shared<16>>{});
    case FormatKind::kInt8:
      return visitor(std::type_identity<IntegerGroup<8>>{});
    case FormatKind::kInt4:
      return visitor(std::type_identity<IntegerGroup<4>>{});
    case FormatKind::kFp8:
      return visitor(std::type_identity<Fp8>{});
  }
  fail("Storage: unknown format number ", static_cast<int>(kind));
}

}  // namespace

std::string_view format_name(FormatKind kind) {
  return kFormats[static_cast<std::size_t>(kind)].name;
}

FormatKind parse_format(std::string_view name) {
  std::vector<std::string> names;
  for (const FormatRow& row : kFormats) {
    if (name == row.name) return row.kind;
    names.emplace_back(row.name);
  }
  fail("unknown format '", name, "'", did_you_mean(name, names));
}

Storage::Storage(const FormatSpec& spec, const Shape& shape, Category value_category)
    : spec_(spec), shape_(shape), format_(with_format(spec.kind, [&](auto tag) {
        return Variant(typename decltype(tag)::type(spec, shape, value_category));
      })) {}

std::vector<PlaneSpec> Storage::plane_specs(const FormatSpec& spec, const Shape& shape,
                                            Category value_category) {
  return with_format(spec.kind, [&](auto tag) {
    return decltype(tag)::type::plane_specs(spec, shape, value_category);
  });
}

std::vector<Plane> Storage::planes() const {
  return std::visit([](const auto& format) { return format.planes(); }, format_);
}

std::int64_t Storage::bytes() const {
  std::int64_t total = 0;
  for (const Plane& plane : planes()) total += static_cast<std::int64_t>(plane.bytes.size());
  return total;
}

void Storage::decode_trits(const Tile& tile, std::int8_t* out) const {
  Block block = first_block(tile);
  std::visit(
      [&](const auto& format) {
        if constexpr (requires { format.decode_trits(block, std::int64_t{}, out); }) {
          format.decode_trits(block, tile.row_end - tile.row_begin, out);
        } else if constexpr (requires { format.decode_trits(block, out); }) {
          for (; block.row < tile.row_end; ++block.row, out += kBlock) {
            format.decode_trits(block, out);
          }
        } else {
          fail("Storage::decode_trits: format ", format_name(spec_.kind), " holds no trits");
        }
      },
      format_);
}

MemoryAhead Storage::memory_of(const Tile& tile, Reading reading) const {
  const Block first = first_block(tile);
  const std::int64_t rows = std::min(tile.row_end, shape_.rows()) - tile.row_begin;
  if (rows <= 0 || first.n <= 0) return {};
  return std::visit(
      [&](const auto& format) -> MemoryAhead {
        if constexpr (requires { format.memory_of(first, rows, reading); }) {
          return format.memory_of(first, rows, reading);
        } else {
          return {};
        }
      },
      format_);
}

FlipCounts Storage::descend_series(const BlockSeries& series, std::span<const Direction> directions,
                                   const Descent& descent, double* squares) {
  check(std::ssize(directions) <= kMostBlocksAtOnce, "Storage::descend_series: ", directions.size(),
        " blocks, expected at most ", kMostBlocksAtOnce);
  return std::visit(
      [&](auto& format) {
        if constexpr (requires { format.descend_series(series, directions, descent, squares); }) {
          return format.descend_series(series, directions, descent, squares);
        } else {
          FlipCounts counts;
          for (std::size_t i = 0; i < directions.size(); ++i) {
            const Block block = series[i];
            if (squares != nullptr) squares[i] = sum_of_squares(directions[i], block.n);
            counts += descend(block, directions[i], descent);
          }
          return counts;
        }
      },
      format_);
}

void Storage::dot_rows(std::int64_t begin, std::int64_t end, const std::int8_t* x,
                       std::int32_t* sums) const {
  std::visit(
      [&](const auto& format) {
        if constexpr (requires { format.dot_rows(begin, end, x, sums); }) {
          return format.dot_rows(begin, end, x, sums);
        }
        std::int32_t sum_x = 0;
        kernels().sum_int8(&sum_x, x, shape_.cols(), 1, shape_.cols());
        std::fill_n(sums, end - begin, sum_x);
        for_each_block(begin, end, shape_.cols(), [&](const Block& block) {
          std::array<std::int8_t, kBlock> trits;
          decode_trits(block, trits.data());
          sums[block.row - begin] += kernels().dot_int8(trits.data(), x + block.col, block.n);
        });
      },
      format_);
}

void Storage::refresh() {
  std::visit(
      [](auto& format) {
        if constexpr (requires { format.refresh(); }) format.refresh();
      },
      format_);
}

float* Storage::fp32_data() const {
  const Fp32* fp32 = std::get_if<Fp32>(&format_);
  return fp32 == nullptr ? nullptr : fp32->data();
}

void Storage::decode_rows(std::int64_t row_begin, std::int64_t row_end, float* out) const {
  const std::int64_t cols = shape_.cols();
  std::visit(
      [&](const auto& format) {
        if (joins_rows(spec_, cols)) {
          return format.decode_value({row_begin, 0, row_end - row_begin}, out);
        }
        for_each_block(row_begin, row_end, cols, [&](const Block& block) {
          format.decode_value(block, out + (block.row - row_begin) * cols + block.col);
        });
      },
      format_);
}

bool rounds_updates(FormatKind kind) {
  using enum FormatKind;
  return kind != kFp32 && kind != kSplit32 && kind != kScale16 && kind != kTernaryMaster;
}

std::int64_t count_zeros(const Storage& storage) {
  if (!storage.spec().is_ternary()) return 0;
  const Shape& shape = storage.shape();
  const double zeros = parallel_sum(shape.rows(), 16, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t count = 0;
    for_each_block(begin, end, shape.cols(), [&](const Block& block) {
      std::array<float, kBlock> values;
      storage.decode_value(block, values.data());
      count += std::count(values.begin(), values.begin() + block.n, 0.0f);
    });
    return static_cast<double>(count);
  });
  return static_cast<std::int64_t>(zeros);
}

}  // namespace tritgrad
