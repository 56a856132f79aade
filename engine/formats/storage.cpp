#include "engine/formats/storage.h"

#include "engine/formats/descend.h"
#include "engine/kernels/direction.h"
#include "engine/memory/parallel.h"
#include "engine/names.h"

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

// Calls visitor() with a tag of the format's type: the one place where a kind becomes a type.
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
  Names<FormatKind, kFormatCount> names{"format", {}};
  for (std::size_t i = 0; i < kTraits.size(); ++i)
    names.names[i] = {kTraits[i].kind, kTraits[i].name};
  return names.parse(name);
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

void Storage::decode_value(const Block& block, float* out) const {
  std::visit([&](const auto& format) { format.decode_value(block, out); }, format_);
}

void Storage::decode_master(const Block& block, float* out) const {
  std::visit([&](const auto& format) { format.decode_master(block, out); }, format_);
}

PrefetchList Storage::memory_of(const MatrixPiece& piece, Reading reading) const {
  const Block first = piece.first_block(shape_.cols());
  const std::int64_t rows = std::min(piece.row_end, shape_.rows()) - piece.row_begin;
  if (rows <= 0 || first.n <= 0) return {};
  return std::visit(
      [&]<typename F>(const F& format) -> PrefetchList {
        if constexpr (F::kTraits.tells_memory) {
          return format.memory_of(first, rows, reading);
        } else {
          return {};
        }
      },
      format_);
}

TritLayout Storage::trit_layout() const {
  return std::visit(
      []<typename F>(const F& format) -> TritLayout {
        if constexpr (F::kTraits.holds_trits) {
          return format.trit_layout();
        } else {
          return {};
        }
      },
      format_);
}

void Storage::encode(const Block& block, const float* master, const RandomKey& key) {
  std::visit([&](auto& format) { format.encode(block, master, key); }, format_);
}

FlipCounts Storage::descend(const BlockUpdate& update) {
  check(std::ssize(update.directions) <= kMostBlocksAtOnce,
        "Storage::descend: ", update.directions.size(), " blocks, expected at most ",
        kMostBlocksAtOnce);
  return std::visit(
      [&]<typename F>(F& format) -> FlipCounts {
        if constexpr (F::kTraits.reads_directions) {
          if constexpr (!F::kTraits.carries_errors) {
            check(update.feedback == nullptr, "Storage::descend: format ", F::kTraits.name,
                  " keeps its own residual, so no error is left to carry");
          }
          return format.descend(update);
        } else {
          return descend_by_floats(format, update);
        }
      },
      format_);
}

void Storage::refresh() {
  std::visit(
      []<typename F>(F& format) {
        if constexpr (F::kTraits.has_statistics) format.refresh();
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

std::int64_t bytes_of(const Storage& storage) {
  std::int64_t total = 0;
  for (const Plane& plane : storage.planes()) {
    total += static_cast<std::int64_t>(plane.bytes.size());
  }
  return total;
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
