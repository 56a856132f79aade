#include "engine/formats/storage.h"

#include "engine/formats/descend.h"
#include "engine/kernels/kernel_table.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"

namespace tritgrad {
namespace {

template <typename... F>
constexpr std::array<FormatTraits, sizeof...(F)> traits_of(std::type_identity<std::variant<F...>>) {
  static_assert((Format<F> && ...));
  return {F::kTraits...};
}

constexpr std::array kTraits = traits_of(std::type_identity<AnyFormat>());
static_assert(
    [] {
      for (std::size_t i = 0; i < kTraits.size(); ++i) {
        if (kTraits[i].kind != static_cast<FormatKind>(i)) return false;
      }
      return true;
    }(),
    "AnyFormat is in the order of FormatKind");

// visitor() with a tag of the format's type: the one place where a kind becomes a type.
template <std::size_t kIndex = 0, typename Visitor>
auto with_format(FormatKind kind, const Visitor& visitor) {
  using F = std::variant_alternative_t<kIndex, AnyFormat>;
  if (kind == F::kTraits.kind) return visitor(std::type_identity<F>{});
  if constexpr (kIndex + 1 < kFormatCount) return with_format<kIndex + 1>(kind, visitor);
  fail("Storage: unknown format number ", static_cast<int>(kind));
}

}  // namespace

const FormatTraits& format_traits(FormatKind kind) {
  return kTraits[static_cast<std::size_t>(kind)];
}

FormatKind parse_format(std::string_view name) {
  std::vector<std::string> names;
  for (const FormatTraits& traits : kTraits) {
    if (name == traits.name) return traits.kind;
    names.emplace_back(traits.name);
  }
  fail("unknown format '", name, "'", did_you_mean(name, names));
}

Storage::Storage(const FormatSpec& spec, const Shape& shape, Category value_category)
    : spec_(spec), shape_(shape), format_(with_format(spec.kind, [&](auto tag) {
        return AnyFormat(typename decltype(tag)::type(spec, shape, value_category));
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

void Storage::decode_value(const Block& block, float* out) const {
  std::visit([&](const auto& format) { format.decode_value(block, out); }, format_);
}

void Storage::decode_master(const Block& block, float* out) const {
  std::visit([&](const auto& format) { format.decode_master(block, out); }, format_);
}

void Storage::decode_trits(const Block& block, std::int8_t* out) const {
  std::visit(
      [&](const auto& format) {
        if constexpr (requires { format.decode_trits(block, out); }) {
          format.decode_trits(block, out);
        } else {
          fail("Storage::decode_trits: format ", format_name(spec_.kind), " holds no trits");
        }
      },
      format_);
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

void Storage::dead_zone(const Block& block, float* out) const {
  std::visit(
      [&](const auto& format) {
        if constexpr (requires { format.dead_zone(block, out); }) {
          format.dead_zone(block, out);
        } else {
          std::fill_n(out, block.n, 0.0f);
        }
      },
      format_);
}

void Storage::encode(const Block& block, const float* master, const RandomKey& key) {
  std::visit([&](auto& format) { format.encode(block, master, key); }, format_);
}

FlipCounts Storage::descend(const Block& block, const Direction& direction,
                            const Descent& descent) {
  return std::visit(
      [&](auto& format) {
        if constexpr (requires { format.descend(block, direction, descent); }) {
          return format.descend(block, direction, descent);
        } else {
          std::array<float, kBlock> numbers;
          return format.descend(block, as_floats(direction, block.n, numbers.data()), descent);
        }
      },
      format_);
}

FlipCounts Storage::descend_carrying(const Block& block, const float* direction,
                                     const Descent& descent, const ErrorCarrier& carrier) {
  return std::visit(
      [&](auto& format) {
        if constexpr (requires { format.descend_carrying(block, direction, descent, carrier); }) {
          return format.descend_carrying(block, direction, descent, carrier);
        } else {
          tritgrad::descend_carrying(format, block, direction, descent, carrier);
          return FlipCounts{};
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

void Storage::add_sum(std::int64_t slot, double sum, std::int64_t n) {
  std::visit(
      [&](auto& format) {
        if constexpr (requires { format.add_sum(slot, sum, n); }) {
          format.add_sum(slot, sum, n);
        } else {
          fail("Storage::add_sum: format ", format_name(spec_.kind), " keeps more than a sum");
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
        if (spec_.joins_rows(cols)) {
          return format.decode_value({row_begin, 0, row_end - row_begin}, out);
        }
        for_each_block(row_begin, row_end, cols, [&](const Block& block) {
          format.decode_value(block, out + (block.row - row_begin) * cols + block.col);
        });
      },
      format_);
}

std::int64_t count_zeros(const Storage& storage) {
  if (!storage.spec().traits().is_ternary) return 0;
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
